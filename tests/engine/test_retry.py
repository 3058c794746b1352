"""Runs that failed and are taken up again, given up or stopped; answers made anew and activated
while something runs; all of it after kills too."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from engine.driving import Driven, scene
from engine.test_recovery import drive, in_a_process, peopled, within
from engine.test_rounds import account, facts, feed, tasks, valid
from engine.test_turns import SLOW, SLOW_TOOL, candidates, running
from stenograph.conversations.wishes import Configuration
from stenograph.engine import deck, retrying, start
from stenograph.engine.engine import Place
from stenograph.engine.models.credentials import Credentials
from stenograph.engine.models.failures import ModelFailedError
from stenograph.engine.start import Wish
from stenograph.engine.work import load
from stenograph.errors import ConflictError, NotFoundError
from stenograph.retention.integrity import check
from stenograph.storage.location import Location

PROMPT = scene(
    """
[[round]]
say = "I look."
call = [{ tool = "read", arguments = { path = "README.md" } }]
[[round]]
think = "It is there."
say = "It says: {results}"
"""
)
ANSWER = "It says: the content of README.md"


@pytest.fixture(autouse=True)
def looking(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look often for what waits: a run may be taken up before the workflow that failed is over."""
    monkeypatch.setattr("stenograph.engine.engine.LOOK", 0.05)


def without_key(driven: Driven, after: int = 1) -> None:
    """Let the provider's key go after so many model calls, until `driven.credentials` is set."""
    calls = []

    def credentials(*_: Any) -> Credentials:
        calls.append(1)
        if len(calls) > after:
            raise ModelFailedError("unauthorized", "The key is gone")
        return Credentials()

    driven.credentials = credentials


def with_key(driven: Driven) -> None:
    driven.credentials = lambda *_: Credentials()


def failed(driven: Driven, prompt: str = PROMPT, after: int = 1) -> str:
    """Open a session whose run fails after so many good rounds; its public id."""
    without_key(driven, after)
    session_id = driven.open(prompt)
    driven.settle()
    with_key(driven)
    return session_id


def newest(driven: Driven) -> tuple[Any, Any]:
    """The newest candidate's conversation and run."""
    found = driven.read(lambda tx: load(tx, candidates(driven)[-1][1]))
    assert found is not None
    return found.conversation, found.run


def again(driven: Driven, key: str | None = None) -> Any:
    conversation, run = newest(driven)
    return driven.write(lambda tx: retrying.retry(tx, conversation, run, key))


def refused(act: Any) -> str:
    with pytest.raises(ConflictError) as caught:
        act()
    return caught.value.code


def statuses(driven: Driven) -> list[tuple[Any, ...]]:
    return driven.rows(
        "SELECT t.status, v.status, r.status, r.failure_reason FROM turns t"
        " JOIN variants v ON v.turn_id = t.id LEFT JOIN runs r ON r.variant_id = v.id ORDER BY v.id"
    )


# --- retry -------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", [None, "r2"])
def test_a_retry_goes_on_after_the_last_good_round(driven: Driven, key: str | None) -> None:
    session_id = failed(driven)
    assert statuses(driven) == [("failed", "failed", "canceled", "unauthorized")]
    assert feed(driven, session_id)[-1] == ("reply", "", "error", "failure")
    assert again(driven, key).status == "running"
    assert statuses(driven) == [("pending", "pending", "running", None)]
    assert facts(driven, session_id).status == "running"
    driven.settle()
    assert statuses(driven) == [("completed", "completed", "completed", None)]
    assert [it[0] for it in tasks(driven, session_id)] == ["r1", "r2t0", "r2"]
    assert len(driven.tools.made) == 1  # what was called is not called again
    # The pointer has moved; the call that failed is kept, and shown nowhere.
    assert driven.rows(
        "SELECT i.number, i.status, i.id = k.selected_invocation_id FROM tasks k"
        " JOIN invocations i ON i.task_id = k.id WHERE k.key = 'r2' ORDER BY i.id"
    ) == [(1, "failed", False), (2, "completed", True)]
    assert [it[:2] for it in feed(driven, session_id)] == [("prompt", PROMPT), ("reply", ANSWER)]
    assert [step["message"] for step in valid(driven, session_id)["steps"]][1:] == [
        "I look.", ANSWER,
    ]  # fmt: skip
    assert facts(driven, session_id).outcome == "success"
    assert account(driven, session_id).cost_usd == 0.0
    assert check(driven.database) == []
    events = driven.rows("SELECT type, payload FROM events ORDER BY sequence")
    told = [it for kind, it in events if kind == "turn_status"]
    assert [it for it in told if '"status":"pending"' in it]
    assert [it for it in told if '"run_status":"running"' in it]


