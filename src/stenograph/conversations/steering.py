"""Steering: inputs that go into the turn that is being answered, instead of one of their own.

They wait beside the queue until the run asks its model again. One that is urgent (`steer_now`) also
ends the model call that is under way, which is then made anew with it.
"""

from dataclasses import dataclass

from stenograph.clock import now
from stenograph.conversations import attachment, input_row, store_attachments, store_inputs
from stenograph.conversations.attachment import Attachment
from stenograph.conversations.input_row import Input
from stenograph.conversations.wishes import Wishes, prompt
from stenograph.errors import ConflictError
from stenograph.events.journal import Event, append
from stenograph.storage.database import Tx

_HELD = ("paused", "needs_attention")


@dataclass(frozen=True, slots=True)
class Steer:
    """What was said into a turn; `input` is the public id of the input."""

    input: str
    text: str
    attachments: tuple[Attachment, ...]


def is_taken(tx: Tx, conversation_id: int, kind: str, wishes: Wishes) -> bool:
    """Tell whether an input goes into the turn that is being answered; a direct reply's one model
    call takes nothing in."""
    wants = kind == "direct_reply" and wishes.delivery_mode != "queue"
    return wants and store_inputs.running_run(tx, conversation_id) is not None


def require_target(tx: Tx, conversation_id: int, wishes: Wishes) -> None:
    """Raise `ConflictError`: `steering_target_changed` if another run answers than the sender
    believes, `steering_held` if what is urgent could not be said at once."""
    if wishes.delivery_mode == "queue":
        return
    run = store_inputs.running_run(tx, conversation_id)
    expected = wishes.expected_steering_run_public_id
    if expected is not None and (run is None or run[0] != expected):
        raise ConflictError("Another run answers now, or none", code="steering_target_changed")
    if wishes.delivery_mode == "steer_now" and run is not None and (run[1] in _HELD or run[2]):
        raise ConflictError("The run is held, and hears nothing now", code="steering_held")


def marks(steers: bool, wishes: Wishes) -> dict[str, str | int | None]:
    """Return the columns of an input that say when it is delivered: into the turn that is being
    answered, in line, or in line from a moment on."""
    if steers:
        urgent = 0 if wishes.delivery_mode == "steer_now" else None
        return {"state": "steering", "deliver_at": urgent}
    at = wishes.deliver_at
    later = at is not None and at > now()
    return {"state": "pending", "deliver_at": at if later else None}


def is_scheduled(wishes: Wishes) -> bool:
    """Tell whether an input is to be delivered later than now."""
    return wishes.deliver_at is not None and wishes.deliver_at > now()


def is_urgent(tx: Tx, variant_id: int) -> bool:
    """Tell whether something is to be said into the model call of a candidate (row id) at once."""
    return store_inputs.is_urgent(tx, variant_id)


def take(tx: Tx, conversation_id: int, turn_id: int, variant_id: int) -> list[Steer]:
    """Hand over what steers a candidate of the running turn, in order; it is consumed by it.

    One that is made anew beside the answer that its turn shows takes nothing in.
    """
    rows = [input_row.of(row) for row in store_inputs.steering(tx, conversation_id, variant_id)]
    files = attachment.of_inputs(tx, [it.id for it in rows]) if rows else {}
    for it in rows:
        store_inputs.consume(tx, it.id, None, now())
        if it.id in files:
            store_attachments.bind(tx, it.id, variant_id)
        payload = {"input_public_id": it.public_id}
        append(tx, conversation_id, Event("input_materialized", turn_id, payload=payload))
    return [Steer(it.public_id, _said(it), tuple(files.get(it.id, ()))) for it in rows]


def _said(found: Input) -> str:
    return prompt(found.text, found.wishes)
