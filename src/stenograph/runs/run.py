"""Runs: a candidate answered by a machine in rounds, from its start to its end."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from stenograph.accounts.access import Caller
from stenograph.clock import now
from stenograph.conversations import access
from stenograph.conversations.access import Conversation
from stenograph.conversations.turn import Turn
from stenograph.conversations.variant import Variant
from stenograph.errors import GoneError
from stenograph.events.journal import Event, append
from stenograph.ids import new_id
from stenograph.runs import store
from stenograph.storage.database import Tx

Status: TypeAlias = Literal[
    "pending", "running", "paused", "needs_attention", "canceling", "completed", "canceled"
]
TERMINAL: tuple[Status, ...] = ("completed", "canceled")


@dataclass(frozen=True, slots=True)
class Run:
    """A run. Times are in microseconds; `delivered_at`: the answer stands, work may go on."""

    id: int
    public_id: str
    conversation_id: int
    turn_id: int
    variant_id: int
    status: Status
    approval_mode: str
    failure_reason: str | None
    started_at: int | None
    paused_at: int | None
    delivered_at: int | None
    completed_at: int | None
    details_pruned_at: int | None
    created_at: int
    updated_at: int


def find(
    tx: Tx, caller: Caller, workspace_public_id: str, public_id: str
) -> tuple[Conversation, Run]:
    """Return a run of a conversation that the caller may read. Raises `NotFoundError`."""
    run_id, conversation = access.find_for_run(tx, caller, workspace_public_id, public_id)
    return conversation, Run(*store.run(tx, run_id))


def of(tx: Tx, variant: Variant) -> Run | None:
    """Return the run of a candidate; None for a direct reply or a message."""
    row = store.run_of(tx, variant.id)
    return None if row is None else Run(*row)


def require_details(run: Run) -> None:
    """Raise `GoneError` if retention has collected the run's details."""
    if run.details_pruned_at is not None:
        raise GoneError


def open(tx: Tx, turn: Turn, variant: Variant, *, approval_mode: str = "bypass") -> Run:
    """Start the run that answers a candidate."""
    at = now()
    run_id = store.add_run(
        tx,
        turn.conversation_id,
        public_id=new_id(),
        variant_id=variant.id,
        status="running",
        approval_mode=approval_mode,
        started_at=at,
        created_at=at,
        updated_at=at,
    )
    return Run(*store.run(tx, run_id))


def move(tx: Tx, run: Run, status: Status, *, reason: str | None = None) -> Run:
    """Put a run into another status; a terminal one says when it ended.

    The turn does not follow by itself: what a run's end means for its candidate is said by
    `variant.settle`.
    """
    at = now()
    moments: dict[str, int | None] = {"paused_at": at if status == "paused" else None}
    if status in TERMINAL:
        moments |= {"completed_at": at, "delivered_at": run.delivered_at or at}
    store.update_run(tx, run.id, status=status, failure_reason=reason, updated_at=at, **moments)
    note(tx, run, {"run_status": status})
    return Run(*store.run(tx, run.id))


def reopen(tx: Tx, run: Run) -> Run:
    """Let a run that failed go on. Its time counts from here (`started_at`)."""
    store.update_run(tx, run.id, delivered_at=None, completed_at=None, started_at=now())
    return move(tx, run, "running")


def cancel(tx: Tx, run: Run, reason: str) -> Run:
    """End a run and all that it has not finished."""
    store.cancel_work(tx, run.id, now())
    return move(tx, run, "canceled", reason=reason)


def note(tx: Tx, run: Run, payload: dict[str, str]) -> None:
    """Tell the followers of the conversation how the run stands, apart from its turn."""
    event = Event("turn_status", run.turn_id, run.variant_id, run.id, payload=payload)
    append(tx, run.conversation_id, event)