def test_a_retry_has_the_patience_and_the_time_of_a_new_run(driven: Driven) -> None:
    limit = {"wall_clock_max_ms": 60_000}
    without_key(driven, 0)
    session_id = driven.open("hello", options={"execution_budget": limit})
    driven.settle()
    driven.write(lambda tx: tx.run("UPDATE runs SET created_at = 1, started_at = 1"))
    for _ in range(3):  # each fails anew, and each is asked
        again(driven)
        driven.settle()
    assert driven.rows("SELECT count(*) FROM invocations") == [(4,)]
    with_key(driven)
    again(driven)
    driven.settle()
    assert feed(driven, session_id)[-1][1:] == ("You said: hello", "exit", "success")
    assert check(driven.database) == []


def test_a_run_that_failed_before_its_first_round_is_retried(driven: Driven) -> None:
    session_id = driven.open("hello", model="nobody/knows")
    driven.settle()
    assert statuses(driven)[0][3] == "invalid_model"
    driven.write(lambda tx: tx.run("UPDATE sessions SET model = 'dev/small'"))
    driven.write(lambda tx: tx.run("UPDATE variants SET model_ref = NULL"))
    again(driven)
    driven.settle()
    assert feed(driven, session_id)[-1][1] == "You said: hello"
    assert check(driven.database) == []


def test_what_was_said_since_comes_first(driven: Driven) -> None:
    """A newer turn builds on the failed one as it is: it is not answered any more."""
    session_id = failed(driven)
    conversation, run = newest(driven)
    driven.say(session_id, "Then something else")
    assert refused(lambda: driven.write(lambda tx: retrying.retry(tx, conversation, run))) == (
        "conversation_busy"
    )
    driven.settle()
    assert refused(lambda: driven.write(lambda tx: retrying.retry(tx, conversation, run))) == (
        "branch_required"
    )


def test_what_is_not_retried(driven: Driven) -> None:
    failed(driven)
    assert refused(lambda: again(driven, "r1")) == "not_eligible"
    assert refused(lambda: again(driven, "r2t0")) == "not_eligible"
    with pytest.raises(NotFoundError):
        again(driven, "r9")
    again(driven)
    for key in (None, "r2", "r1"):
        assert refused(lambda key=key: again(driven, key)) == "not_terminal"
    driven.settle()
    assert refused(lambda: again(driven)) == "run_settled"


def test_what_a_person_stopped_is_not_retried(driven: Driven) -> None:
    driven.open(SLOW)

    async def act() -> None:
        await driven.until(running("model", "running"))
        conversation, run = newest(driven)
        driven.write(lambda tx: retrying.cancel(tx, conversation, run))

    driven.during(act)
    assert refused(lambda: again(driven)) == "run_settled"


def test_another_answer_that_failed_is_retried_beside_the_one_that_is_shown(
    driven: Driven,
) -> None:
    session_id = driven.open(PROMPT)
    driven.settle()
    turn_id = candidates(driven)[0][0]
    conversation, _ = newest(driven)
    without_key(driven)
    driven.write(lambda tx: start.regenerate(tx, driven.owner, conversation, turn_id))
    driven.settle()
    assert [it[:2] for it in statuses(driven)] == [
        ("completed", "completed"),
        ("completed", "failed"),
    ]
    with_key(driven)
    again(driven)
    assert facts(driven, session_id).outcome == "success"  # that of the answer that is shown
    assert statuses(driven)[1][:2] == ("completed", "pending")
    driven.settle()
    assert [bool(it[5]) for it in candidates(driven)] == [False, True]
    assert [it[0] for it in feed(driven, session_id)] == ["prompt", "reply"]
    assert check(driven.database) == []


# --- giving up, stopping -------------------------------------------------------------------------


def test_a_run_that_waits_for_a_person_is_given_up(driven: Driven) -> None:
    ask = {"approval_mode": "ask"}
    session_id = driven.open(PROMPT, options={"session_policy": ask})

    async def act() -> None:
        await driven.until(
            lambda tx: tx.rows("SELECT 1 FROM tasks WHERE status = 'needs_approval'")
        )
        conversation, run = newest(driven)
        given_up = driven.write(lambda tx: retrying.abandon(tx, conversation, run))
        assert (given_up.status, given_up.failure_reason) == ("canceled", "abandoned")

    driven.during(act)
    found = facts(driven, session_id)
    assert (found.status, found.outcome, found.error_class) == ("error", "failure", "run_cancelled")
    assert statuses(driven) == [("failed", "failed", "canceled", "abandoned")]
    assert refused(lambda: again(driven)) == "run_settled"
    conversation, run = newest(driven)
    assert refused(lambda: driven.write(lambda tx: retrying.abandon(tx, conversation, run))) == (
        "run_settled"
    )
    assert driven.tools.made == []
    assert check(driven.database) == []


