"""Inputs as they lie in the queue: what was put in, and what waits in which order."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from stenograph.clock import now
from stenograph.conversations import store_inputs, wishes
from stenograph.conversations.access import Conversation
from stenograph.conversations.turn import Role, Speaker
from stenograph.conversations.wishes import Wishes
from stenograph.errors import NotFoundError
from stenograph.storage.database import Row, Tx

State: TypeAlias = Literal["pending", "steering", "blocked", "consumed"]
Kind: TypeAlias = Literal["message", "direct_reply"]

#: Where the system's own inputs come from; nobody else changes them.
KERNEL = ("task_result", "child")


@dataclass(frozen=True, slots=True)
class Input:
    """A row of the queue; `turn_id` is set once it was consumed, unless it steered a turn.

    `answerer` is the public id of who answers, `blocked_reason` why it cannot become a turn.
    """

    id: int
    public_id: str
    state: State
    kind: Kind
    role: Role
    origin: str
    text: str | None
    wishes: Wishes
    lock_version: int
    created_at: int
    turn_id: int | None
    blocked_reason: str | None
    speaker: Speaker | None
    answerer: str | None

    @property
    def is_kernel(self) -> bool:
        """Whether the system put it in."""
        return self.origin in KERNEL


def of(row: Row) -> Input:
    """Return the input of a row of `store_inputs`."""
    asked = wishes.read(row[7])
    speaker = None if row[12] is None else Speaker(*row[12:16])
    answerer = asked.answering_user_public_id or row[16]
    columns = (*row[:7], asked, *row[8:12], speaker, answerer)
    return Input(*columns)


def find(tx: Tx, conversation: Conversation, public_id: str) -> Input:
    """Return an input of the conversation, waiting or consumed. Raises `NotFoundError`."""
    row = store_inputs.find(tx, conversation.id, public_id)
    if row is None:
        raise NotFoundError("Not found")
    return of(row)


def queue(tx: Tx, conversation: Conversation) -> list[Input]:
    """List what waits: for a turn of its own (the system's own inputs first, scheduled ones in
    their places), then for the running turn to take it in."""
    waiting = [of(row) for row in store_inputs.waiting(tx, conversation.id)]
    return sorted(waiting, key=lambda it: it.state == "steering")


def in_line(tx: Tx, conversation_id: int) -> list[Input]:
    """List what waits for a turn of its own and may have one now, in order."""
    return [of(row) for row in store_inputs.in_line(tx, conversation_id, now())]
