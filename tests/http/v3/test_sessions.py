"""Sessions over HTTP: created for agents that run elsewhere, listed, read, cancelled."""

import pytest

from model import answering
from stenograph.engine import store
from stenograph.retention.integrity import check

KEYS = {
    "session_id", "organization_id", "reason_id", "parent_session_id", "child_session_ids", "title",
    "tags", "mode", "status", "outcome", "result_summary", "model", "reasoning_effort", "usage",
    "cost_usd", "error_class", "reason_code", "recorded", "session_policy",
    "experimental_runtime_profile", "experimental_runtime_features", "created_at", "started_at",
    "ended_at",
}  # fmt: skip
AGENT = {"name": "pilot", "version": "2.0", "model_name": "m"}


@pytest.fixture
def sessions(api):
    return f"{api.v3}/sessions"


def create(api, **body):
    answer = api.post(f"{api.v3}/sessions", json={"recorded": True, **body})
    assert answer.status_code == 201, answer.text
    return answer.json()


def steps(api, session_id, *sent, **more):
    answer = api.post(f"{api.v3}/sessions/{session_id}/steps", json={"steps": sent, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()


def said(step_id, message, **more):
    return {"step_id": step_id, "source": "agent", "message": message, "model_name": "m", **more}


def test_a_recorded_session_from_its_prompt_to_its_end(api, sessions):
    made = create(api, prompt="Fix  the\nbug", agent=AGENT, tags=["ci"], mode="ephemeral")
    assert set(made) == KEYS
    assert (made["title"], made["tags"], made["mode"]) == ("Fix the bug", ["ci"], "ephemeral")
    assert (made["status"], made["outcome"], made["ended_at"]) == ("running", None, None)
    assert (made["recorded"], made["model"]) == (True, "m")
    assert made["usage"] == {
        "input_tokens": None, "cached_input_tokens": None, "output_tokens": None,
    }  # fmt: skip
    metrics = {"prompt_tokens": 10, "cached_tokens": 0, "completion_tokens": 3, "cost_usd": 0.25}
    steps(api, made["session_id"], said(2, "Fixed.", metrics=metrics), finish={})
    found = api.get(f"{sessions}/{made['session_id']}").json()
    assert (found["status"], found["outcome"]) == ("exit", "success")
    assert found["result_summary"] == "Fixed."
    assert found["usage"] == {"input_tokens": 10, "cached_input_tokens": 0, "output_tokens": 3}
    assert found["cost_usd"] == 0.25
    assert found["ended_at"] is not None
    document = api.get(f"{sessions}/{made['session_id']}/trajectory").json()
    assert document["agent"] == AGENT
    assert [step["message"] for step in document["steps"]] == ["Fix  the\nbug", "Fixed."]
    totals = document["final_metrics"]["extra"]["session_totals"]
    assert totals["total_prompt_tokens"] == 10
    assert totals["total_cost_usd"] == found["cost_usd"]


def test_the_prompt_may_come_with_the_steps_as_well(api, sessions):
    made = create(api)
    assert made["title"] is None
    steps(api, made["session_id"], {"step_id": 1, "source": "user", "message": "hi"}, said(2, "ho"))
    page = api.get(f"{sessions}/{made['session_id']}/conversation").json()
    assert [(i["kind"], i["content"]) for i in page["items"]] == [("prompt", "hi")]
    assert api.get(f"{sessions}/{made['session_id']}").json()["status"] == "running"


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({}, 400, "prompt_required"),
        ({"prompt": ""}, 400, "prompt_required"),
        ({"prompt": " ", "recorded": True}, 400, "prompt_required"),
        ({"prompt": None, "target": {"kind": "machine", "name": "m"}}, 400, "prompt_required"),
        ({"prompt": 1}, 400, "invalid_request"),
        (
            {"prompt": "x", "execution_budget": {"steps_max": -1}},
            400,
            "invalid_execution_budget",
        ),
        ({"prompt": "x", "model": ""}, 400, "invalid_model"),
        ({"prompt": "x", "reasoning_effort": "much"}, 400, "invalid_reasoning_effort"),
        ({"prompt": "x", "mode": "secret"}, 400, "invalid_request"),
        ({"recorded": True, "tags": ["a\nb"]}, 400, "invalid_tags"),
        ({"recorded": True, "agent": {"name": "x"}}, 400, "invalid_request"),
        ({"recorded": True, "secrets": ["NONE"]}, 404, "secret_not_found"),
        ({"recorded": True, "reason_id": "x"}, 404, "reason_not_found"),
        ("x", 400, "invalid_request"),
    ],
)
def test_a_session_that_cannot_be_created_leaves_nothing(api, sessions, body, status, code):
    answer = api.post(sessions, json=body)
    assert (answer.status_code, answer.json()["error"]) == (status, code)
    assert api.get(sessions).json()["items"] == []
    if code == "prompt_required":
        assert answer.json() == {"error": "prompt_required"}