def test_a_held_run_whose_turn_has_failed_is_given_up_with_its_own_reason(driven: Driven) -> None:
    failed(driven)
    conversation, run = newest(driven)
    driven.write(
        lambda tx: tx.run(
            "UPDATE runs SET status = 'needs_attention', completed_at = NULL, delivered_at = NULL"
        )
    )
    given_up = driven.write(lambda tx: retrying.abandon(tx, conversation, run))
    assert (given_up.status, given_up.failure_reason) == ("canceled", "unauthorized")
    assert check(driven.database) == []


def test_a_run_is_stopped_and_one_that_works_is_not_given_up(driven: Driven) -> None:
    session_id = driven.open(SLOW_TOOL)

    async def act() -> None:
        await driven.until(running("tool", "running"))
        conversation, run = newest(driven)
        assert refused(
            lambda: driven.write(lambda tx: retrying.abandon(tx, conversation, run))
        ) == ("run_live")
        stopped = driven.write(lambda tx: retrying.cancel(tx, conversation, run))
        assert (stopped.status, stopped.failure_reason) == ("canceled", "run_cancelled")
        assert refused(lambda: driven.write(lambda tx: retrying.cancel(tx, conversation, run))) == (
            "run_settled"
        )

    driven.during(act)
    assert facts(driven, session_id).status == "cancelled"
    assert check(driven.database) == []


# --- other answers while something runs -----------------------------------------------------------


def test_activation_stops_the_replaced_candidate_for_good(driven: Driven) -> None:
    """A shown answer that is made again (retried) is replaced while its model speaks."""
    session_id = driven.open("hello")
    driven.settle()
    turn_id, first = candidates(driven)[0][:2]
    conversation, _ = newest(driven)
    shown = driven.write(lambda tx: deck.edit(tx, conversation, turn_id, "Mine."))
    assert feed(driven, session_id)[-1][1:] == ("Mine.", "exit", "success")
    driven.write(lambda tx: tx.run("UPDATE variants SET status = 'failed' WHERE source = 'run'"))
    driven.write(lambda tx: tx.run("UPDATE variants SET prompt = :p WHERE source = 'run'", p=SLOW))
    driven.write(lambda tx: tx.run("UPDATE runs SET status = 'canceled'"))
    driven.write(lambda tx: tx.run("UPDATE tasks SET status = 'failed' WHERE kind = 'model_task'"))
    driven.write(lambda tx: deck.activate(tx, conversation, turn_id, first))
    assert facts(driven, session_id).status == "error"
    run = driven.read(lambda tx: load(tx, first)).run
    driven.write(lambda tx: retrying.retry(tx, conversation, run))

    async def act() -> None:
        await driven.until(running("model", "running"))
        driven.write(lambda tx: deck.activate(tx, conversation, turn_id, shown.variant.public_id))
        await driven.settled()
        await driven.until(
            lambda tx: tx.rows("SELECT 1 FROM invocations WHERE status = 'canceled'")
        )

    driven.during(act)
    assert [(it[3], bool(it[5])) for it in candidates(driven)] == [
        ("canceled", False), ("completed", True),
    ]  # fmt: skip
    assert driven.rows("SELECT status, failure_reason FROM runs") == [("canceled", "replaced")]
    assert feed(driven, session_id)[-1][1:] == ("Mine.", "exit", "success")
    assert facts(driven, session_id).status == "exit"
    assert driven.rows("SELECT active_turn_id FROM conversations") == [(None,)]
    assert check(driven.database) == []


def test_an_outcome_comes_back_with_the_answer_that_declared_it(driven: Driven) -> None:
    declared = '{"outcome": "action_required", "summary": "Sign here."}'
    session_id = driven.open(f"[dev:call finish {declared}]")
    driven.settle()
    turn_id, first = candidates(driven)[0][:2]
    conversation, _ = newest(driven)
    driven.write(lambda tx: deck.edit(tx, conversation, turn_id, "Signed."))
    assert facts(driven, session_id).outcome == "success"
    driven.write(lambda tx: deck.activate(tx, conversation, turn_id, first))
    assert facts(driven, session_id).outcome == "action_required"
    assert feed(driven, session_id)[-1] == ("reply", "Sign here.", "exit", "action_required")
    assert check(driven.database) == []


