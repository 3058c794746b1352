"""Turns that people steer, stop, ask again, limit; direct replies; outcomes that agents declare."""

import asyncio
from typing import Any

import pytest

from engine.driving import Driven, scene
from engine.test_rounds import account, facts, feed, invocations, tasks, valid
from stenograph.conversations import conversation as conversations
from stenograph.conversations import workspace as workspaces
from stenograph.conversations.access import Conversation
from stenograph.engine import start
from stenograph.engine.start import Wish
from stenograph.engine.work import load
from stenograph.errors import ConflictError, InvalidInputError
from stenograph.retention.integrity import check
from stenograph.sessions import activity, session

SLOW_TOOL = scene(
    """
[[round]]
say = "I wait."
call = [{ tool = "slow" }]
[[round]]
say = "It came: {results}"
"""
)


#: About a second, long enough to be steered, stopped or watched.
SLOW = scene(
    """
[[round]]
think = "One, two, three."
say = "It took its time, a few letters at once, and came to its end all the same. "
repeat = 4
pause_ms = 60
"""
)


def conversation_of(driven: Driven, candidate: str) -> Conversation:
    found = driven.read(lambda tx: load(tx, candidate))
    assert found is not None
    return found.conversation


def candidates(driven: Driven) -> list[tuple[Any, ...]]:
    return driven.rows(
        "SELECT t.public_id, v.public_id, t.status, v.status, v.content, t.active_variant_id = v.id"
        " FROM turns t JOIN variants v ON v.turn_id = t.id ORDER BY v.id"
    )


def running(kind: str, status: str) -> Any:
    return lambda tx: tx.rows(
        "SELECT k.id FROM tasks k JOIN invocations i ON i.id = k.selected_invocation_id"
        " WHERE k.status = 'running' AND i.status = 'running'"
        if kind == "model"
        else f"SELECT id FROM tasks WHERE kind = 'tool_task' AND status = '{status}'"
    )


# --- steering ----------------------------------------------------------------------------------


def test_a_steer_that_comes_while_a_model_speaks_is_read_by_the_next_round(driven: Driven) -> None:
    session_id = driven.open(SLOW)

    async def act() -> None:
        await driven.until(running("model", "running"))
        # Not yet answered, the call has its place and no step.
        assert [step["source"] for step in valid(driven, session_id)["steps"]] == ["user"]
        driven.say(session_id, "Say this instead")
        await driven.settled()

    driven.during(act)
    document = valid(driven, session_id)
    assert [step["source"] for step in document["steps"]] == ["user", "agent", "user", "agent"]
    assert document["steps"][2]["message"] == "Say this instead"
    assert [it[0] for it in tasks(driven, session_id)] == ["r1", "r2"]
    assert [it[0] for it in feed(driven, session_id)] == ["prompt", "message", "reply"]
    assert check(driven.database) == []


def test_words_that_come_before_the_end_is_declared_are_read_first(driven: Driven) -> None:
    ending = scene(
        """
[[round]]
think = "One, two, three, so that somebody can say something meanwhile."
say = "I am done, I think. "
pause_ms = 100
call = [{ tool = "finish", arguments = { outcome = "success", summary = "Done." } }]
[[round]]
say = "Oh, one thing more."
"""
    )
    session_id = driven.open(ending)

    async def act() -> None:
        await driven.until(running("model", "running"))
        driven.say(session_id, "Wait")
        await driven.settled()

    driven.during(act)
    assert [it[0] for it in tasks(driven, session_id)] == ["r1", "r2t0", "r2"]
    assert feed(driven, session_id)[-1][1] == "Oh, one thing more."


# --- stopping ----------------------------------------------------------------------------------


def test_a_session_is_cancelled_while_its_model_speaks(driven: Driven) -> None:
    session_id = driven.open(SLOW)

    async def act() -> None:
        await driven.until(running("model", "running"))
        for _ in range(2):  # the second finds it done
            driven.write(lambda tx: start.cancel_session(tx, driven.owner, session_id))
        await driven.until(lambda tx: tx.rows("SELECT 1 FROM usage_receipts"))

    driven.during(act)
    found = facts(driven, session_id)
    assert (found.status, found.outcome, found.reason_code) == ("cancelled", None, "run_cancelled")
    assert [it[2] for it in invocations(driven, session_id)] == ["canceled"]
    # What the call took until the line was hung up nobody knows; the dev models are free.
    assert driven.rows("SELECT prompt_tokens, cost_usd FROM usage_receipts") == [(None, 0.0)]
    assert feed(driven, session_id)[-1][2] == "cancelled"
    assert check(driven.database) == []
    driven.say(session_id, "Go on then")
    driven.settle()
    assert facts(driven, session_id).outcome == "success"
    assert check(driven.database) == []


