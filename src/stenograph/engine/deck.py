"""Which candidate a turn shows: one that is there, or words that a person puts in its place."""

from dataclasses import dataclass

import msgspec

from stenograph.clock import now
from stenograph.conversations import access, attachment
from stenograph.conversations import turn as turns
from stenograph.conversations import variant as variants
from stenograph.conversations.access import Conversation
from stenograph.conversations.limits import check_text
from stenograph.conversations.turn import UNSETTLED, Turn
from stenograph.conversations.variant import Variant
from stenograph.engine import ending, finish, store, store_compaction, summary_turn
from stenograph.engine.start import require_here, require_quiet
from stenograph.errors import ConflictError
from stenograph.sessions import conversing, standing
from stenograph.sessions import store_turns as session_turns
from stenograph.sessions.messages import Outcome
from stenograph.storage.database import Tx

#: Characters of an edited text.
LONGEST = 1_000_000
#: Who writes turns besides people and agents; their words are nobody's to change.
_KERNEL = ("task_result", "child")


@dataclass(frozen=True, slots=True)
class Shown:
    """A turn, and the candidate it shows from now on."""

    turn: Turn
    variant: Variant


def activate(tx: Tx, conversation: Conversation, turn_id: str, variant_id: str) -> Shown:
    """Let a turn show another settled candidate; what the replaced one had under way ends for good.

    Raises `NotFoundError`, `ForbiddenError`, or `ConflictError`: `variant_not_active` for a
    candidate that is under way, and what `access.require_open` does.
    """
    turn = turns.find(tx, conversation, turn_id)
    variants.find(tx, turn, variant_id)
    variants.require_own(conversation, turn)
    access.require_open(access.hold(tx, conversation))
    turn = turns.find(tx, conversation, turn_id)
    chosen = variants.find(tx, turn, variant_id)
    variants.require_settled(chosen)
    replaced = _shown(tx, turn)
    if replaced.id != chosen.id:
        variants.activate(tx, turn, chosen)
        if replaced.status in UNSETTLED:
            ending.cancel(tx, replaced.public_id, "replaced")
        standing.show(tx, turn, chosen, _outcome(tx, chosen))
    return Shown(turns.find(tx, conversation, turn_id), chosen)


def edit(tx: Tx, conversation: Conversation, turn_id: str, text: str) -> Shown:
    """Put a text in the place of what the newest turn says: a message's words, or an answer.

    What it said before stays as another candidate. Raises `NotFoundError`, `ForbiddenError`,
    `RefusedError` (`validation_failed`), or `ConflictError`: `kernel_authored` for a summary or
    a result that the system wrote, `run_live` while the turn is being answered, `conversation_busy`
    while another is, `branch_required` for an older turn, `session_target_unavailable`, and what
    `access.require_open` does.
    """
    turn = turns.find(tx, conversation, turn_id)
    variants.require_own(conversation, turn)
    access.require_open(access.hold(tx, conversation))
    check_text("text", text, longest=LONGEST, blank=False)
    require_here(tx, conversation)
    turn = turns.find(tx, conversation, turn_id)
    if turn.kind == summary_turn.KIND or (turn.kind == "message" and turn.origin in _KERNEL):
        raise ConflictError("The system wrote this turn", code="kernel_authored")
    require_quiet(tx, conversation, turn)
    before = _shown(tx, turn)
    made = variants.add(
        tx,
        turn,
        source="edit",
        status="completed",
        prompt=before.prompt,
        content=text,
        origin_id=before.id,
    )
    attachment.copy(tx, before.id, made.id)
    variants.project(tx, turn, made.id, "completed")
    _place(tx, turn, before, made)
    standing.show(tx, turn, made, "success")
    return Shown(turns.find(tx, conversation, turn_id), made)


def _shown(tx: Tx, turn: Turn) -> Variant:
    return next(it for it in variants.deck(tx, turn) if it.id == turn.active_variant_id)


def _outcome(tx: Tx, chosen: Variant) -> Outcome | None:
    """Return what a candidate came to: what its agent declared, else what its status says."""
    if chosen.status != "completed":
        return None if chosen.status == "canceled" else "failure"
    declared = store.declared_by(tx, chosen.id, finish.NAME)
    try:
        return "success" if declared is None else finish.declared(declared).outcome
    except msgspec.MsgspecError:
        return "success"  # an imported log's tool of the same name


def _place(tx: Tx, turn: Turn, before: Variant, made: Variant) -> None:
    """Give an edited candidate its steps in the trajectory, what was said meanwhile included."""
    conversation_id, at = turn.conversation_id, now()
    place = (turn.id, made.id, turn.kind, turn.role, made.content)
    if turn.kind == "message":
        conversing.put_step(tx, conversation_id, *place, at)
        return
    if made.prompt is not None:
        conversing.put_step(tx, conversation_id, *place, at)
    for _, text in store_compaction.steers(tx, before.id):
        session_turns.insert_step(tx, conversation_id, "steer", turn.id, made.id, text, at)
    session_turns.insert_step(
        tx, conversation_id, "agent", turn.id, made.id, None, at, source="agent"
    )
