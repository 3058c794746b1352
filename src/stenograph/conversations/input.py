"""Inputs: what was put into a conversation's queue, and the turn that it becomes.

The queue is first in, first out: an input becomes a turn at once when nothing is being answered and
nothing waits before it, else when the turn before it is settled (`advance`). A `message` is a turn
that has its end; a `direct_reply` is one that waits for its answer, and whoever drives hears of it.
One that steers waits beside the queue until the running turn takes it (`steering`).
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

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
from stenograph.conversations.turn import Role, Speaker, Status, Turn
from stenograph.conversations.variant import Model
from stenograph.errors import ConflictError, NotFoundError
from stenograph.events import bell
from stenograph.events.journal import Event, append
from stenograph.ids import new_id
from stenograph.storage.database import Row, Tx

#: How many inputs may wait in one conversation.
LIMIT = 100
State: TypeAlias = Literal["pending", "steering", "blocked", "consumed"]
Kind: TypeAlias = Literal["message", "direct_reply"]
Delivery: TypeAlias = Literal["queue", "steer", "steer_now"]
#: Characters of one input's text.
LONGEST = 1_000_000


class Wishes(msgspec.Struct, frozen=True, omit_defaults=True):
    """How an input is to be delivered and answered; None: as it comes.

    `model` is a name (`provider/model`). `tool_names`: the tools on offer, None: all there are.
    """

    visible_in_context: bool = True
    delivery_mode: Delivery = "queue"
    model: str | None = None
    reasoning_enabled: bool | None = None
    reasoning_effort: str | None = None
    tool_names: tuple[str, ...] | None = None
    approval_mode: str | None = None


@dataclass(frozen=True, slots=True)
class Input:
    """A row of the queue, as it was accepted; `turn_id` is set once it was consumed."""

    id: int
    public_id: str
    state: State
    kind: str
    role: Role
    origin: str
    text: str | None
    wishes: Wishes
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
    wishes = msgspec.json.decode(row[7], type=Wishes)
    speaker = None if row[11] is None else Speaker(*row[11:15])
    columns = (*row[:7], wishes, *row[8:11], speaker, row[15])
    return Input(*columns)


def find(tx: Tx, conversation: Conversation, public_id: str) -> Input:
    """Return an input of the conversation, waiting or consumed. Raises `NotFoundError`."""
    row = store_inputs.find(tx, conversation.id, public_id)
    if row is None:
        raise NotFoundError("Not found")
    return _input(row)


def queue(tx: Tx, conversation: Conversation) -> list[Input]:
    """List what waits: for a turn of its own, then for the running turn to take it in."""
    rows = (*store_inputs.queue(tx, conversation.id), *store_inputs.steering(tx, conversation.id))
    return [_input(row) for row in rows]


def accept(
    tx: Tx,
    caller: Caller,
    conversation: Conversation,
    *,
    kind: Kind,
    role: Role = "user",
    text: str,
    wishes: Wishes | None = None,
    expected: Expected | None = None,
) -> Input:
    """Put an input into the queue, and let it become a turn if it is its time.

    Raises `ForbiddenError`; `ConflictError` (`workspace_not_active`, `conversation_archived`,
    `stale_context`, `stale_timeline`, `input_queue_full`); `RefusedError` (`validation_failed`).
    """
    access.require_full(conversation)
    access.require_open(conversation)
    wishes = wishes or Wishes()
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
        state="steering" if _steers(tx, conversation.id, kind, wishes) else "pending",
        kind=kind,
        role=role,
        origin="agent" if caller.kind == "agent" else "person",
        sender_id=caller.principal_id,
        text=text,
        options=msgspec.json.encode(wishes).decode(),
        created_at=now(),
    )
    payload = {"input_public_id": public_id, "kind": kind, "delivery_mode": wishes.delivery_mode}
    append(tx, conversation.id, Event("input_accepted", payload=payload))
    advance(tx, conversation.id)
    return find(tx, conversation, public_id)


def _steers(tx: Tx, conversation_id: int, kind: Kind, wishes: Wishes) -> bool:
    """Tell whether an input goes into the turn that is being answered; a direct reply's one model
    call takes nothing in."""
    wants = kind == "direct_reply" and wishes.delivery_mode != "queue"
    return wants and store_inputs.has_running_run(tx, conversation_id)


def _check(tx: Tx, conversation: Conversation, expected: Expected) -> None:
    revision, tail = store_turns.head(tx, conversation.id)
    if expected.context_revision not in (None, revision):
        raise ConflictError("The context has changed", code="stale_context")
    if expected.tail_turn not in (None, tail):
        raise ConflictError("There are newer turns", code="stale_timeline")


def advance(tx: Tx, conversation_id: int) -> list[Turn]:
    """Let inputs at the head of the queue become turns, as long as nothing is being answered.

    Called when an input arrives and when a turn is settled; the caller holds the conversation.
    """
    made: list[Turn] = []
    if store_turns.active_turn(tx, conversation_id) is not None:
        return made
    store_inputs.release(tx, conversation_id)
    for row in store_inputs.queue(tx, conversation_id):
        waiting = _input(row)
        if waiting.state == "blocked":
            break
        made.append(_materialize(tx, conversation_id, waiting))
        if waiting.kind != "message":
            break
    return made


def _materialize(tx: Tx, conversation_id: int, waiting: Input) -> Turn:
    """Make a turn of an input: a message is its own content, a question waits for its answer."""
    sender_id, answerer_id, text = store_inputs.said(tx, waiting.id)
    wishes, asks = waiting.wishes, waiting.kind != "message"
    status: Status = "pending" if asks else "completed"
    made = turn.open(
        tx,
        conversation_id,
        kind="direct_reply" if asks else "message",
        role="assistant" if asks else waiting.role,
        status=status,
        visibility="visible" if wishes.visible_in_context else "excluded_from_context",
        origin=waiting.origin,
        speaker_id=sender_id,
        answerer_id=answerer_id,
        input_id=waiting.id,
        announce=False,
    )
    if asks:
        has_tools = wishes.tool_names is not None or store_inputs.has_tools(tx, conversation_id)
        said = variant.add(
            tx,
            made,
            source="run" if has_tools else "inference",
            status=status,
            prompt=text,
            model=Model(None, wishes.model, wishes.reasoning_enabled, wishes.reasoning_effort),
            announce=False,
        )
        bell.ring(tx, said.public_id)
    else:
        said = variant.add(tx, made, source="manual", status=status, content=text, announce=False)
    store_inputs.consume(tx, waiting.id, made.id, now())
    named = {"input_public_id": waiting.public_id}
    append(
        tx,
        conversation_id,
        Event("input_materialized", made.id, said.id, payload=named),
        Event("turn_created", made.id, said.id, payload={"status": status}),
        Event(
            "turn_status", made.id, said.id, payload={"status": status, "variant_status": status}
        ),
    )
    return made


def take_steers(tx: Tx, conversation_id: int, turn_id: int) -> list[tuple[int | None, str]]:
    """Hand over what steers the running turn, as (sender, text), in order; it is consumed by it."""
    taken = []
    for row in store_inputs.steering(tx, conversation_id):
        sender_id, _, text = store_inputs.said(tx, row[0])
        store_inputs.consume(tx, row[0], None, now())
        taken.append((sender_id, text))
        append(
            tx,
            conversation_id,
            Event("input_materialized", turn_id, payload={"input_public_id": row[1]}),
        )
    return taken


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
