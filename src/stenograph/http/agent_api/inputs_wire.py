"""Inputs between their rows and their shapes: what was sent is read, what is kept is written."""

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from stenograph import clock
from stenograph.conversations import attachment, input_row, store_inputs
from stenograph.conversations.access import Conversation
from stenograph.conversations.attachment import Attachment, File, Wanted
from stenograph.conversations.input import LIMIT
from stenograph.conversations.input_row import Input
from stenograph.conversations.limits import refused
from stenograph.conversations.wishes import Wishes
from stenograph.errors import RefusedError
from stenograph.http.agent_api import wire, wire_inputs
from stenograph.http.agent_api.common import Mask, file, moment, speaker
from stenograph.http.agent_api.wire_inputs import InputFields, NewAttachment
from stenograph.storage.database import Tx

#: What has the same name and shape on the wire as in the record.
_ALIKE = (
    "visible_in_context", "delivery_mode", "configuration", "tool_names", "approval_mode",
    "context_mode", "entries", "instructions", "inline", "history", "variables",
    "expected_context_revision", "expected_tail_turn_public_id", "expected_steering_run_public_id",
    "answering_user_public_id",
)  # fmt: skip
#: What a row says in `context_options`.
_OPTIONS = (
    "visible_in_context", "configuration", "entries", "inline", "history", "variables",
    "expected_context_revision", "expected_tail_turn_public_id",
)  # fmt: skip
_USUAL = Wishes()
_SECOND = clock.SECOND


# What was sent


def wishes(new: InputFields, was: Wishes = _USUAL) -> Wishes:
    """Return what is asked for: what is absent as it was, what is null as it comes.

    Raises `RefusedError` `validation_failed`, or `invalid_steps`: nobody authors the tasks of a run
    here.
    """
    if new.steps is not UNSET and new.steps is not None:
        count = len(new.steps) if isinstance(new.steps, list) else 1
        problems = [{"index": n, "reason": "not_supported"} for n in range(min(count, 100))]
        raise RefusedError(
            "The steps of a run are its model's: this server takes none from a client",
            code="invalid_steps",
            steps=problems,
        )
    changes: dict[str, Any] = {
        name: getattr(_USUAL, name) if (value := getattr(new, name)) is None else value
        for name in _ALIKE
        if getattr(new, name) is not UNSET
    }
    if new.model is not UNSET:
        changes["model"] = None if new.model is None else new.model.model
        changes["reasoning_enabled"] = None if new.model is None else new.model.reasoning_enabled
        changes["reasoning_effort"] = None if new.model is None else new.model.reasoning_effort
    if new.reasoning_replay is not UNSET:
        mode = new.reasoning_replay
        changes["reasoning_replay"] = None if mode is None else mode.mode
    if new.deliver_at is not UNSET or new.deliver_in is not UNSET:
        changes["deliver_at"] = _moment(new)
    return replace(was, **changes)


def _moment(new: InputFields) -> int | None:
    at, seconds = new.deliver_at or None, new.deliver_in
    if seconds is UNSET:
        seconds = None
    if at is not None and seconds is not None:
        raise refused("An input has deliver_at or deliver_in, not both")
    if seconds is not None:
        return clock.now() + seconds * _SECOND
    if at is None:
        return None
    found = clock.parse_iso(at)
    if found is None:
        raise refused("deliver_at is a moment in ISO 8601")
    return found


def files(new: InputFields) -> Sequence[Wanted]:
    """Return the files that are wanted; raises `RefusedError` for one that is neither."""
    return [_file(n, it) for n, it in enumerate(new.attachments or ())]


def _file(n: int, new: NewAttachment) -> Wanted:
    given = (new.filename, new.content_type, new.data)
    if new.public_id is not None and given == (None, None, None):
        return new.public_id
    if new.public_id is not None or None in given:
        raise refused(
            f"attachments/{n}: give filename, content_type and data, or a public_id alone"
        )
    assert new.filename is not None
    assert new.content_type is not None
    assert new.data is not None
    return File(new.filename, new.content_type, new.data)


# What is kept


def row(found: Input, place: int, cover: Mask, attached: Sequence[Attachment]) -> wire_inputs.Input:
    """Write an input as it was accepted or edited; `place` counts from 1."""
    asked = found.wishes
    state = found.state
    if state == "consumed":
        state = "pending" if found.turn_id is not None else "steering"
    return wire_inputs.Input(
        public_id=found.public_id,
        queue_position=place,
        state=state,
        kind=found.kind,
        role=found.role,
        delivery_mode=asked.delivery_mode,
        context_mode=asked.context_mode,
        context_options=_options(asked, cover),
        tool_names=None if asked.tool_names is None else list(asked.tool_names),
        approval_mode=asked.approval_mode,
        instructions=cover.text(asked.instructions),
        blocked_reason=found.blocked_reason,
        text=cover.text(found.text),
        attachments=[file(it, cover) for it in attached] or None,
        lock_version=found.lock_version,
        created_at=clock.iso_seconds(found.created_at),
        deliver_at=moment(asked.deliver_at),
        origin=found.origin,
        sender_conversation_public_id=asked.sender_conversation,
        callback_result=cover.json(asked.callback_result),
        answering_user_public_id=found.answerer,
        speaker=speaker(found.speaker),
        expected_steering_run_public_id=asked.expected_steering_run_public_id,
    )


def _options(asked: Wishes, cover: Mask) -> dict[str, Any]:
    found: dict[str, Any] = {
        name: msgspec.to_builtins(value)
        for name in _OPTIONS
        if (value := getattr(asked, name)) != getattr(_USUAL, name) or name == "visible_in_context"
    }
    if asked.model is not None:
        wish = {
            "model": asked.model,
            "reasoning_enabled": asked.reasoning_enabled,
            "reasoning_effort": asked.reasoning_effort,
        }
        found["model"] = {name: value for name, value in wish.items() if value is not None}
    if asked.reasoning_replay is not None:
        found["reasoning_replay"] = {"mode": asked.reasoning_replay}
    masked: dict[str, Any] = cover.json(found)
    return masked


def one(tx: Tx, conversation: Conversation, public_id: str, cover: Mask) -> wire_inputs.InputAnswer:
    """Write one input, at its place if it waits."""
    found = input_row.find(tx, conversation, public_id)
    place = 1
    if found.state != "consumed":
        waiting = [it.id for it in input_row.queue(tx, conversation)]
        place = waiting.index(found.id) + 1
    attached = attachment.of_inputs(tx, [found.id]).get(found.id, ())
    return wire_inputs.InputAnswer(input=row(found, place, cover, attached))


def everything(tx: Tx, conversation: Conversation, cover: Mask) -> wire_inputs.Inputs:
    """Write what waits, and how the queue stands."""
    waiting = input_row.queue(tx, conversation)
    attached = attachment.of_inputs(tx, [it.id for it in waiting])
    return wire_inputs.Inputs(
        inputs=[
            row(it, place, cover, attached.get(it.id, ())) for place, it in enumerate(waiting, 1)
        ],
        input_queue=wire.InputQueue(
            limit=LIMIT, held=store_inputs.is_held(tx, conversation.id, clock.now())
        ),
    )
