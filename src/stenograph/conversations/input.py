"""Inputs: what is put into a conversation's queue, and the turn that it becomes.

An input becomes a turn at once when nothing is being answered and nothing waits before it, else
when its time comes (`input_queue`). A `message` is a turn that has its end; a `direct_reply` is one
that waits for its answer, and whoever drives hears of it. One that steers waits beside the queue
until the running turn takes it (`steering`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from stenograph.accounts.access import Caller
from stenograph.clock import now
from stenograph.conversations import (
    access,
    access_list,
    attachment,
    steering,
    store_inputs,
    store_turns,
    store_variants,
    turn,
    wishes_check,
)
from stenograph.conversations import wishes as wishing
from stenograph.conversations.access import Conversation
from stenograph.conversations.attachment import Wanted
from stenograph.conversations.input_queue import advance, stale
from stenograph.conversations.input_row import Input, Kind, find
from stenograph.conversations.turn import Role
from stenograph.conversations.wishes import Wishes
from stenograph.errors import ConflictError, NotFoundError
from stenograph.events.journal import Event, append
from stenograph.ids import new_id
from stenograph.storage.database import Tx

#: How many inputs may wait in one conversation.
LIMIT = 100


@dataclass(frozen=True, slots=True)
class Materialization:
    """What an input became: the public ids of turn, original candidate and its run."""

    input: str
    turn: str
    variant: str
    run: str | None


def accept(
    tx: Tx,
    caller: Caller,
    conversation: Conversation,
    *,
    kind: Kind,
    role: Role = "user",
    text: str | None,
    wishes: Wishes | None = None,
    files: Sequence[Wanted] = (),
) -> Input:
    """Put an input into the queue, and let it become a turn if it is its time.

    Raises `ForbiddenError`; `NotFoundError` if the conversation is gone; `RefusedError`
    (`validation_failed`, `answerer_not_eligible`); `TooLargeError`; `ConflictError`
    (`workspace_not_active`, `conversation_archived`, `stale_context`, `stale_timeline`,
    `input_queue_full`, `steering_target_changed`, `steering_held`).
    """
    access.require_full(conversation)
    access.require_open(access.hold(tx, conversation))
    wishes = settled(tx, conversation, kind, text, wishes or Wishes())
    attachment.check(files)
    require_current(tx, conversation.id, wishes)
    if store_inputs.count(tx, conversation.id) >= LIMIT:
        raise ConflictError("Too many inputs wait", code="input_queue_full")
    steers = False
    if not steering.is_scheduled(wishes):
        steering.require_target(tx, conversation.id, wishes)
        steers = steering.is_taken(tx, conversation.id, kind, wishes)
    public_id = new_id()
    input_id = store_inputs.add(
        tx,
        conversation.id,
        public_id=public_id,
        kind=kind,
        role=role,
        origin="agent" if caller.kind == "agent" else "person",
        sender_id=caller.principal_id,
        text=text,
        options=wishing.write(wishes),
        created_at=now(),
        **steering.marks(steers, wishes),
    )
    if files:
        wishes = replace(wishes, attachments=attachment.attach(tx, conversation, input_id, files))
        store_inputs.update(tx, input_id, options=wishing.write(wishes))
    payload = {"input_public_id": public_id, "kind": kind, "delivery_mode": wishes.delivery_mode}
    append(tx, conversation.id, Event("input_accepted", payload=payload))
    advance(tx, conversation.id)
    return find(tx, conversation, public_id)


def settled(
    tx: Tx, conversation: Conversation, kind: str, text: str | None, wishes: Wishes
) -> Wishes:
    """Check what an input asks for, and return it with its answerer by public id.

    Raises `RefusedError` `validation_failed` or `answerer_not_eligible`.
    """
    wishes_check.check(kind, text, wishes)
    name = wishes.answering_user_public_id
    if name is None:
        return wishes
    (who,) = access_list.members(tx, conversation.workspace_id, [name], "answerer_not_eligible")
    return replace(wishes, answering_user_public_id=store_inputs.principal(tx, who))


def require_current(tx: Tx, conversation_id: int, wishes: Wishes) -> None:
    """Raise `ConflictError` `stale_context` or `stale_timeline`, if the conversation is not any
    more as the sender believes."""
    match stale(tx, conversation_id, wishes):
        case "stale_context":
            raise ConflictError("The context has changed", code="stale_context")
        case "stale_timeline":
            raise ConflictError("There are newer turns", code="stale_timeline")


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