def test_a_session_is_cancelled_while_a_tool_works(driven: Driven) -> None:
    session_id = driven.open(SLOW_TOOL)

    async def act() -> None:
        await driven.until(running("tool", "running"))
        half = valid(driven, session_id)
        assert half["steps"][1]["tool_calls"][0]["function_name"] == "slow"
        assert "observation" not in half["steps"][1]
        driven.write(lambda tx: start.cancel_session(tx, driven.owner, session_id))
        await asyncio.sleep(0.3)

    driven.during(act)
    assert [it[2] for it in tasks(driven, session_id)] == ["completed", "canceled"]
    steps = valid(driven, session_id)["steps"]
    assert [step["source"] for step in steps] == ["user", "agent"]
    assert "observation" not in steps[1]
    driven.say(session_id, "hello")
    driven.settle()
    assert feed(driven, session_id)[-1][1] == "You said: hello"
    assert check(driven.database) == []


def test_what_waits_is_cancelled_without_an_engine(driven: Driven) -> None:
    session_id = driven.open("never")
    driven.write(lambda tx: start.cancel_session(tx, driven.owner, session_id))
    driven.settle()
    assert tasks(driven, session_id) == []
    assert facts(driven, session_id).status == "cancelled"
    assert check(driven.database) == []


# --- asking again ------------------------------------------------------------------------------


def test_the_old_answer_is_shown_until_the_new_one_is_there(driven: Driven) -> None:
    session_id = driven.open(SLOW)
    driven.settle()
    [(turn_id, first, *_)] = candidates(driven)
    conversation = conversation_of(driven, first)
    wish = Wish(model="dev/small")

    def again(tx: Any) -> start.Sent:
        return start.regenerate(tx, driven.owner, conversation, turn_id, wish)

    async def act() -> None:
        driven.write(again)
        await driven.until(lambda tx: tx.rows("SELECT 1 FROM invocations WHERE status = 'running'"))
        shown = [it[5] for it in candidates(driven)]
        assert shown == [True, False]
        with pytest.raises(ConflictError, match="answered"):
            driven.write(again)
        assert facts(driven, session_id).status == "running"
        await driven.settled()

    driven.during(act)
    old, new = candidates(driven)
    assert (old[3], bool(old[5]), new[3], bool(new[5])) == ("completed", False, "completed", True)
    assert new[2] == "completed"
    assert [it[0] for it in feed(driven, session_id)] == ["prompt", "reply"]
    steps = valid(driven, session_id)["steps"]
    assert [(step["source"], step.get("model_name")) for step in steps] == [
        ("user", None), ("agent", "small"),
    ]  # fmt: skip
    assert facts(driven, session_id).status == "exit"
    assert check(driven.database) == []


def test_an_answer_that_cannot_be_made_anew_stays(driven: Driven) -> None:
    session_id = driven.open("hello")
    driven.settle()
    [(turn_id, first, *_)] = candidates(driven)
    conversation = conversation_of(driven, first)
    wish = Wish(model="nobody/knows")
    driven.write(lambda tx: start.regenerate(tx, driven.owner, conversation, turn_id, wish))
    driven.settle()
    old, new = candidates(driven)
    assert (old[3], bool(old[5])) == ("completed", True)
    assert (new[2], new[3]) == ("completed", "failed")
    assert facts(driven, session_id).status == "exit"
    assert facts(driven, session_id).outcome == "success"
    assert feed(driven, session_id)[-1] == ("reply", "You said: hello", "exit", "success")
    assert check(driven.database) == []


def test_an_older_turn_is_not_answered_anew(driven: Driven) -> None:
    session_id = driven.open("one")
    driven.settle()
    driven.say(session_id, "two")
    driven.settle()
    (turn_id, first, *_), _ = candidates(driven)
    conversation = conversation_of(driven, first)
    with pytest.raises(ConflictError) as refused:
        driven.write(lambda tx: start.regenerate(tx, driven.owner, conversation, turn_id))
    assert refused.value.code == "branch_required"


