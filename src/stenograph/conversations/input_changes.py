"""Changing what waits: an input is edited, deleted, or put elsewhere in the queue.

What has become of an input is not changed here any more, and the system's own inputs never are.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from stenograph.conversations import (
    access,
    attachment,
    input_row,
    steering,
    store_attachments,
    store_inputs,
)
from stenograph.conversations import wishes as wishing
from stenograph.conversations.access import Conversation
from stenograph.conversations.attachment import Wanted
from stenograph.conversations.input import require_current, settled
from stenograph.conversations.input_queue import advance
from stenograph.conversations.input_row import Input
from stenograph.conversations.turn import Role
from stenograph.conversations.wishes import Wishes
from stenograph.errors import ConflictError
from stenograph.events.journal import Event, append
from stenograph.storage.database import Tx


@dataclass(frozen=True, slots=True)
class Draft:
    """An input as somebody wants it; `files` None: those it has."""

    role: Role
    text: str | None
    wishes: Wishes
    files: Sequence[Wanted] | None = None


def edit(
    tx: Tx,
    conversation: Conversation,
    public_id: str,
    change: Callable[[Input], Draft],
    *,
    expected: int | None = None,
) -> Input:
    """Change an input that waits; one that was blocked stands in line again.

    `change` is given the input as it is, `expected` is the lock version the caller knows. Raises
    what `input.accept` does but for a full queue, `NotFoundError`, and `ConflictError`:
    `kernel_input_immutable`, `stale_object`.
    """
    held, found = _held(tx, conversation, public_id)
    access.require_open(held)
    if expected not in (None, found.lock_version):
        raise ConflictError("It was changed meanwhile", code="stale_object")
    draft = change(found)
    wishes = settled(tx, conversation, found.kind, draft.text, draft.wishes)
    if draft.files is not None:
        kept = attachment.attach(tx, conversation, found.id, draft.files)
        wishes = replace(wishes, attachments=kept)
    require_current(tx, conversation.id, wishes)
    if wishes.deliver_at != found.wishes.deliver_at or _is_moved(found, wishes):
        marks = _marks(tx, conversation.id, found, wishes)
    else:
        marks = {"state": "steering" if found.state == "steering" else "pending"}
    store_inputs.update(
        tx,
        found.id,
        role=draft.role,
        text=draft.text,
        options=wishing.write(wishes),
        blocked_reason=None,
        lock_version=found.lock_version + 1,
        **marks,
    )
    payload = {"input_public_id": public_id, "lock_version": found.lock_version + 1}
    append(tx, conversation.id, Event("input_edited", payload=payload))
    advance(tx, conversation.id)
    return input_row.find(tx, conversation, public_id)


def _is_moved(found: Input, wishes: Wishes) -> bool:
    """Tell whether an input is to be delivered in another way, or checked against another run."""
    was = found.wishes
    return (wishes.delivery_mode, wishes.expected_steering_run_public_id) != (
        was.delivery_mode,
        was.expected_steering_run_public_id,
    )


def _marks(
    tx: Tx, conversation_id: int, found: Input, wishes: Wishes
) -> dict[str, str | int | None]:
    if steering.is_scheduled(wishes):
        return steering.marks(False, wishes)
    if _is_moved(found, wishes):
        steering.require_target(tx, conversation_id, wishes)
    return steering.marks(steering.is_taken(tx, conversation_id, found.kind, wishes), wishes)


def delete(tx: Tx, conversation: Conversation, public_id: str) -> None:
    """Take an input that waits out of the queue, with its text and files.

    Raises `NotFoundError`, `ForbiddenError`, or `ConflictError`: `kernel_input_immutable`,
    `stale_object`, `workspace_not_active`.
    """
    held, found = _held(tx, conversation, public_id)
    access.require_workspace(held)
    store_attachments.delete_of_input(tx, found.id)
    store_inputs.delete(tx, found.id)
    payload = {"input_public_id": public_id}
    append(tx, conversation.id, Event("input_deleted", payload=payload))
    advance(tx, conversation.id)


def reorder(tx: Tx, conversation: Conversation, public_ids: Sequence[str]) -> None:
    """Put what waits for a turn of its own in this order; the system's own inputs stay before.

    Raises `ForbiddenError`, `NotFoundError`, or `ConflictError`: `queue_changed` unless exactly the
    inputs that people and agents put in line are named, each once.
    """
    access.require_full(conversation)
    access.require_open(access.hold(tx, conversation))
    movable = {
        it.public_id: it.id
        for it in input_row.queue(tx, conversation)
        if it.state != "steering" and not it.is_kernel
    }
    if len(public_ids) != len(movable) or set(public_ids) != movable.keys():
        raise ConflictError("Other inputs wait than are named", code="queue_changed")
    store_inputs.order(tx, [movable[it] for it in public_ids])
    advance(tx, conversation.id)


def _held(tx: Tx, conversation: Conversation, public_id: str) -> tuple[Conversation, Input]:
    """Return a conversation, held and as it is now, with an input of it that may be changed."""
    input_row.find(tx, conversation, public_id)
    access.require_full(conversation)
    held = access.hold(tx, conversation)
    found = input_row.find(tx, conversation, public_id)
    if found.is_kernel:
        raise ConflictError(
            "The system put this input in; nobody else changes it", code="kernel_input_immutable"
        )
    if found.state == "consumed":
        raise ConflictError("The input has become part of a turn", code="stale_object")
    return held, found
