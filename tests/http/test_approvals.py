"""The routes of approvals: what they show, masked, and who may decide over them."""

from pathlib import Path

import pytest

from engine.driving import Driven, scene
from people import Org
from serving import Api
from stenograph.engine import start
from stenograph.engine.engine import Place
from stenograph.sessions import secret
from stenograph.sessions.creation import NewSession
from stenograph.storage.database import Database, Tx

SECRET = "hunter2-is-the-password"
PROMPT = scene(
    f"""
[[round]]
say = "Two calls."
call = [{{ tool = "read", arguments = {{ path = "{SECRET}" }} }}, {{ tool = "glob" }}]
[[round]]
say = "They say: {{results}}"
"""
)


@pytest.fixture
def waiting(api: Api, database: Database, org: Org, tmp_path: Path) -> tuple[Driven, str]:
    """A session of which two calls wait, and no engine that runs."""
    driven = Driven(database, org.owner, Place(f"sqlite:///{tmp_path / 'engine.db'}"))

    def begin(tx: Tx) -> str:
        secret.create(tx, org.owner, api.sealer, "PASSWORD", SECRET)
        new = NewSession(
            options={"session_policy": {"approval_mode": "ask"}},
            secrets=secret.take(tx, org.owner, api.sealer, ["PASSWORD"]),
        )
        return start.open_session(tx, org.owner, new, PROMPT).public_id

    session_id = database.write(begin)

    async def both() -> None:
        await driven.until(
            lambda tx: tx.value("SELECT count(*) FROM tasks WHERE status = 'needs_approval'") == 2
        )

    driven.during(both)
    return driven, session_id


def test_people_decide_over_v3(api: Api, waiting: tuple[Driven, str]) -> None:
    driven, session_id = waiting
    at = f"{api.v3}/sessions/{session_id}/approvals"
    listed = api.get(at).json()
    assert [(it["task_key"], it["name"], it["waits"]) for it in listed["items"]] == [
        ("r2t1", "glob", True), ("r2t0", "read", True),
    ]  # fmt: skip
    assert listed["items"][1]["arguments"] == {"path": "[redacted-secret]"}
    first = api.get(f"{at}?first=1").json()
    rest = api.get(f"{at}?first=1&after={first['end_cursor']}").json()
    assert [page["items"][0]["task_key"] for page in (first, rest)] == ["r2t1", "r2t0"]
    assert (first["has_next_page"], rest["has_next_page"]) == (True, False)

    denial = {"decision": "deny", "note": f"never {SECRET}"}
    assert api.post(f"{at}/r2t0", json=denial, key="api:member").status_code == 403
    assert api.post(f"{at}/r2t0", json=denial, key="api:agent").status_code == 403
    assert api.post(f"{at}/r2t0", json=denial, key="api:stranger").status_code == 404
    answer = api.post(f"{at}/r2t0", json=denial)
    assert (answer.status_code, answer.json()["note"]) == (200, "never [redacted-secret]")
    assert api.post(f"{at}/r2t0", json=denial).json() == answer.json()
    late = api.post(f"{at}/r2t0", json={"decision": "approve"})
    assert (late.status_code, late.json()["error"]) == (409, "not_eligible")
    assert api.post(f"{at}/r7t7", json=denial).json() == {"error": "approval_not_found"}
    assert api.post(f"{at}/r2t1", json={"decision": "perhaps"}).status_code == 400
    assert api.post(f"{at}/r2t1", json={"decision": "approve"}).status_code == 200
    assert SECRET not in api.get(at).text
    driven.settle()
    assert [name for name, _, _ in driven.tools.made] == ["glob"]
    assert api.get(at).json()["items"][1]["status"] == "failed"
    assert api.get(f"{api.v3}/sessions/{session_id}").json()["outcome"] == "success"


def test_people_decide_over_the_agent_api(api: Api, waiting: tuple[Driven, str]) -> None:
    driven, _ = waiting
    [(workspace, run)] = driven.rows(
        "SELECT w.public_id, r.public_id FROM runs r JOIN workspaces w ON w.id = r.workspace_id"
    )
    at = f"{api.agent}/workspaces/{workspace}/runs/{run}"
    found = api.get(at).json()["run"]
    assert found["attention"] == {"reason": "approval", "task_keys": ["r2t0", "r2t1"]}
    assert (found["approval_mode"], found["status"]) == ("ask", "running")
    assert found["task_progress"]["statuses"]["needs_approval"] == 2

    def decide(key: str, decision: str, who: str = "member") -> tuple[int, dict]:
        body = {"approval": {"decision": decision, "note": SECRET}}
        answer = api.post(f"{at}/tasks/{key}/approval", json=body, key=who)
        return answer.status_code, answer.json()

    status, body = decide("r2t0", "approve", "member:agent")
    assert (status, body["error"]["code"]) == (403, "not_authorized")
    status, body = decide("r2t0", "approve", "member:member")
    assert (status, body["approval"]["decision"]) == (200, "approve")
    assert body["approval"]["note"] == "[redacted-secret]"
    assert body["approval"]["decided_by_user_public_id"] == api.org.member.principal_public_id
    assert decide("r2t0", "approve")[0] == 200
    status, body = decide("r2t0", "deny")
    assert (status, body["error"]["code"]) == (409, "not_eligible")
    assert decide("r1", "deny")[0] == 409
    assert decide("none", "deny")[0] == 404
    assert api.get(at).json()["run"]["attention"]["task_keys"] == ["r2t1"]
    assert decide("r2t1", "deny")[0] == 200
    assert "attention" not in api.get(at).json()["run"]
    driven.settle()
    assert [name for name, _, _ in driven.tools.made] == ["read"]
