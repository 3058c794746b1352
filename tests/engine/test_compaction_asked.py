"""Summaries that somebody asks for: a turn of its own, or before the next round; and who goes by
them afterwards: forks, imports, answers made anew."""

import json
from typing import Any

import pytest

from engine.driving import Driven, scene
from engine.test_compaction import SUMMARY, compactions, events, first_text, requests
from engine.test_history import ask, told, view
from engine.test_rounds import account, facts, feed, tasks, valid
from engine.test_turns import SLOW, candidates, conversation_of, running
from stenograph.conversations import fork
from stenograph.conversations import turn as turns
from stenograph.conversations.access import Conversation, find, find_workspace
from stenograph.engine import context, start
from stenograph.engine.choice import Rules
from stenograph.engine.compaction import Wish
from stenograph.engine.context import Compacting, Estimate
from stenograph.errors import ConflictError, InvalidInputError
from stenograph.retention.integrity import check
from stenograph.sessions import session
from stenograph.storage.database import Tx
from stenograph.trajectories.importers import atif
from stenograph.trajectories.recording.record import record

SUMMED = "A person asked, and some of it is done."
#: Sums up for about half a second.
SLOW_SUMMARY = scene(
    """
[summary]
say = "It is summed up at leisure, a few letters at a time."
pause_ms = 150
[[round]]
say = "Heard."
"""
)


def compact(driven: Driven, session_id: str, **wish: Any) -> Compacting:
    def act(tx: Tx) -> Compacting:
        found = session.find(tx, driven.owner, session_id)
        conversation = context.of_session(tx, found.id)
        return context.compact(tx, driven.owner, conversation, Wish(**wish))

    return driven.write(act)


def talked(driven: Driven, *prompts: str) -> tuple[str, Conversation]:
    session_id = driven.open(prompts[0], model="dev/small")
    driven.settle()
    for prompt in prompts[1:]:
        driven.say(session_id, prompt)
        driven.settle()
    return session_id, conversation_of(driven, candidates(driven)[0][1])


def refusal(driven: Driven, session_id: str) -> str:
    with pytest.raises(ConflictError) as refused:
        compact(driven, session_id)
    return refused.value.code


def test_a_quiet_conversation_is_summed_up_by_a_turn_of_its_own(driven: Driven) -> None:
    session_id, _ = talked(driven, "one", "two")
    before = account(driven, session_id).input_tokens or 0
    made = compact(driven, session_id)
    assert (made.turn.kind, made.turn.role) == ("compaction_summary", "assistant")
    assert (made.task, made.summary_key) == (None, None)
    assert facts(driven, session_id).status == "running"
    driven.settle()
    found = facts(driven, session_id)
    assert (found.status, found.outcome) == ("exit", "success")
    assert candidates(driven)[-1][2:5] == ("completed", "completed", SUMMED)
    # It is nothing that was said to anybody, nor the session's result.
    assert [it[0] for it in feed(driven, session_id)] == ["prompt", "reply", "message", "reply"]
    summary = driven.read(lambda tx: session.details(tx, [found])[found.id].result_summary)
    assert summary == "You said: two"
    assert (account(driven, session_id).input_tokens or 0) > before
    assert tasks(driven, session_id)[-1][:3] == ("r1", "model_task", "completed")
    assert ask(driven, session_id) == [
        ("user", "[stenograph] This conversation was compacted: earlier turns are summed up here."
         f"\n\n<summary>\n{SUMMED}\n</summary>"),
        ("user", "now"),
    ]  # fmt: skip
    document = valid(driven, session_id)
    assert [step["source"] for step in document["steps"]] == [
        "user", "agent", "user", "agent", "agent", "system", "user", "agent",
    ]  # fmt: skip
    assert compactions(document)[0]["observation"]["results"][0]["content"] == SUMMED
    assert check(driven.database) == []


def test_what_is_summed_up_is_not_summed_up_again(driven: Driven) -> None:
    session_id, _ = talked(driven, "one")
    compact(driven, session_id)
    assert refusal(driven, session_id) == "already_compacted"  # it is being done
    driven.settle()
    assert refusal(driven, session_id) == "already_compacted"  # it is done
    driven.say(session_id, "two")
    driven.settle()
    compact(driven, session_id, model="dev/thinker", reasoning_effort="low")
    driven.settle()
    made = driven.rows(
        "SELECT i.model_ref, i.reasoning_effort FROM invocations i ORDER BY i.id DESC LIMIT 1"
    )
    assert made == [("thinker", "low")]
    # The second stands for the first.
    assert "<summary>" in requests(driven)[-1][1]["parts"][0]["text"]
    assert [len(ask(driven, session_id)), len(compactions(valid(driven, session_id)))] == [2, 2]