def test_an_edited_answer_is_what_a_model_is_told(driven: Driven) -> None:
    session_id = driven.open("What is it?")
    driven.settle()
    turn_id = candidates(driven)[0][0]
    conversation, _ = newest(driven)
    driven.write(lambda tx: deck.edit(tx, conversation, turn_id, "It is 42."))
    steps = valid(driven, session_id)["steps"]
    assert [(it["source"], it["message"]) for it in steps] == [
        ("user", "What is it?"), ("agent", "It is 42."),
    ]  # fmt: skip
    driven.say(session_id, "And twice that?")
    driven.settle()
    request = driven.rows("SELECT request FROM invocation_details ORDER BY invocation_id DESC")[0][
        0
    ]
    assert "It is 42." in request
    assert "You said: What is it?" not in request
    assert check(driven.database) == []


def test_another_answer_is_asked_for_as_the_edited_one_was(driven: Driven) -> None:
    """With the model, the files and the configuration of who answered, or with other ones."""
    driven.open("hello", model="dev/small")
    driven.settle()
    turn_id = candidates(driven)[0][0]
    conversation, _ = newest(driven)
    driven.write(lambda tx: deck.edit(tx, conversation, turn_id, "Mine."))
    setting = Configuration(temperature=0.5)
    driven.write(
        lambda tx: start.regenerate(tx, driven.owner, conversation, turn_id, Wish(), setting)
    )
    driven.settle()
    assert driven.rows("SELECT source, model_ref FROM variants ORDER BY id")[-1] == ("run", "small")
    [(request,)] = driven.rows(
        "SELECT request FROM invocation_details ORDER BY invocation_id DESC LIMIT 1"
    )
    assert '"temperature":0.5' in request
    assert check(driven.database) == []


# --- killed ---------------------------------------------------------------------------------------

#: In how many places a run that was taken up again is killed.
PLACES = 7


def _fail(world: tuple[Location, Place], log: Path) -> None:
    within(world, log, failed)


def _again(driven: Driven) -> str:
    again(driven)
    return str(driven.rows("SELECT public_id FROM conversations ORDER BY id DESC LIMIT 1")[0][0])


def _checked(driven: Driven, session_id: str) -> None:
    assert check(driven.database) == []
    assert statuses(driven)[-1] == ("completed", "completed", "completed", None)
    assert [it[0] for it in tasks(driven, session_id)] == ["r1", "r2t0", "r2"]
    assert [it[:2] for it in feed(driven, session_id)] == [("prompt", PROMPT), ("reply", ANSWER)]
    billed = driven.rows(
        "SELECT count(u.id) FROM invocations i"
        " LEFT JOIN usage_receipts u ON u.invocation_id = i.id GROUP BY i.id"
    )
    assert set(billed) <= {(0,), (1,)}  # a call without a key costs nothing


def test_a_retry_that_is_killed_anywhere_is_answered_once(
    sqlite_location: Location, tmp_path: Path
) -> None:
    log = tmp_path / "tools"
    peopled(sqlite_location)
    world = sqlite_location, Place(f"sqlite:///{tmp_path / 'engine.db'}")
    killed = 0
    for number in range(PLACES):
        assert in_a_process(partial(_fail, world, log))
        session_id = within(world, log, _again)
        killed += not in_a_process(partial(drive, world, log, kill_at=4 + 9 * number))
        assert in_a_process(partial(drive, world, log))
        within(world, log, partial(_checked, session_id=session_id))
    assert killed >= PLACES - 1
    # Each tool was called once, before its run failed.
    assert len(log.read_text().splitlines()) == PLACES


def test_another_answer_that_is_killed_while_it_is_made_replaces_the_first_once(
    sqlite_location: Location, tmp_path: Path
) -> None:
    log = tmp_path / "tools"
    peopled(sqlite_location)
    world = sqlite_location, Place(f"sqlite:///{tmp_path / 'engine.db'}")
    session_id = within(world, log, lambda driven: driven.open(PROMPT))
    assert in_a_process(partial(drive, world, log))

    def ask(driven: Driven) -> None:
        conversation, _ = newest(driven)
        turn_id = candidates(driven)[0][0]
        driven.write(lambda tx: start.regenerate(tx, driven.owner, conversation, turn_id))

    def look(driven: Driven) -> None:
        assert check(driven.database) == []
        *older, shown = candidates(driven)
        assert [bool(it[5]) for it in (*older, shown)] == [False] * len(older) + [True]
        assert {it[4] for it in (*older, shown)} == {ANSWER}
        assert [it[:2] for it in feed(driven, session_id)] == [
            ("prompt", PROMPT),
            ("reply", ANSWER),
        ]

    for at in (5, 20, 45):
        within(world, log, ask)
        in_a_process(partial(drive, world, log, kill_at=at))
        assert in_a_process(partial(drive, world, log))
        within(world, log, look)
