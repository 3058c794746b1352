"""Inputs: what was put into a conversation's queue, and the turn that it becomes.

The queue is first in, first out. Only `message` inputs become turns by themselves: at once when
nothing is being answered and nothing waits before them, else when the turn before them is settled
(`advance`).
"""

from dataclasses import dataclass
from typing import Any

import msgspec

from stenograph.accounts.access import Caller
from stenograph.clock import now
from stenograph.conversations import (
    access,
    store,
    store_inputs,
    store_turns,
    store_variants,
    turn,
    variant,
)
from stenograph.conversations.access import Conversation
from stenograph.conversations.limits import refused
from stenograph.conversations.turn import Role, Speaker, Turn
from stenograph.errors import ConflictError, NotFoundError, RefusedError
from stenograph.events.journal import Event, append
from stenograph.ids import new_id
from stenograph.storage.database import Row, Tx

#: How many inputs may wait in one conversation.
LIMIT = 100
#: Characters of one input's text.
LONGEST = 1_000_000


@dataclass(frozen=True, slots=True)
class Input:
    """A row of the queue, as it was accepted; `turn_id` is set once it was consumed."""

    id: int
    public_id: str
    state: str
    kind: str
    role: Role
    origin: str
    text: str | None
    options: dict[str, Any]
    lock_version: int
    created_at: int
    turn_id: int | None
    speaker: Speaker | None
    answerer: str | None


@dataclass(frozen=True, slots=True)
class Materialization:
    """What an input became: the public ids of turn, original candidate and its run."""

    input: str
    turn: str
    variant: str
    run: str | None


@dataclass(frozen=True, slots=True)
class Expected:
    """What the sender believes of the conversation; None: it does not say."""

    context_revision: int | None = None
    tail_turn: str | None = None


def _input(row: Row) -> Input:
    options = msgspec.json.decode(row[7], type=dict[str, Any])
    speaker = None if row[11] is None else Speaker(*row[11:15])
    columns = (*row[:7], options, *row[8:11], speaker, row[15])
    return Input(*columns)


def find(tx: Tx, conversation: Conversation, public_id: str) -> Input:
    """Return an input of the conversation, waiting or consumed. Raises `NotFoundError`."""
    row = store_inputs.find(tx, conversation.id, public_id)
    if row is None:
        raise NotFoundError("Not found")
    return _input(row)


def queue(tx: Tx, conversation: Conversation) -> list[Input]:
    """List what waits."""
    return [_input(row) for row in store_inputs.queue(tx, conversation.id)]


def accept(
    tx: Tx,
    caller: Caller,
    conversation: Conversation,
    *,
    kind: str,
    role: Role = "user",
    text: str,
    visible_in_context: bool = True,
    expected: Expected | None = None,
) -> Input:
    """Put an input into the queue, and let it become a turn if it is its time.

    Raises `ForbiddenError`; `ConflictError` (`workspace_not_active`, `conversation_archived`,
    `stale_context`, `stale_timeline`, `input_queue_full`); `RefusedError` (`validation_failed`,
    `answering_unavailable` for what a model would have to answer).
    """
    access.require_full(conversation)
    access.require_open(conversation)
    if kind != "message":
        raise RefusedError(
            "Nothing on this server answers a direct_reply yet; send a message",
            code="answering_unavailable",
        )
    if not text.strip():
        raise refused("text must not be blank")
    if len(text) > LONGEST:
        raise refused(f"text is longer than {LONGEST} characters")
    store.lock(tx, conversation.id)
    _check(tx, conversation, expected or Expected())
    waiting = store_inputs.queue(tx, conversation.id)
    if len(waiting) >= LIMIT:
        raise ConflictError("Too many inputs wait", code="input_queue_full")
    public_id = new_id()
    store_inputs.add(
        tx,
        conversation.id,
        public_id=public_id,
        state="pending",
        kind=kind,
        role=role,
        origin="agent" if caller.kind == "agent" else "person",
        sender_id=caller.principal_id,
        text=text,
        options=msgspec.json.encode({"visible_in_context": visible_in_context}).decode(),
        created_at=now(),
    )
    payload = {"input_public_id": public_id, "kind": kind, "delivery_mode": "queue"}
    append(tx, conversation.id, Event("input_accepted", payload=payload))
    advance(tx, conversation.id)
    return find(tx, conversation, public_id)


def _check(tx: Tx, conversation: Conversation, expected: Expected) -> None:
    revision, tail = store_turns.head(tx, conversation.id)
    if expected.context_revision not in (None, revision):
        raise ConflictError("The context has changed", code="stale_context")
    if expected.tail_turn not in (None, tail):
        raise ConflictError("There are newer turns", code="stale_timeline")


def advance(tx: Tx, conversation_id: int) -> list[Turn]:
    """Let messages at the head of the queue become turns, as long as nothing is being answered.

    Called when an input arrives and when a turn is settled; the caller holds the conversation.
    """
    made: list[Turn] = []
    if store_turns.active_turn(tx, conversation_id) is not None:
        return made
    for row in store_inputs.queue(tx, conversation_id):
        waiting = _input(row)
        if waiting.kind != "message" or waiting.state != "pending":
            break
        made.append(_materialize(tx, conversation_id, waiting))
    return made


def _materialize(tx: Tx, conversation_id: int, waiting: Input) -> Turn:
    """Make a completed turn of a message: its own words are its content, no model is asked."""
    sender_id, answerer_id, text = store_inputs.said(tx, waiting.id)
    made = turn.open(
        tx,
        conversation_id,
        kind="message",
        role=waiting.role,
        status="completed",
        visibility=(
            "visible"
            if waiting.options.get("visible_in_context", True)
            else "excluded_from_context"
        ),
        origin=waiting.origin,
        speaker_id=sender_id,
        answerer_id=answerer_id,
        input_id=waiting.id,
        announce=False,
    )
    said = variant.add(tx, made, source="manual", status="completed", content=text, announce=False)
    store_inputs.consume(tx, waiting.id, made.id, now())
    named = {"input_public_id": waiting.public_id}
    append(
        tx,
        conversation_id,
        Event("input_materialized", made.id, said.id, payload=named),
        Event("turn_created", made.id, said.id, payload={"status": "completed"}),
        Event(
            "turn_status",
            made.id,
            said.id,
            payload={"status": "completed", "variant_status": "completed"},
        ),
    )
    return made


def materialization(
    tx: Tx, conversation: Conversation, public_id: str, *, hidden: bool = False
) -> Materialization:
    """Return what an input became.

    Raises `NotFoundError` while it waits, when it steered another turn, when its turn or original
    candidate is concealed, and when the turn is hidden unless `hidden`.
    """
    found = find(tx, conversation, public_id)
    if found.turn_id is None:
        raise NotFoundError("Not found")
    made = turn.find(tx, conversation, store_turns.turn_public_id(tx, found.turn_id))
    original = store_variants.first_variant(tx, made.id)
    if original is None or (made.visibility == "hidden" and not hidden):
        raise NotFoundError("Not found")
    return Materialization(public_id, made.public_id, *original)
