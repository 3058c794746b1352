"""What is said to a Reason or a session of this server.

A message to a session that waits for nothing opens a turn, `pending` until an engine answers it,
which is told after the commit. One that comes while a turn is open belongs to that turn, as a
steer: nobody has answered what was said before alone (docs/decisions/0010).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from stenograph.accounts.access import Caller
from stenograph.clock import now
from stenograph.conversations import store_turns, turn, variant
from stenograph.conversations.variant import Model
from stenograph.errors import ConflictError
from stenograph.events import bell
from stenograph.events.journal import Event
from stenograph.events.journal import append as append_event
from stenograph.sessions import creation, messages, reason, session, store, store_reasons
from stenograph.sessions import store_turns as turns
from stenograph.sessions.creation import NewSession
from stenograph.sessions.messages import Item, Message
from stenograph.storage.database import Tx

#: Characters of a first message that become its session's title.
TITLE = 80


@dataclass(frozen=True, slots=True)
class NewMessage:
    """What is sent; model and effort are for the turn that it opens."""

    text: str
    model: str | None = None
    reasoning_effort: str | None = None
    attachments: Sequence[Any] | None = None


def to_reason(tx: Tx, caller: Caller, public_id: str, new: NewMessage) -> Item:
    """Send a message to a Reason of the caller's; the first one opens its conversation."""
    found = reason.require_own(caller, reason.find(tx, caller, public_id))
    conversation_id = store_reasons.hold(tx, found.id)
    model = new.model or found.default_model
    if conversation_id is None:
        opening = NewSession(
            title=title(new.text), model=model, reasoning_effort=new.reasoning_effort, reason=found
        )
        conversation_id = creation.create(tx, caller, opening)
        store_reasons.update(tx, found.id, conversation_id=conversation_id)
    return _say(tx, caller, conversation_id, new, model)


def to_session(tx: Tx, caller: Caller, public_id: str, new: NewMessage) -> Item:
    """Send a message to a session that runs here.

    Raises `ConflictError` (`session_target_unavailable`) for one whose agent runs elsewhere: it
    would never get it.
    """
    found = session.find(tx, caller, public_id)
    session.require_control(caller, found)
    if not found.runs_here:
        raise ConflictError(
            "The session's agent runs elsewhere and gets no messages from here",
            code="session_target_unavailable",
        )
    return _say(tx, caller, found.id, new, new.model or found.model)


def title(text: str) -> str | None:
    """Return the title of a session that begins with this text."""
    return " ".join(text.split())[:TITLE] or None


def _say(tx: Tx, caller: Caller, conversation_id: int, new: NewMessage, model: str | None) -> Item:
    at = now()
    store.hold(tx, conversation_id)
    waiting = turns.open_turns(tx, conversation_id)
    if waiting:
        turn_id, variant_id, _ = waiting[-1]
        step_id = turns.insert_step(tx, conversation_id, "steer", turn_id, variant_id, new.text, at)
        said = Message("message", "user", turn_id, step_id=step_id)
        event = Event(
            "input_accepted", turn_id=turn_id, step_id=step_id, payload={"delivery_mode": "steer"}
        )
    else:
        opened = turn.open(
            tx, conversation_id, status="pending", speaker_id=caller.principal_id, announce=False
        )
        wanted = variant.add(
            tx,
            opened,
            source="run",
            status="pending",
            prompt=new.text,
            model=Model(model_ref=model, reasoning_effort=new.reasoning_effort),
            announce=False,
        )
        turns.insert_step(tx, conversation_id, "prompt", opened.id, wanted.id, None, at)
        said = Message("message" if opened.position else "prompt", "user", opened.id, wanted.id)
        event = Event("turn_created", opened.id, wanted.id)
        bell.ring(tx, wanted.public_id)
    append_event(tx, conversation_id, event)
    said = replace(said, attachments=new.attachments, created_at=at)
    cursor = messages.append(tx, conversation_id, said)
    store.resume(tx, conversation_id)
    store_turns.touch(tx, conversation_id, at)
    return messages.at(tx, conversation_id, cursor)
