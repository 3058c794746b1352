"""How a candidate ends: its answer, its failure, its cancellation, each in all readings at once.

The caller holds the conversation.
"""

from collections.abc import Collection
from dataclasses import replace
from typing import Literal, TypeAlias

from stenograph.clock import now
from stenograph.conversations import store as conversations
from stenograph.conversations import variant as variants
from stenograph.conversations.variant import Model
from stenograph.engine import store, store_children, store_compaction, summary_turn
from stenograph.engine.choice import asks_own_key
from stenograph.engine.work import Work, load
from stenograph.events import waiting
from stenograph.runs import run as runs
from stenograph.runs.run import Run
from stenograph.sessions import conversing, standing
from stenograph.sessions import store as sessions
from stenograph.sessions.activity import STATUS
from stenograph.sessions.ending import CANCELLED
from stenograph.sessions.messages import Message, Outcome, replace_reply
from stenograph.sessions.standing import error_class
from stenograph.storage.database import Tx

End: TypeAlias = Literal["failed", "canceled", "timed_out"]


def deliver(
    tx: Tx,
    work: Work,
    content: str,
    model: Model,
    *,
    outcome: Outcome = "success",
    reasoning: str | None = None,
    reasoning_trace: str | None = None,
) -> None:
    """Give a candidate its answer; a regenerated one is shown from here on.

    Reasoning and trace are for a direct reply, which adopts them.
    """
    if work.run is not None:
        store_compaction.skip(tx, work.run.id, now())
        runs.move(tx, work.run, "completed")
    variants.settle(
        tx,
        work.turn,
        work.variant,
        "completed",
        content=content,
        reasoning=reasoning,
        reasoning_trace=reasoning_trace,
        # Answered anew, it is again with the key that was asked for.
        model=replace(model, byok=asks_own_key(work)),
    )
    if not work.is_shown:
        settled = variants.find(tx, work.turn, work.candidate)
        variants.activate(tx, work.turn, settled)
        standing.name_prompt(tx, work.turn, settled.id)
    _reply(tx, work, "completed", outcome)
    if work.is_session:
        _end_session(tx, work, status="exit", outcome=outcome, error_class=None, reason_code=None)
    conversing.go_on(tx, work.conversation.id)


def fail(tx: Tx, work: Work, status: End, reason: str) -> None:
    """End a candidate without an answer; what it has not finished ends with it.

    Its turn and session stand by it only if the turn shows it: an answer that stays shown while it
    is regenerated stays what it is. `reason` is a word for machines.
    """
    if work.run is not None:
        runs.cancel(tx, work.run, reason)
        cancel_children(tx, work.run)
    store.cancel_reply(tx, work.variant.id, now())
    variants.settle(tx, work.turn, work.variant, status, failure_reason=reason)
    canceled = status == "canceled"
    if work.turn.kind == summary_turn.KIND:
        summary_turn.leave(tx, work)
    elif work.is_shown:
        outcome: Outcome | None = None if canceled else "failure"
        _reply(tx, work, status, outcome)
        if work.is_session:
            _end_session(
                tx,
                work,
                status=STATUS[status],
                outcome=outcome,
                error_class=None if canceled else error_class(reason),
                reason_code=reason,
            )
    elif work.is_session:
        _end_session(tx, work, status=STATUS[work.turn.status])
    conversing.go_on(tx, work.conversation.id)


def cancel(tx: Tx, candidate: str, reason: str = CANCELLED) -> bool:
    """Cancel a candidate whose conversation the caller holds; False: it had its end already."""
    work = load(tx, candidate)
    if work is None or work.settled:
        return False
    fail(tx, work, "canceled", reason)
    return True


def cancel_children(tx: Tx, run: Run, tasks: Collection[int] | None = None) -> None:
    """Cancel what the calls of a run (`tasks`: these) started and what has no end, at any depth."""
    for conversation_id, candidate in store_children.unsettled(tx, run.id, tasks):
        conversations.lock(tx, conversation_id)
        cancel(tx, candidate)


def _reply(tx: Tx, work: Work, status: str, outcome: Outcome | None) -> None:
    reply = Message(
        "reply",
        "assistant",
        work.turn.id,
        work.variant.id,
        status=STATUS[status],
        outcome=outcome,
        created_at=now(),
    )
    replace_reply(tx, work.conversation.id, reply)


def _end_session(tx: Tx, work: Work, **facts: str | None) -> None:
    """Let a session end as its newest turn did, once nothing is under way in it any more; one of an
    agent that runs elsewhere, as this turn did."""
    if store.runs_here(tx, work.conversation.id):
        standing.stand(tx, work.conversation.id)
        return
    sessions.update(tx, work.conversation.id, ended_at=now(), **facts)
    tx.after_commit(lambda: waiting.announce(work.conversation.id))
