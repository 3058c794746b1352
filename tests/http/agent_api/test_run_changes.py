"""Stopping, giving up and retrying runs over HTTP: answers, refusals, their order."""

import pytest

import story
from stenograph.conversations import variant
from stenograph.runs import approval, run, task
from stenograph.runs.task import Call

VERBS = ("cancellation", "abandonment", "retry", "tasks/r1/retry")


@pytest.fixture
def where(database, org):
    return story.place(database, org.owner)


def failed(database, where, *, status="failed"):
    """A run of one good round, whose second one gave no answer."""

    def make(tx):
        said = story.open_run(tx, where)
        first = task.add_round(tx, said.run)
        story.think(tx, said, first, "I look.")
        calls = task.add_calls(tx, said.run, first, [Call("ls", "{}")])
        task.settle(tx, said.run, calls[0], output="README.md")
        story.think(tx, said, task.add_round(tx, said.run, after=calls), None, status="failed")
        run.cancel(tx, said.run, "quota_exhausted")
        variant.settle(tx, said.turn, said.variant, status, failure_reason="quota_exhausted")
        return said

    return database.write(make)


def refused(answer):
    return answer.status_code, answer.json()["error"]["code"]


def test_a_failed_run_waits_to_go_on(api, database, where):
    said = failed(database, where)
    answer = api.post(where.run(said) + "/retry")
    assert answer.status_code == 202
    found = answer.json()["run"]
    assert found["status"] == "running"
    assert not {"failure_reason", "completed_at"} & set(found)
    assert [(t["task_key"], t["status"]) for t in found["tasks"]] == [
        ("r1", "completed"),
        ("r2t0", "completed"),
        ("r2", "waiting"),
    ]
    assert found["turn"]["status"] == "pending"
    assert api.get(where.path).json()["conversation"]["active_turn_public_id"] == (
        said.turn.public_id
    )
    events = [e["payload"] for e in api.get(f"{where.path}/events").json()["events"]]
    assert events[-3] == {
        "turn_public_id": said.turn.public_id,
        "variant_public_id": said.variant.public_id,
        "run_public_id": said.run.public_id,
        "task_key": "r2",
        "status": "waiting",
    }
    assert (events[-2]["run_status"], events[-1]["status"]) == ("running", "pending")


def test_a_failed_task_is_named(api, database, where):
    said = failed(database, where, status="timed_out")
    for key, wanted in (
        ("r1", (409, "not_eligible")),
        ("r2t0", (409, "not_eligible")),
        ("r9", (404, "not_found")),
    ):
        assert refused(api.post(where.run(said) + f"/tasks/{key}/retry")) == wanted
    assert api.post(where.run(said) + "/tasks/r2/retry").status_code == 202
    assert refused(api.post(where.run(said) + "/tasks/r2/retry")) == (409, "not_terminal")
    assert refused(api.post(where.run(said) + "/retry")) == (409, "not_terminal")


def test_only_the_newest_turn_goes_on_and_only_when_nothing_does(api, database, where):
    said = failed(database, where)
    story.message(database, where)
    assert refused(api.post(where.run(said) + "/retry")) == (409, "branch_required")
    database.write(lambda tx: story.open_run(tx, where))
    assert refused(api.post(where.run(said) + "/retry")) == (409, "conversation_busy")


def test_a_run_that_did_not_fail_is_settled(api, database, where):
    said = story.rounds(database, where, ["a"])
    for verb in ("cancellation", "abandonment", "retry", "tasks/r1/retry"):
        assert refused(api.post(f"{where.run(said)}/{verb}")) == (409, "run_settled")


def test_a_running_run_is_stopped_with_what_it_has_under_way(api, database, where):
    said = story.branched(database, where)
    assert refused(api.post(where.run(said) + "/abandonment")) == (409, "run_live")
    answer = api.post(where.run(said) + "/cancellation")
    assert answer.status_code == 202
    found = answer.json()["run"]
    assert (found["status"], found["failure_reason"]) == ("canceled", "run_cancelled")
    assert found["turn"]["status"] == "canceled"
    assert {t["status"] for t in found["tasks"]} == {"completed", "canceled", "failed"}
    assert refused(api.post(where.run(said) + "/cancellation")) == (409, "run_settled")


def test_a_run_that_waits_for_an_approval_is_given_up(api, database, where):
    said = database.write(lambda tx: story.open_run(tx, where))

    def ask(tx):
        (call,) = task.add_calls(tx, said.run, task.add_round(tx, said.run), [Call("rm", "{}")])
        approval.request(tx, said.run, call)

    database.write(ask)
    assert api.get(where.run(said)).json()["run"]["attention"] == {
        "reason": "approval",
        "task_keys": ["r2t0"],
    }
    answer = api.post(where.run(said) + "/abandonment")
    assert answer.status_code == 200
    found = answer.json()["run"]
    assert (found["status"], found["failure_reason"]) == ("canceled", "abandoned")
    assert found["turn"]["status"] == "failed"
    assert refused(api.post(where.run(said) + "/retry")) == (409, "run_settled")


def test_a_held_run_is_given_up_with_its_own_reason(api, database, where):
    said = story.branched(database, where)
    database.write(lambda tx: run.move(tx, said.run, "needs_attention", reason="refused"))
    found = api.post(where.run(said) + "/abandonment").json()["run"]
    assert (found["status"], found["failure_reason"]) == ("canceled", "refused")
    assert "attention" not in found


def test_who_reads_may_not_and_what_is_pruned_is_gone(api, database, org, where):
    said = failed(database, where)
    story.run_sql(database, "UPDATE conversations SET access_default = 'read'")
    for verb in VERBS:
        answer = api.post(f"{where.run(said)}/{verb}", key="member:agent")
        assert refused(answer) == (403, "not_authorized")
    story.run_sql(database, "DELETE FROM tasks")
    story.run_sql(database, "UPDATE runs SET details_pruned_at = 1")
    for verb in (*VERBS, "tasks/nope/retry"):
        answer = api.post(f"{where.run(said)}/{verb}", key="member:agent")
        assert refused(answer) == (403, "not_authorized")
        assert refused(api.post(f"{where.run(said)}/{verb}")) == (410, "execution_details_pruned")
    decision = {"approval": {"decision": "approve"}}
    approved = f"{where.run(said)}/tasks/r2t0/approval"
    assert refused(api.post(approved, json=decision)) == (410, "execution_details_pruned")
    assert api.post(approved, json=decision, key="member:agent").status_code == 403


def test_an_archive_is_read_only_and_a_stop_is_always_possible(api, database, where):
    said = failed(database, where)
    other = story.another(database, where)
    running = database.write(lambda tx: story.open_run(tx, other))
    story.archive(database, where)
    assert refused(api.post(where.run(said) + "/retry")) == (409, "conversation_archived")
    story.run_sql(database, "UPDATE conversations SET archived_at = 1")
    assert api.post(where.run(running) + "/cancellation").status_code == 202