def test_a_summary_counts_as_long_as_its_turn_is_shown(driven: Driven) -> None:
    session_id, conversation = talked(driven, "one")
    compact(driven, session_id)
    driven.settle()
    driven.say(session_id, "two")
    driven.settle()
    assert told(driven)[0][1].startswith("[stenograph]")
    view(driven, conversation, 1, visibility="excluded_from_context")
    assert ask(driven, session_id)[0] == ("user", "one")


def test_a_summary_that_fails_leaves_the_conversation_as_it_was(driven: Driven) -> None:
    failing = scene('[summary]\nfail = { kind = "refused" }\n[[round]]\nsay = "Heard."\n')
    session_id, _ = talked(driven, failing)
    compact(driven, session_id)
    driven.settle()
    found = facts(driven, session_id)
    assert (found.status, found.outcome, found.reason_code) == ("exit", "success", None)
    assert candidates(driven)[-1][2:5] == ("failed", "failed", None)
    assert ask(driven, session_id)[0] == ("user", failing)
    assert compactions(valid(driven, session_id)) == []
    assert check(driven.database) == []


def test_words_that_come_meanwhile_are_the_next_turn(driven: Driven) -> None:
    session_id, _ = talked(driven, SLOW_SUMMARY)
    compact(driven, session_id)

    async def act() -> None:
        await driven.until(running("model", "running"))
        driven.say(session_id, "And now?")
        driven.say(session_id, "Quickly!")
        await driven.settled()

    driven.during(act)
    assert facts(driven, session_id).outcome == "success"
    # A summary was asked for, not the words: they are answered, and steer nothing that sums up.
    assert [(kind, text) for kind, text, *_ in feed(driven, session_id)][2:] == [
        ("message", "And now?"), ("message", "Quickly!"), ("reply", "You said: And now?"),
    ]  # fmt: skip
    assert [text for _, text in told(driven)][1:] == ["And now?", "Quickly!"]
    document = valid(driven, session_id)
    assert [step["source"] for step in document["steps"]] == [
        "user", "agent", "agent", "system", "user", "user", "agent",
    ]  # fmt: skip
    assert check(driven.database) == []


def test_it_is_summed_up_before_the_next_round_of_a_turn_that_runs(driven: Driven) -> None:
    session_id = driven.open("one")
    prompt = scene(
        f'{SUMMARY}[[round]]\nsay = "Look. "\nrepeat = 9\npause_ms = 60\ncall = [{{tool = "glob"}}]'
        '\n[[round]]\nsay = "Then. "\ncall = [{tool = "read"}]\n[[round]]\nsay = "Done."\n'
    )
    driven.settle()
    driven.say(session_id, prompt)
    made: list[Compacting] = []

    async def act() -> None:
        await driven.until(running("model", "running"))
        made.append(compact(driven, session_id))
        assert refusal(driven, session_id) == "already_compacted"
        await driven.settled()

    driven.during(act)
    assert made[0].summary_key == "compaction-1"
    assert made[0].task is not None
    assert (made[0].task.key, made[0].task.status) == ("r1", "running")
    assert [it[:3] for it in tasks(driven, session_id) if it[3] == "compaction"] == [
        ("compaction-1", "model_task", "completed")
    ]
    # The turn before is summed up; of the running one the round stays whose results are due.
    second = next(it for it in requests(driven) if "<summary>" in first_text(it))
    assert [entry["role"] for entry in second] == ["user", "user", "assistant", "tool"]
    assert events(driven, "context_compacted")[0]["turns"] == 1
    assert feed(driven, session_id)[-1][1] == "Done."
    valid(driven, session_id)
    assert check(driven.database) == []


def test_a_turn_that_ends_before_it_could_be_summed_up_skips_it(driven: Driven) -> None:
    session_id = driven.open(SLOW)

    async def act() -> None:
        await driven.until(running("model", "running"))
        compact(driven, session_id)
        await driven.settled()

    driven.during(act)
    assert [it[:3] for it in tasks(driven, session_id)][1:] == [
        ("compaction-1", "model_task", "skipped")
    ]
    assert facts(driven, session_id).outcome == "success"
    assert check(driven.database) == []


def test_who_asks_in_vain(driven: Driven) -> None:
    policy = {"options": {"session_policy": {"compaction": False}}}
    session_id = driven.open("one", **policy)
    assert refusal(driven, session_id) == "compaction_disabled"
    waiting = driven.open("one")
    assert refusal(driven, waiting) == "task_not_queued"
    driven.settle()
    compact(driven, waiting)
    driven.write(lambda tx: start.cancel_session(tx, driven.owner, waiting))
    assert candidates(driven)[-1][2] == "canceled"
    assert driven.rows("SELECT count(*) FROM variants WHERE status = 'pending'") == [(0,)]
    assert check(driven.database) == []


