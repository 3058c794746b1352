"""The routes of compaction and of estimates, of both families."""

from pathlib import Path
from typing import Any

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
SLOW = scene('[[round]]\nsay = "Slowly. "\nrepeat = 9\npause_ms = 100\n')


@pytest.fixture
def world(api: Api, database: Database, org: Org, tmp_path: Path) -> tuple[Driven, str, str]:
    """A session that was answered once: the engine, its id, and where the Agent API has it."""
    driven = Driven(database, org.owner, Place(f"sqlite:///{tmp_path / 'engine.db'}"))

    def begin(tx: Tx) -> str:
        secret.create(tx, org.owner, api.sealer, "PASSWORD", SECRET)
        new = NewSession(secrets=secret.take(tx, org.owner, api.sealer, ["PASSWORD"]))
        return start.open_session(tx, org.owner, new, f"It is {SECRET}").public_id

    session_id = database.write(begin)
    driven.settle()
    [(workspace,)] = driven.rows(
        "SELECT w.public_id FROM workspaces w JOIN conversations c ON c.workspace_id = w.id"
    )
    return driven, session_id, f"{api.agent}/workspaces/{workspace}/conversations/{session_id}"


def test_a_conversation_is_summed_up_over_the_agent_api(
    api: Api, world: tuple[Driven, str, str]
) -> None:
    driven, _, at = world
    for key, status in (("executor", 401), ("member:stranger", 404)):
        assert api.post(f"{at}/compaction", json={}, key=key).status_code == status
    answer = api.post(f"{at}/compaction", json={"compaction": {"model": "dev/thinker"}})
    assert answer.status_code == 202
    assert answer.json() == {
        "turn": {
            "public_id": answer.json()["turn"]["public_id"],
            "position": 1,
            "kind": "compaction_summary",
            "status": "pending",
        }
    }
    again = api.post(f"{at}/compaction", json={})
    assert (again.status_code, again.json()["error"]["code"]) == (409, "already_compacted")
    driven.settle()
    turns = api.get(f"{at}/turns").json()["turns"]
    assert [turn["kind"] for turn in turns] == ["direct_reply", "compaction_summary"]
    made = turns[1]["active_variant"]
    assert (made["source"], made["content"]) == ("run", "A person asked, and some of it is done.")
    kinds = [event["type"] for event in api.get(f"{at}/events").json()["events"]]
    assert "context_compacted" in kinds


@pytest.mark.parametrize(
    ("wish", "status", "code"),
    [
        ({"model": "nobody/knows"}, 400, "parameter_invalid"),
        ({"model": "dev/small", "reasoning_effort": "high"}, 422, "unsupported_reasoning_effort"),
        ({"model": 7}, 400, "parameter_invalid"),
    ],
)
def test_a_wish_that_cannot_be_met_is_refused(
    api: Api, world: tuple[Driven, str, str], wish: dict[str, Any], status: int, code: str
) -> None:
    answer = api.post(f"{world[2]}/compaction", json={"compaction": wish})
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)


def test_a_session_is_summed_up_over_v3(api: Api, world: tuple[Driven, str, str]) -> None:
    driven, session_id, at = world
    path = f"{api.v3}/sessions/{session_id}/compaction"
    assert api.post(path, json={}, key="api:member").status_code == 403
    assert api.post(path, json={}, key="api:stranger").status_code == 404
    driven.say(session_id, SLOW + "[dev:call x]")

    async def act() -> None:
        await driven.until(lambda tx: tx.rows("SELECT 1 FROM invocations WHERE status = 'running'"))
        answer = await api_send(api, path)
        assert answer["summary_task_key"] == "compaction-1"
        assert (answer["task_key"], answer["task_status"]) == ("r1", "running")
        assert (answer["turn_kind"], answer["turn_status"]) == ("direct_reply", "running")
        await driven.settled()

    driven.during(act)
    made = api.post(path, json={})
    assert (made.status_code, made.json()["turn_kind"]) == (202, "compaction_summary")
    assert api.get(f"{api.v3}/sessions/{session_id}").json()["status"] == "running"
    driven.settle()
    assert api.get(f"{api.v3}/sessions/{session_id}").json()["status"] == "exit"
    assert api.post(path, json={}).json()["error"] == "already_compacted"
    # What is shown of a fork, or a later reader, begins with the summary.
    parts = api.post(f"{at}/context_estimate", json={}).json()["context_estimate"]["parts"]
    assert set(parts) == {"summary"}


async def api_send(api: Api, path: str) -> dict[str, Any]:
    answer = await api.send("POST", path, json={})
    assert answer.status_code == 202
    found: dict[str, Any] = answer.json()
    return found


def test_an_estimate_writes_nothing_and_shows_no_secret(
    api: Api, world: tuple[Driven, str, str]
) -> None:
    driven, _, at = world
    before = driven.rows("SELECT next_sequence, next_step, updated_at FROM conversations")
    answer = api.post(f"{at}/context_estimate", json={})
    assert answer.status_code == 200
    found = answer.json()["context_estimate"]
    assert found["model"] == {"provider_id": "dev", "model_ref": "thinker"}
    assert (found["window_tokens"], found["compacts_at_tokens"]) == (200_000, 160_000)
    assert found["used_percent"] == round(found["input_tokens"] / 2_000, 1)
    assert "entries" not in found
    rendered = api.post(
        f"{at}/context_estimate",
        json={"context_estimate": {"render": True, "text": "And now?", "model": "openai/gpt-5.1"}},
    )
    estimate = rendered.json()["context_estimate"]
    assert estimate["window_tokens"] == 400_000
    assert estimate["input_tokens"] > found["input_tokens"]
    assert [entry["role"] for entry in estimate["entries"]] == ["user", "assistant", "user"]
    assert SECRET not in rendered.text
    assert "[redacted-secret]" in rendered.text
    assert driven.rows("SELECT next_sequence, next_step, updated_at FROM conversations") == before
    bad = api.post(f"{at}/context_estimate", json={"context_estimate": {"model": "x"}})
    assert bad.status_code == 400
    assert api.post(f"{at}/context_estimate", json={}, key="member:stranger").status_code == 404