def test_the_same_key_creates_one_session(api, sessions, org):
    body = {"recorded": True, "prompt": "x", "tags": ["a"], "idempotency_key": "k"}
    first, again = api.post(sessions, json=body), api.post(sessions, json=body)
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == again.json()
    reordered = api.post(sessions, json=dict(reversed(body.items())))
    assert reordered.json() == first.json()
    for change, code in (
        ({"prompt": "y"}, "idempotency_profile_conflict"),
        ({"mode": "ephemeral"}, "idempotency_target_conflict"),
        ({"agent": {"name": "a", "version": "1"}}, "idempotency_target_conflict"),
    ):
        answer = api.post(sessions, json={**body, **change})
        assert (answer.status_code, answer.json()["error"]) == (409, code)
    # Somebody else's key of the same name is another key.
    theirs = api.post(sessions, json={**body, "prompt": "y"}, key="api:member")
    assert theirs.status_code == 201
    assert len(api.get(sessions).json()["items"]) == 2


def test_what_was_asked_for_is_echoed(api):
    made = create(
        api,
        session_policy={"a": 1},
        experimental_runtime_profile="p",
        experimental_runtime_features=["f"],
        title="T",
        reasoning_effort="low",
        model="x/y",
    )
    assert made["session_policy"] == {"a": 1}
    assert made["experimental_runtime_profile"] == "p"
    assert made["experimental_runtime_features"] == ["f"]
    assert (made["title"], made["model"], made["reasoning_effort"]) == ("T", "x/y", "low")


def test_a_session_of_a_reason_is_as_close_as_the_reason(api, sessions):
    mine = api.post(f"{api.v3}/reasons", json={"name": "mine"}).json()
    made = create(api, prompt="x", reason_id=mine["id"])
    assert made["reason_id"] == mine["id"]
    own = f"{sessions}/{made['session_id']}"
    assert api.get(own).status_code == 200
    for key in ("api:admin", "api:member"):
        assert api.get(own, key=key).content == b'{"error":"session_not_found"}'
        assert api.get(sessions, key=key).json()["items"] == []
    theirs = {"recorded": True, "reason_id": mine["id"]}
    assert api.post(sessions, json=theirs, key="api:member").status_code == 404
    api.put(f"{api.v3}/reasons/{mine['id']}/shares", json={"people": ["member"]})
    assert api.get(own, key="api:member").status_code == 200
    assert api.post(sessions, json=theirs, key="api:member").status_code == 403


def test_lists_are_narrowed_and_paged(api, sessions):
    made = [create(api, prompt=f"p{n}", tags=[f"t{n % 2}"])["session_id"] for n in range(5)]

    def listed(**query):
        answer = api.get(sessions, params=query)
        assert answer.status_code == 200, answer.text
        return [s["session_id"] for s in answer.json()["items"]]

    newest_first = made[::-1]
    assert listed() == newest_first
    assert listed(tag="t1") == [made[3], made[1]]
    api.post(f"{sessions}/{made[2]}/cancel")
    assert listed(status="cancelled") == [made[2]]
    assert made[2] not in listed(status="running")
    at = api.get(f"{sessions}/{made[2]}").json()["created_at"]
    assert listed(created_after=at) == [made[4], made[3]]
    assert listed(created_before=at) == [made[1], made[0]]
    mine = api.post(f"{api.v3}/reasons", json={"name": "mine"}).json()["id"]
    assert listed(reason_id=mine) == []
    got, after = [], {}
    while True:
        page = api.get(sessions, params={"first": 2, **after}).json()
        got += [s["session_id"] for s in page["items"]]
        after = {"after": page["end_cursor"]}
        if not page["has_next_page"]:
            break
    assert got == newest_first


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("first=201", "invalid_first"),
        ("after=1", "invalid_cursor"),
        ("after=eyJpZCI6MSwiZGlyIjoiYXNjIn0", "invalid_cursor"),
        ("reason_id=x", "invalid_reason_id"),
        ("status=done", "invalid_status"),
        ("created_after=yesterday", "invalid_created_after"),
        ("created_before=", "invalid_created_before"),
    ],
)
def test_a_filter_that_is_none(api, sessions, query, code):
    answer = api.get(f"{sessions}?{query}")
    assert (answer.status_code, answer.json()) == (400, {"error": code})


