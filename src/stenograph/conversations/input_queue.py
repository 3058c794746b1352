"""The queue's course: an input at its head becomes a turn when its time has come, or is blocked.

First in, first out. One that cannot become a turn any more is blocked, and with it all behind it,
until somebody edits or deletes it. A scheduled one keeps its place and is passed over until it is
due.
"""

from collections.abc import Iterator

from stenograph.clock import now
from stenograph.conversations import (
    input_row,
    reach,
    steering,
    store,
    store_attachments,
    store_inputs,
    store_turns,
    turn,
    variant,
)
from stenograph.conversations.input_row import Input
from stenograph.conversations.turn import Status, Turn
from stenograph.conversations.variant import Model
from stenograph.conversations.wishes import Wishes, prompt
from stenograph.events import bell, waiting
from stenograph.events.journal import Event, append
from stenograph.storage.database import Tx


def advance(tx: Tx, conversation_id: int) -> list[Turn]:
    """Let inputs at the head of the queue become turns, as long as nothing is being answered.

    Called when the queue changes and when a turn is settled; the caller holds the conversation.
    """
    made: list[Turn] = []
    if store_turns.active_turn(tx, conversation_id) is not None:
        return made
    store_inputs.release(tx, conversation_id)
    for head in input_row.in_line(tx, conversation_id):
        if head.state == "blocked" or _blocked(tx, conversation_id, head):
            break
        made.append(_materialize(tx, conversation_id, head))
        if head.kind != "message":
            break
    return made


def fall_due(tx: Tx, conversation_id: int) -> list[Turn]:
    """Let scheduled inputs whose time has come stand in line, or go into the running turn as they
    wish, and return the turns that come of it; nothing if it was archived or deleted meanwhile."""
    held = store.hold(tx, conversation_id)
    if held is None or held[3] is not None:
        return []
    for row in store_inputs.fallen_due(tx, conversation_id, now()):
        due = input_row.of(row)
        if due.state == "pending" and steering.is_taken(tx, conversation_id, due.kind, due.wishes):
            store_inputs.update(tx, due.id, **steering.marks(True, due.wishes))
            tx.after_commit(lambda: waiting.announce(conversation_id))
    return advance(tx, conversation_id)


# Blocked inputs


def stale(tx: Tx, conversation_id: int, wishes: Wishes) -> str | None:
    """Return what is not any more as the sender of an input believes: `stale_context`,
    `stale_timeline`, or None."""
    revision, tail = wishes.expected_context_revision, wishes.expected_tail_turn_public_id
    if revision is None and tail is None:
        return None
    current, newest = store_turns.head(tx, conversation_id)
    if revision not in (None, current):
        return "stale_context"
    return "stale_timeline" if tail not in (None, newest) else None


def _blocked(tx: Tx, conversation_id: int, head: Input) -> bool:
    """Block an input that cannot become a turn."""
    reason = next(_obstacles(tx, conversation_id, head), None)
    if reason is None:
        return False
    store_inputs.update(tx, head.id, state="blocked", blocked_reason=reason)
    payload = {"input_public_id": head.public_id, "blocked_reason": reason}
    append(tx, conversation_id, Event("input_blocked", payload=payload))
    return True


def _obstacles(tx: Tx, conversation_id: int, head: Input) -> Iterator[str]:
    wishes = head.wishes
    if reason := stale(tx, conversation_id, wishes):
        yield reason
    if wishes.attachments:
        there = store_attachments.of_inputs_ids(tx, head.id)
        if not set(wishes.attachments) <= set(there):
            yield "attachment_missing"
    if head.kind == "message":
        return
    who = store_inputs.answerer(tx, conversation_id, wishes.answering_user_public_id)
    gone = who is None and wishes.answering_user_public_id is not None
    if gone or (who is not None and not who[2]):
        yield "answerer_not_eligible"
    if wishes.model is not None and not reach.is_reachable(wishes.model):
        yield "model_unavailable"


# Turns


def _materialize(tx: Tx, conversation_id: int, head: Input) -> Turn:
    """Make a turn of an input: a message is its own content, a question waits for its answer."""
    wishes, asks = head.wishes, head.kind != "message"
    answerer = store_inputs.answerer(tx, conversation_id, wishes.answering_user_public_id)
    text = prompt(head.text, wishes)
    status: Status = "pending" if asks else "completed"
    made = turn.open(
        tx,
        conversation_id,
        kind="direct_reply" if asks else "message",
        role="assistant" if asks else head.role,
        status=status,
        visibility="visible" if wishes.visible_in_context else "excluded_from_context",
        origin=head.origin,
        speaker_id=store_inputs.sender(tx, head.id),
        answerer_id=None if answerer is None else answerer[0],
        input_id=head.id,
        announce=False,
    )
    if asks:
        by_person = answerer is not None and answerer[1] == "human"
        said = variant.add(
            tx,
            made,
            source="run" if not by_person and _has_run(tx, conversation_id, head) else "inference",
            status=status,
            prompt=text,
            model=Model(None, wishes.model, wishes.reasoning_enabled, wishes.reasoning_effort),
            announce=False,
        )
        bell.ring(tx, said.public_id)
    else:
        said = variant.add(tx, made, source="manual", status=status, content=text, announce=False)
    store_inputs.consume(tx, head.id, made.id, now())
    if wishes.attachments:
        store_attachments.bind(tx, head.id, said.id)
    named = {"input_public_id": head.public_id}
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


def _has_run(tx: Tx, conversation_id: int, head: Input) -> bool:
    """Tell whether an agent answers in rounds: it has tools here, or was told which ones."""
    return (
        head.is_kernel
        or head.wishes.tool_names is not None
        or store_inputs.has_tools(tx, conversation_id)
    )