# --- direct replies, and conversations that are no sessions ---------------------------------------


@pytest.fixture
def plain(driven: Driven) -> Conversation:
    """A conversation without session facts."""

    def make(tx: Any) -> Conversation:
        workspace = workspaces.create(tx, driven.owner, name="w", access_mode="account_wide")
        return conversations.create(tx, driven.owner, workspace, title=None)

    return driven.write(make)


def test_a_direct_reply_has_no_run(driven: Driven, plain: Conversation) -> None:
    driven.ask(plain, "[dev:cut] hi", model="dev/thinker")
    driven.settle()
    [(_, _, status, own, content, _)] = candidates(driven)
    assert (status, own) == ("completed", "completed")
    assert content.startswith("The first half")
    assert driven.rows("SELECT count(*) FROM runs") == [(0,)]
    assert driven.rows("SELECT source, provider_id, model_ref FROM variants") == [
        ("inference", "dev", "thinker")
    ]
    assert driven.rows("SELECT number, status FROM invocations ORDER BY id") == [
        (1, "failed"), (2, "completed"),
    ]  # fmt: skip
    assert driven.rows("SELECT reasoning FROM variant_details") == [
        ("I begin, and the line breaks.",)
    ]
    # No tools were on offer, and what it thought is replayed to it in the next turn.
    driven.ask(plain, "[dev:files]", model="dev/thinker")
    driven.settle()
    assert driven.tools.made == []
    assert check(driven.database) == []


def test_a_conversation_is_answered_by_a_run_too(driven: Driven, plain: Conversation) -> None:
    driven.ask(plain, "[dev:files]", tool_names=("read",))
    driven.settle()
    assert [it[4] for it in candidates(driven)] == [
        "They say: the content of README.md, the content of LICENSE"
    ]
    # `finish` is for sessions.
    [(request,)] = driven.rows("SELECT request FROM invocation_details LIMIT 1")
    assert '"finish"' not in request
    assert check(driven.database) == []


def test_what_would_steer_a_direct_reply_waits_for_a_turn_of_its_own(
    driven: Driven, plain: Conversation
) -> None:
    driven.ask(plain, "hi")
    driven.ask(plain, "more", delivery_mode="steer")
    driven.settle()
    assert [it[4] for it in candidates(driven)] == ["You said: hi", "You said: more"]
    assert check(driven.database) == []


def test_questions_are_answered_one_after_the_other(driven: Driven, plain: Conversation) -> None:
    for number in range(3):
        driven.ask(plain, f"question {number}", tool_names=("read",) if number == 1 else None)
    driven.settle()
    answers = [it[4] for it in candidates(driven)]
    assert answers == [f"You said: question {number}" for number in range(3)]
    assert driven.rows("SELECT source FROM variants ORDER BY id") == [
        ("inference",), ("run",), ("inference",),
    ]  # fmt: skip
    assert check(driven.database) == []


def test_an_input_that_steers_goes_into_the_running_turn(
    driven: Driven, plain: Conversation
) -> None:
    driven.ask(plain, SLOW, tool_names=("read",))

    async def act() -> None:
        await driven.until(lambda tx: tx.rows("SELECT 1 FROM invocations WHERE status = 'running'"))
        driven.ask(plain, "and be kind", delivery_mode="steer")
        assert driven.rows("SELECT state FROM inputs ORDER BY id") == [("consumed",), ("steering",)]
        await driven.settled()

    driven.during(act)
    assert driven.rows("SELECT state, turn_id IS NULL FROM inputs ORDER BY id") == [
        ("consumed", False), ("consumed", True),
    ]  # fmt: skip
    assert driven.rows("SELECT text FROM steps WHERE part = 'steer'") == [("and be kind",)]
    assert len(candidates(driven)) == 1
    assert driven.rows("SELECT count(*) FROM tasks WHERE kind = 'model_task'") == [(2,)]
    assert check(driven.database) == []


# --- outcomes and budgets ------------------------------------------------------------------------


