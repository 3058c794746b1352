"""Conversations that began in the Agent API are sessions like any other (design.md 1).

They get the facts of a session when they are made, and what is said in them gets its place in the
feed and in the trajectory. The words stay where they are, with the candidate.
"""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Literal

import msgspec

from stenograph.accounts.access import Caller
from stenograph.clock import now
from stenograph.conversations import attachment, input_queue, steering
from stenograph.conversations.attachment import Attachment
from stenograph.sessions import messages, store
from stenograph.sessions import store_turns as turns
from stenograph.sessions.messages import Message
from stenograph.storage.database import Tx

#: By the role of a message: the part its step has in the trajectory, and who says so there.
_STEPS: dict[str, tuple[str, str]] = {"user": ("prompt", "user"), "assistant": ("agent", "agent")}


class _Own(msgspec.Struct):
    input: str | None = None


class _Extra(msgspec.Struct):
    stenograph: _Own = msgspec.field(default_factory=_Own)


class _Rest(msgspec.Struct):
    extra: _Extra = msgspec.field(default_factory=_Extra)


def begin(tx: Tx, caller: Caller, conversation_id: int) -> None:
    """Give a conversation that was just made the facts of a session that waits for nothing."""
    at = now()
    store.insert_session(
        tx,
        conversation_id,
        organization_id=caller.organization_id,
        owner_id=caller.principal_id,
        mode="standard",
        status="exit",
        tags="[]",
        options="{}",
        created_at=at,
        started_at=at,
    )


def go_on(tx: Tx, conversation_id: int) -> None:
    """Let inputs that waited become turns, when nothing is being answered any more.

    The caller holds the conversation.
    """
    if input_queue.advance(tx, conversation_id):
        catch_up(tx, conversation_id)


def fall_due(tx: Tx, conversation_id: int) -> None:
    """Deliver scheduled inputs whose time has come."""
    if input_queue.fall_due(tx, conversation_id):
        catch_up(tx, conversation_id)


def catch_up(tx: Tx, conversation_id: int) -> None:
    """Put inputs that became turns, and are not there yet, into the feed and the trajectory.

    A message of the role system or tool has a step and is in no feed, which knows neither role.
    """
    for row in turns.unheard(tx, conversation_id):
        place(tx, conversation_id, *row)
        if row[3] == "direct_reply":
            store.resume(tx, conversation_id)


def place(
    tx: Tx,
    conversation_id: int,
    turn_id: int,
    variant_id: int,
    position: int,
    kind: str,
    role: str,
    content: str | None,
    at: int,
) -> None:
    """Give what opened a turn its step, and its row of the feed."""
    part = put_step(tx, conversation_id, turn_id, variant_id, kind, role, content, at)
    if part == "system":
        return
    speaker: Literal["user", "assistant"] = "user" if part == "prompt" else "assistant"
    item: messages.Kind = "prompt" if position == 0 and speaker == "user" else "message"
    files = attachment.of_variants(tx, [variant_id]).get(variant_id, ())
    said = Message(item, speaker, turn_id, variant_id, attachments=_listed(files), created_at=at)
    messages.append(tx, conversation_id, said)


def _listed(files: Sequence[Attachment]) -> list[dict[str, Any]] | None:
    return [asdict(file) for file in files] or None


def put_step(
    tx: Tx,
    conversation_id: int,
    turn_id: int,
    variant_id: int,
    kind: str,
    role: str,
    content: str | None,
    at: int,
) -> str:
    """Give what opens a turn its step in the trajectory, and return the step's part."""
    part, source = _STEPS.get("user" if kind == "direct_reply" else role, ("system", "system"))
    text = content if part == "system" else None
    turns.insert_step(tx, conversation_id, part, turn_id, variant_id, text, at, source=source)
    return part


def take_steers(tx: Tx, conversation_id: int, turn_id: int, variant_id: int) -> None:
    """Let inputs that steer the running turn go into it, before its next call of the model.

    The caller holds the conversation.
    """
    at = now()
    for steer in steering.take(tx, conversation_id, turn_id, variant_id):
        files = _listed(steer.attachments)
        rest = None if files is None else steer_rest(steer.input)
        step_id = turns.insert_step(
            tx, conversation_id, "steer", turn_id, variant_id, steer.text, at, rest=rest
        )
        said = Message(
            "message", "user", turn_id, step_id=step_id, attachments=files, created_at=at
        )
        messages.append(tx, conversation_id, said)


def steer_rest(input: str) -> str:
    """Write beside a steer's step the input whose files came with it."""
    return msgspec.json.encode({"extra": {"stenograph": {"input": input}}}).decode()


def steer_input(rest: str | None) -> str | None:
    """Return the public id of the input that `steer_rest` wrote."""
    if rest is None:
        return None
    try:
        return msgspec.json.decode(rest, type=_Rest).extra.stenograph.input
    except msgspec.ValidationError:  # a log's own words under the same names
        return None