def test_a_session_is_cancelled_by_who_may_drive_it(api, sessions):
    made = create(api, prompt="x")["session_id"]
    denied = api.post(f"{sessions}/{made}/cancel", key="api:member", json={})
    assert (denied.status_code, denied.json()["error"]) == (403, "forbidden")
    ended = api.post(f"{sessions}/{made}/cancel", key="api:admin", json={}).json()
    assert (ended["status"], ended["reason_code"]) == ("cancelled", "run_cancelled")
    assert ended["ended_at"] is not None
    assert api.post(f"{sessions}/{made}/cancel").json() == ended
    late = api.post(f"{sessions}/{made}/steps", json={"steps": [said(2, "late")]})
    assert (late.status_code, late.json()["error"]) == (409, "session_ended")
    items = api.get(f"{sessions}/{made}/conversation").json()["items"]
    assert [(i["kind"], i.get("status")) for i in items] == [
        ("prompt", None), ("reply", "cancelled"),
    ]  # fmt: skip


def test_who_cancels_at_once_makes_one_end(api, database, sessions):
    made = api.post(sessions, json={"prompt": "[dev:call look]"}).json()["session_id"]
    with database.read() as tx:
        (candidate,) = store.unsettled(tx)
        (workspace,) = tx.row(
            "SELECT w.public_id FROM workspaces w JOIN conversations c ON c.workspace_id = w.id"
            " WHERE c.public_id = :id",
            id=made,
        )
    asked = answering.ask(database, candidate)
    answering.hear(database, candidate, asked, "I look.", "", 1)
    conversation = f"{api.agent}/workspaces/{workspace}/conversations/{made}"
    run = f"{api.agent}/workspaces/{workspace}/runs/{answering.run_id(database, candidate)}"
    answers = api.together(
        ("POST", f"{sessions}/{made}/cancel", {"json": {}}),
        ("POST", f"{sessions}/{made}/cancel", {"json": {}}),
        ("POST", f"{conversation}/cancellation", {}),
        ("POST", f"{conversation}/cancellation", {}),
        ("POST", f"{run}/cancellation", {}),
        ("POST", f"{run}/cancellation", {}),
    )
    assert [it.json()["status"] for it in answers[:2]] == ["cancelled"] * 2
    for answer in answers[2:4]:
        late = answer.status_code == 422 and answer.json()["error"]["code"] == "not_running"
        assert late or answer.json()["conversation"]["active_turn_public_id"] is None
    for answer in answers[4:]:
        late = answer.status_code == 409 and answer.json()["error"]["code"] == "run_settled"
        assert late or answer.json()["run"]["status"] == "canceled"
    items = api.get(f"{sessions}/{made}/conversation").json()["items"]
    assert [(it["kind"], it.get("status")) for it in items] == [
        ("prompt", None), ("reply", "cancelled"),
    ]  # fmt: skip
    events = api.get(f"{conversation}/events", params={"limit": 100}).json()["events"]
    told = [it["payload"] for it in events if it["type"] == "turn_status"]
    assert [it["status"] for it in told if "status" in it] == ["running", "canceled"]
    assert check(database) == []


def test_a_recorded_session_takes_no_messages(api, sessions):
    made = create(api, prompt="x")["session_id"]
    answer = api.post(f"{sessions}/{made}/messages", json={"message": "y"})
    assert (answer.status_code, answer.json()["error"]) == (409, "session_target_unavailable")


def test_the_deployment_says_what_it_offers(api):
    found = api.get("/v3/deployment").json()
    assert found["session_modes"] == ["standard", "ephemeral"]
    assert "externally-managed" in found["workspace_ownerships"]
    for name in ("service", "environment", "commit_sha", "deployment_id", "checked_at"):
        assert found[name] is None or isinstance(found[name], str)
    narrow = api.key(wanted=["run"])
    assert api.get("/v3/deployment", key=narrow).json() == {
        "error": "missing_scope", "required_scope": "deployment:read",
    }  # fmt: skip