@pytest.mark.parametrize("outcome", ["success", "failure", "action_required"])
def test_an_agent_declares_its_outcome(driven: Driven, outcome: str) -> None:
    declared = f'{{"outcome": "{outcome}", "summary": "That is that."}}'
    session_id = driven.open(f"[dev:call glob] [dev:call finish {declared}]")
    driven.settle()
    found = facts(driven, session_id)
    assert (found.status, found.outcome) == ("exit", outcome)
    assert feed(driven, session_id)[-1] == ("reply", "That is that.", "exit", outcome)
    assert [it[0] for it in tasks(driven, session_id)] == ["r1", "r2t0", "r2t1"]
    valid(driven, session_id)
    driven.say(session_id, "And?")
    driven.settle()
    assert feed(driven, session_id)[-1][1] == "You said: And?"


def test_an_outcome_that_is_none_is_refused(driven: Driven) -> None:
    session_id = driven.open('[dev:call finish {"outcome": "splendid"}]')
    driven.settle()
    assert tasks(driven, session_id)[1][2] == "failed"
    assert facts(driven, session_id).outcome == "success"


def budget(**limits: float) -> dict[str, Any]:
    return {"execution_budget": limits}


@pytest.mark.parametrize(
    ("limit", "status"),
    [("steps_max", "failed"), ("wall_clock_max_ms", "timed_out"), ("cost_max_usd", "failed")],
)
def test_a_budget_of_nothing_asks_nobody(driven: Driven, limit: str, status: str) -> None:
    session_id = driven.open("hello", options=budget(**{limit: 0}))
    driven.settle()
    assert invocations(driven, session_id) == []
    assert [it[2:4] for it in candidates(driven)] == [(status, status)]
    found = facts(driven, session_id)
    assert (found.status, found.error_class) == ("error", "quota_exhausted")
    assert found.reason_code in ("budget_steps", "budget_wall_clock", "budget_cost")
    valid(driven, session_id)
    assert check(driven.database) == []


def test_a_budget_of_rounds_ends_a_run(driven: Driven) -> None:
    session_id = driven.open("[dev:steps]", options=budget(steps_max=2))
    driven.settle()
    assert [it[0] for it in tasks(driven, session_id)] == ["r1", "r2t0", "r2", "r3t0"]
    assert facts(driven, session_id).reason_code == "budget_steps"
    assert check(driven.database) == []


@pytest.mark.parametrize("prompt", ["[dev:slow] x", SLOW_TOOL])
def test_a_budget_of_time_ends_what_takes_too_long(driven: Driven, prompt: str) -> None:
    session_id = driven.open(prompt, options=budget(wall_clock_max_ms=700))
    driven.settle()
    assert [it[2:4] for it in candidates(driven)] == [("timed_out", "timed_out")]
    assert facts(driven, session_id).reason_code == "budget_wall_clock"
    ended = [it[2] for it in tasks(driven, session_id)]
    assert ended[-1] == "timed_out"
    assert account(driven, session_id).cost_usd == 0.0
    valid(driven, session_id)
    assert check(driven.database) == []


@pytest.mark.parametrize("most", [2**63 - 1, 10**400])
def test_a_budget_beyond_all_time_is_no_limit(driven: Driven, most: int) -> None:
    session_id = driven.open("hello", options=budget(wall_clock_max_ms=most, steps_max=most))
    driven.settle()
    assert facts(driven, session_id).outcome == "success"


def test_a_budget_that_is_none_is_refused(driven: Driven) -> None:
    with pytest.raises(InvalidInputError) as refused:
        driven.open("x", options=budget(steps_max=-1))
    assert refused.value.code == "invalid_execution_budget"


def test_a_model_that_nobody_knows_fails_the_turn(driven: Driven) -> None:
    session_id = driven.open("x", model="nobody/knows")
    effort = driven.open("x", model="dev/thinker", reasoning_effort="none")
    driven.settle()
    assert facts(driven, session_id).reason_code == "invalid_model"
    assert facts(driven, effort).error_class == "invalid_reasoning_effort"
    assert check(driven.database) == []


# --- activity -------------------------------------------------------------------------------------


def test_a_reader_of_events_sees_tools_called_by_name(driven: Driven) -> None:
    session_id = driven.open("[dev:files]")
    driven.settle()

    def look(tx: Any) -> list[activity.Activity]:
        found = session.find(tx, driven.owner, session_id)
        return activity.page(tx, found.id, -1, 500, diagnostic=False, longest=100)

    items = driven.read(look)
    assert {it.data["name"] for it in items if it.type == "tool"} == {"read"}
    assert {it.type for it in items} == {"message", "status", "assistant", "tool"}
