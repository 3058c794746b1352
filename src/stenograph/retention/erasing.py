"""Deleting the newest turn of a conversation for good (agent-api.md 3.3).

What was said in it is in no table after this; feed, trajectory and search follow. What it cost
stays in the account, and the journal keeps its numbers.
"""

from stenograph.clock import now
from stenograph.conversations import access, archive, store_turns
from stenograph.conversations import turn as turns
from stenograph.conversations import variant as variants
from stenograph.conversations.access import Conversation
from stenograph.errors import ConflictError
from stenograph.events.journal import Event, append
from stenograph.retention import store_erase as store
from stenograph.retention.prune import loosen
from stenograph.sessions import standing
from stenograph.storage.database import Tx


def delete_turn(tx: Tx, conversation: Conversation, turn_id: str) -> None:
    """Delete the newest turn with all its candidates, runs and subagents.

    Raises `NotFoundError`, `ForbiddenError`, or `ConflictError`: `apex_only` for an older turn,
    `descendant_pinned` for one that a fork shows, `run_live` while something is under way in it,
    `session_target_unavailable` while an agent elsewhere records the session, and what
    `access.require_open` does.
    """
    turn = turns.find(tx, conversation, turn_id, concealed=conversation.level == "full")
    variants.require_own(conversation, turn)
    access.require_open(access.hold(tx, conversation))
    turn = turns.find(tx, conversation, turn_id, concealed=True)
    if not turns.is_apex(tx, turn):
        raise ConflictError("Only the newest turn is deleted", code="apex_only")
    if turns.is_pinned(tx, turn):
        raise ConflictError("A fork shows this turn", code="descendant_pinned")
    if store.is_live(tx, turn.id):
        raise ConflictError("Something is under way in this turn: cancel it", code="run_live")
    if store.is_recorded(tx, conversation.id):
        raise ConflictError(
            "An agent elsewhere is recording this session", code="session_target_unavailable"
        )
    archive.delete_below(tx, store.children(tx, turn.id))
    store.delete(tx, conversation.id, turn.id)
    loosen(tx, conversation.id)
    standing.stand(tx, conversation.id)
    store_turns.touch(tx, conversation.id, now(), revised=True)
    payload = {"turn_public_id": turn.public_id, "position": turn.position}
    append(tx, conversation.id, Event("turn_deleted", payload=payload))
