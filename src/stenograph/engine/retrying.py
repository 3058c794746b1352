"""Runs that people take up again, give up, or stop (docs/decisions/0043-retry.md)."""

from stenograph.conversations import access, store_turns
from stenograph.conversations import variant as variants
from stenograph.conversations.access import Conversation
from stenograph.engine import ending, store, summary_turn
from stenograph.engine.start import require_here, require_quiet
from stenograph.engine.work import Work, load
from stenograph.errors import ConflictError, NotFoundError
from stenograph.events import bell
from stenograph.runs import approval
from stenograph.runs import run as runs
from stenograph.runs import task as tasks
from stenograph.runs.run import Run
from stenograph.sessions import store as sessions
from stenograph.sessions.standing import ABANDONED
from stenograph.storage.database import Tx

#: How a candidate ended that may be taken up again.
_FAILED = ("failed", "timed_out")
#: Statuses of a run that goes on only when a person says so.
_HELD = ("paused", "needs_attention")


def cancel(tx: Tx, conversation: Conversation, run: Run) -> Run:
    """Stop a run, and the subagents it started.

    Raises `ForbiddenError`, or `ConflictError` `run_settled` for one that has its end.
    """
    work = _hold(tx, conversation, run)
    if work.settled:
        raise _settled()
    ending.cancel(tx, work.candidate)
    return _now(tx, work)


def abandon(tx: Tx, conversation: Conversation, run: Run) -> Run:
    """Give up a run that waits for a person: its turn has failed, with that as its reason.

    Raises `ForbiddenError`, or `ConflictError`: `run_settled`, or `run_live` for one that works
    (stop it instead).
    """
    work = _hold(tx, conversation, run)
    assert work.run is not None
    if work.run.status in runs.TERMINAL:
        raise _settled()
    if work.run.status not in _HELD and not approval.waiting(tx, work.run):
        raise ConflictError("The run is working: cancel it", code="run_live")
    if work.settled:
        runs.cancel(tx, work.run, work.run.failure_reason or ABANDONED)
    else:
        ending.fail(tx, work, "failed", work.run.failure_reason or ABANDONED)
    return _now(tx, work)


def retry(tx: Tx, conversation: Conversation, run: Run, key: str | None = None) -> Run:
    """Take up a failed run of the newest turn after its last good round.

    The round that failed is asked anew, by a model call of its own; what was called and settled is
    not done again. `key` names that round, for callers who mean no other.

    Raises `NotFoundError`, `ForbiddenError`, or `ConflictError`: `not_terminal` for a run or task
    that has no end yet; `run_settled` for a run that did not fail; `not_eligible` for another task
    than the one that failed; `unsupported_turn_type` for a summary; `conversation_busy` or
    `branch_required` as for a regeneration; and what `access.require_open` does.
    """
    work = _hold(tx, conversation, run)
    access.require_open(access.hold(tx, conversation))
    assert work.run is not None
    named = None if key is None else tasks.find(tx, work.run, key)
    if not work.settled or (named is not None and named.status not in tasks.TERMINAL):
        raise ConflictError("It has no end yet", code="not_terminal")
    if work.variant.status not in _FAILED or work.run.failure_reason == ABANDONED:
        raise _settled()
    newest = store.newest_round(tx, work.run.id)
    round = None if newest is None else tasks.find(tx, work.run, newest)
    failed = None if round is None or round.status == "completed" else round
    if named is not None and (failed is None or named.id != failed.id):
        raise ConflictError("The run did not fail at this task", code="not_eligible")
    if work.turn.kind == summary_turn.KIND:
        raise ConflictError("Ask for another summary", code="unsupported_turn_type")
    require_here(tx, conversation)
    require_quiet(tx, conversation, work.turn)
    if failed is not None:
        tasks.reopen(tx, work.run, failed)
    runs.reopen(tx, work.run)
    _wait(tx, work)
    return _now(tx, work)


def _hold(tx: Tx, conversation: Conversation, run: Run) -> Work:
    """Hold the conversation, and return what the run answers as it is now."""
    access.require_full(conversation)
    access.hold(tx, conversation)
    candidate = store.candidate_of(tx, run.variant_id)
    work = None if candidate is None else load(tx, candidate)
    if work is None or work.run is None:
        raise NotFoundError("Not found")
    return work


def _wait(tx: Tx, work: Work) -> None:
    """Let a candidate wait for an engine once more, and its turn with it if it is shown."""
    store.reopen_candidate(tx, work.variant.id)
    variants.project(tx, work.turn, work.variant.id, "pending")
    if work.is_shown:
        store_turns.set_active_turn(tx, work.conversation.id, work.turn.id)
    if work.is_session and work.is_shown:
        sessions.resume(tx, work.conversation.id)
    elif work.is_session:
        sessions.update(tx, work.conversation.id, status="running", ended_at=None)
    bell.ring(tx, work.candidate)


def _now(tx: Tx, work: Work) -> Run:
    found = runs.of(tx, work.variant)
    assert found is not None
    return found


def _settled() -> ConflictError:
    return ConflictError("The run has its end", code="run_settled")