def test_a_fork_goes_by_the_summary_of_what_it_inherits(driven: Driven) -> None:
    session_id, source = talked(driven, "one")
    compact(driven, session_id)
    driven.settle()
    for text in ("two", "three"):
        driven.say(session_id, text)
        driven.settle()
    named = {row[4]: row[0] for row in candidates(driven)}

    def branch(tx: Tx, answer: str) -> Conversation:
        [(workspace,)] = tx.rows(
            "SELECT w.public_id FROM workspaces w JOIN conversations c ON c.workspace_id = w.id"
            " WHERE c.public_id = :id", id=session_id,
        )  # fmt: skip
        place = find_workspace(tx, driven.owner, workspace)
        return fork.create(tx, driven.owner, place, source, named[answer])

    later = driven.write(lambda tx: branch(tx, "You said: three"))
    driven.ask(later, "now", model="dev/small")
    driven.settle()
    assert [text for _, text in told(driven)][1:] == [
        "two", "You said: two", "three", "You said: three", "now",
    ]  # fmt: skip
    assert "<summary>" in told(driven)[0][1]
    # It lies behind the point at which this one left.
    earlier = driven.write(lambda tx: branch(tx, "You said: one"))
    driven.ask(earlier, "now", model="dev/small")
    driven.settle()
    assert [text for _, text in told(driven)] == ["one", "You said: one", "now"]
    # And what a fork does not show does not count for it.
    summary = named[SUMMED]
    driven.write(
        lambda tx: turns.set_view_state(tx, later, summary, visibility="excluded_from_context")
    )
    driven.ask(later, "again", model="dev/small")
    driven.settle()
    assert told(driven)[0] == ("user", "one")


def test_a_fork_of_an_import_goes_by_the_compaction_of_its_log(driven: Driven) -> None:
    replaced = {"context_management": {"type": "compaction", "boundary": "replace"}}
    document = {
        "schema_version": "ATIF-v1.7",
        "session_id": "s",
        "agent": {"name": "somebody", "version": "1"},
        "steps": [
            {"step_id": 1, "source": "user", "message": "A"},
            {"step_id": 2, "source": "agent", "message": "To A."},
            {
                "step_id": 3,
                "source": "system",
                "message": "Compacted.",
                "extra": replaced,
                "observation": {"results": [{"content": "SUM"}]},
            },
            {"step_id": 4, "source": "user", "message": "B"},
            {"step_id": 5, "source": "agent", "message": "To B."},
            {"step_id": 6, "source": "user", "message": "C"},
            {"step_id": 7, "source": "agent", "message": "To C."},
        ],
    }

    def branch(tx: Tx) -> Conversation:
        record(tx, driven.owner, atif.read(json.dumps(document).encode()))
        [(workspace, conversation, turn)] = tx.rows(
            "SELECT w.public_id, c.public_id, t.public_id FROM turns t"
            " JOIN conversations c ON c.id = t.conversation_id"
            " JOIN workspaces w ON w.id = c.workspace_id ORDER BY t.position DESC LIMIT 1"
        )
        place = find_workspace(tx, driven.owner, workspace)
        source = find(tx, driven.owner, workspace, conversation)
        return fork.create(tx, driven.owner, place, source, turn)

    made = driven.write(branch)
    driven.ask(made, "now", model="dev/small")
    driven.settle()
    texts = [text for _, text in told(driven)]
    assert "SUM" in texts[0]
    # The summary lies in A's turn, whose prompt stays beside it; what was answered does not.
    assert texts[1:] == ["A", "To A.", "B", "To B.", "C", "To C.", "now"]


def test_what_is_estimated_is_what_would_be_told(driven: Driven) -> None:
    session_id, conversation = talked(driven, "one", "[dev:call glob]")

    def look(tx: Tx, model: str | None = None, text: str | None = None) -> Estimate:
        return context.estimate(tx, conversation, Rules(), model, text)

    found = driven.read(look)
    assert (str(found.model), found.window, found.compacts_at) == ("dev/small", 200_000, 160_000)
    assert set(found.parts) == {"turn"}
    [(prompt, completion)] = driven.rows(
        "SELECT prompt_tokens, completion_tokens FROM usage_receipts ORDER BY id DESC LIMIT 1"
    )
    # The last call's own count is the truth for everything up to it.
    assert found.total == prompt + completion
    longer = driven.read(lambda tx: look(tx, "anthropic/claude-sonnet-4-5", "word " * 700))
    assert longer.total - found.total == longer.parts["prompt"] == 1_005
    driven.say(session_id, "word " * 700)
    driven.settle()
    assert [m.text or m.parts[0].output for m in longer.messages] == [  # type: ignore[union-attr]
        text for _, text in told(driven)
    ]
    with pytest.raises(InvalidInputError):
        driven.read(lambda tx: look(tx, "nobody"))
