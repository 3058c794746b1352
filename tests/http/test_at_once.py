"""Two clients who do the same at once: it is done once, and both are told how it is."""

import pytest

import story
from model import answering


@pytest.fixture
def started(api, database, org):
    """A session whose agent is in the middle of a call; returns its id, workspace and run."""
    made = api.post(f"{api.v3}/sessions", json={"prompt": "go", "model": "dev/small"}).json()
    with database.read() as tx:
        workspace, candidate = tx.row(
            "SELECT w.public_id, v.public_id FROM workspaces w JOIN conversations c"
            " ON c.workspace_id = w.id JOIN turns t ON t.conversation_id = c.id"
            " JOIN variants v ON v.turn_id = t.id WHERE c.public_id = :id",
            id=made["session_id"],
        )
    answering.hear(database, candidate, answering.ask(database, candidate), "I look.", "", 1)
    with database.read() as tx:
        run = tx.value("SELECT public_id FROM runs")
    return made["session_id"], workspace, run


def ends(api, session, workspace):
    """How often the journal, the feed and the events of the session tell of an end."""
    key = api.key("api")
    feed = api.get(f"{api.v3}/sessions/{session}/conversation", key=key).json()["items"]
    path = f"{api.agent}/workspaces/{workspace}/conversations/{session}/events?limit=200"
    journal = api.get(path).json()["events"]
    return (
        [item["status"] for item in feed if item["kind"] == "reply"],
        [e["payload"]["status"] for e in journal
         if e["type"] == "turn_status" and e["payload"].get("status") == "canceled"],
    )  # fmt: skip


def test_a_session_is_cancelled_by_both_families_at_once(api, started):
    session, workspace, run = started
    whole = f"{api.agent}/workspaces/{workspace}"
    requests = [
        ("POST", f"{api.v3}/sessions/{session}/cancel", {}),
        ("POST", f"{whole}/conversations/{session}/cancellation", {}),
        ("POST", f"{whole}/runs/{run}/cancellation", {}),
    ]
    answers = api.together(*requests * 3)
    told = [(answer.status_code, answer.json()) for answer in answers]
    for status, body in told[0::3]:
        assert (status, body["status"], body["reason_code"]) == (200, "cancelled", "run_cancelled")
    for status, body in told[1::3]:
        assert status == 202 or (status, body["error"]["code"]) == (422, "not_running")
    for status, body in told[2::3]:
        assert status == 202 or (status, body["error"]["code"]) == (409, "run_settled")
    assert ends(api, session, workspace) == (["cancelled"], ["canceled"])
    # The next turn works.
    sent = api.post(f"{api.v3}/sessions/{session}/messages", json={"message": "again"})
    assert sent.status_code == 202
    assert api.get(f"{api.v3}/sessions/{session}").json()["status"] == "running"


def test_one_who_cancels_and_one_who_speaks_are_both_heard(api, started):
    session, workspace, _ = started
    cancel = ("POST", f"{api.v3}/sessions/{session}/cancel", {})
    speak = ("POST", f"{api.v3}/sessions/{session}/messages", {"json": {"message": "wait"}})
    ended, said = api.together(cancel, speak)
    assert (ended.status_code, said.status_code) == (200, 202)
    feed = api.get(f"{api.v3}/sessions/{session}/conversation").json()["items"]
    assert [item["content"] for item in feed if item["kind"] == "message"] == ["wait"]
    assert ends(api, session, workspace)[0].count("cancelled") >= 1


def test_of_several_who_cancel_one_has_stopped_it(api, database, org):
    where = story.place(database, org.owner)
    said = database.write(lambda tx: story.open_run(tx, where))
    assert said.run is not None
    cancels = [("POST", f"{where.path}/cancellation", {})] * 4
    codes = [answer.status_code for answer in api.together(*cancels)]
    assert sorted(codes) == [202, 422, 422, 422]
