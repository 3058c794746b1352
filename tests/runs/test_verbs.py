"""Runs, tasks and model calls through their verbs: keys, pointers, ends, and what is told."""

import pytest

import story
from stenograph.conversations import events, turn, variant
from stenograph.errors import ConflictError
from stenograph.runs import invocation, reasoning, run, task
from stenograph.runs.candidate import Candidate
from stenograph.runs.invocation import Usage
from stenograph.runs.task import Call


@pytest.fixture
def where(database, org):
    return story.place(database, org.owner)


def test_keys_number_rounds_and_their_calls(database, where):
    """agent-api.md 4.2: `r1`; its calls `r2t0`, `r2t1`; the round that reads them `r2`."""

    def make(tx):
        said = story.open_run(tx, where)
        first = task.add_round(tx, said.run)
        calls = task.add_calls(tx, said.run, first, [Call("a", "{}"), Call("b", "{}")])
        branch = task.add_round(tx, said.run, branch=calls[0])
        inner = task.add_calls(tx, said.run, branch, [Call("c", "{}")])
        after = task.add_round(tx, said.run, after=inner, branch=calls[0])
        second = task.add_round(tx, said.run, after=calls)
        return [one.key for one in (first, *calls, branch, *inner, after, second)]

    assert database.write(make) == ["r1", "r2t0", "r2t1", "r3", "r4t0", "r4", "r2"]


def test_parents_and_marks(database, where):
    def make(tx):
        said = story.open_run(tx, where)
        first = task.add_round(tx, said.run)
        call, script = task.add_calls(
            tx, said.run, first, [Call("a", "{}"), Call("b", "{}", script="r2t0")]
        )
        branch = task.add_round(tx, said.run, branch=call)
        return first, call, script, branch

    first, call, script, branch = database.write(make)
    assert (call.parent_id, call.round_id, call.call_index) == (first.id, first.id, 0)
    assert (script.parent_id, script.round_id, script.call_index) == (call.id, first.id, 1)
    assert (branch.parent_id, branch.mainline, first.mainline) == (call.id, 0, 1)


def test_a_key_is_used_once_in_a_run(database, where):
    def make(tx):
        said = story.open_run(tx, where)
        task.add_round(tx, said.run, key="same")
        task.add_round(tx, said.run, key="same")

    with pytest.raises(Exception, match=r"(?i)unique"):
        database.write(make)


@pytest.mark.parametrize("status", ["failed", "canceled", "timed_out"])
def test_a_call_that_ended_badly_leaves_no_text_and_still_costs(database, where, status):
    def make(tx):
        said = story.open_run(tx, where)
        first = task.add_round(tx, said.run)
        call = invocation.select(tx, said.run, first, story.THINKER)
        invocation.settle(
            tx, call, status, message="m", reasoning="r", reasoning_trace="t", response="{}",
            usage=Usage(prompt_tokens=3),
        )  # fmt: skip
        kept = tx.row(
            "SELECT message, reasoning, reasoning_trace, response FROM invocation_details"
            " WHERE invocation_id = :id",
            id=call.id,
        )
        spent = tx.value("SELECT prompt_tokens FROM usage_receipts")
        return kept, spent

    kept, spent = database.write(make)
    assert kept in (None, (None, None, None, None))
    assert spent == 3


def test_a_retry_supersedes(database, where):
    def make(tx):
        said = story.open_run(tx, where)
        first = task.add_round(tx, said.run)
        for text in ("first try", "second try"):
            call = invocation.select(tx, said.run, first, story.THINKER)
            invocation.settle(tx, call, reasoning=text)
        numbers = tx.rows("SELECT number FROM invocations ORDER BY id")
        page = reasoning.page(tx, Candidate(said.turn, said.variant, said.run))
        return [n for (n,) in numbers], [item.text for item in page.items]

    assert database.write(make) == ([1, 2], ["second try"])


def test_only_one_turn_is_answered_at_a_time(database, where):
    database.write(lambda tx: story.open_run(tx, where))
    with pytest.raises(ConflictError) as raised:
        database.write(lambda tx: turn.open(tx, where.conversation.id))
    assert raised.value.code == "conversation_busy"


def test_canceling_ends_what_is_under_way_and_nothing_else(database, where):
    def make(tx):
        said = story.open_run(tx, where)
        done = task.add_round(tx, said.run)
        story.think(tx, said, done, "x")
        live = task.add_round(tx, said.run)
        call = invocation.select(tx, said.run, live, story.THINKER)
        ended = run.cancel(tx, said.run, "stopped")
        return (
            ended.status,
            task.find(tx, ended, done.key).status,
            task.find(tx, ended, live.key).status,
            tx.value("SELECT status FROM invocations WHERE id = :id", id=call.id),
        )

    assert database.write(make) == ("canceled", "completed", "canceled", "canceled")


def test_the_journal_tells_of_every_change_in_order(database, org, where):
    said = story.rounds(database, where, ["a", "b"])
    with database.read() as tx:
        told = [
            (e.type, e.payload.get("task_key")) for e in events.page(tx, where.conversation, 0, 200)
        ]
    assert told == [
        ("turn_created", None),
        ("turn_variant", None),
        ("task_status", "r1"),
        ("task_status", "r1"),
        ("usage", "r1"),
        ("round_result", "r1"),
        ("task_status", "r2t0"),
        ("task_status", "r2t0"),
        ("task_status", "r2"),
        ("task_status", "r2"),
        ("usage", "r2"),
        ("round_result", "r2"),
        ("turn_status", None),
        ("turn_status", None),
    ]
    with database.read() as tx:
        *_, note, end = events.page(tx, where.conversation, 0, 200)
    assert note.payload["run_status"] == "completed"
    assert end.payload["status"] == "completed"
    assert end.payload["turn_public_id"] == said.turn.public_id


def test_a_candidate_that_is_not_shown_settles_without_its_turn(database, where):
    said = story.rounds(database, where, ["a"])

    def settle(tx):
        other = variant.add(tx, said.turn, source="run", activate=False)
        variant.settle(tx, said.turn, other, "failed", failure_reason="refused")
        return turn.find(tx, where.conversation, said.turn.public_id)

    found = database.write(settle)
    assert (found.status, found.active_variant_id) == ("completed", said.variant.id)
