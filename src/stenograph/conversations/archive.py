"""Archiving a conversation, and deleting it (agent-api.md 2).

An archive is a bin for reading, out of which a conversation comes back. A deleted one is a
tombstone: it is nowhere any more from that moment on, and its rows go later
(`retention.reap`). Subagents follow who started them.
"""

from dataclasses import replace

from stenograph.clock import now
from stenograph.conversations import access, store_family
from stenograph.conversations.access import Conversation
from stenograph.errors import ConflictError, RefusedError
from stenograph.events.journal import Event, append
from stenograph.storage.database import Tx


def archive(tx: Tx, conversation: Conversation) -> None:
    """Put a conversation into the archive; one that is there stays. What runs goes on to its end.

    Raises `ForbiddenError`, `RefusedError` (`side_conversation`), or `ConflictError`
    (`subagent_follows_parent`, `workspace_not_active`).
    """
    held = _hold(tx, conversation)
    if held.archived_at is None:
        family = store_family.below(tx, held.id)
        store_family.set_archived(tx, family, now())
        _ended(tx, family, "archived")


def unarchive(tx: Tx, conversation: Conversation) -> None:
    """Take a conversation out of the archive; one that is not in it stays as it is.

    Raises what `archive` does.
    """
    held = _hold(tx, conversation)
    if held.archived_at is not None:
        store_family.set_archived(tx, store_family.below(tx, held.id), None)


def delete(tx: Tx, conversation: Conversation) -> list[int]:
    """Make a conversation and its subagents' tombstones; returns their row ids, the first its own.

    Raises `ForbiddenError`, or `ConflictError`: `subagent_follows_parent`, and
    `conversation_busy` while it or a subagent of it works.
    """
    access.require_full(conversation)
    held = access.hold(tx, conversation)
    _require_top(tx, held)
    family = store_family.below(tx, held.id)
    if store_family.is_live(tx, family):
        raise ConflictError("Something is under way here: cancel it", code="conversation_busy")
    store_family.bury(tx, family, now())
    _ended(tx, family, "tombstoned")
    return family


def delete_below(tx: Tx, conversation_ids: list[int]) -> None:
    """Make tombstones of subagents' conversations, and of those below them.

    Raises `ConflictError` `run_live` while one of them works.
    """
    families = [store_family.below(tx, one) for one in conversation_ids]
    family = sorted({member for members in families for member in members})
    if store_family.is_live(tx, family):
        raise ConflictError("A subagent is at work", code="run_live")
    store_family.bury(tx, family, now())
    _ended(tx, family, "tombstoned")


def under_way(tx: Tx, conversation: Conversation) -> list[tuple[Conversation, str]]:
    """Return the turns of a conversation and its subagents that something is answering.

    Each with its conversation: a subagent's work is stopped by who may stop its parent's. Raises
    `ForbiddenError`, or `RefusedError` (`not_running`) if there is none.
    """
    access.require_full(conversation)
    access.hold(tx, conversation)
    live = store_family.live_turns(tx, store_family.below(tx, conversation.id))
    if not live:
        raise RefusedError("Nothing is under way here", code="not_running")
    return [(replace(conversation, id=owner), turn) for owner, turn in live]


def _hold(tx: Tx, conversation: Conversation) -> Conversation:
    access.require_full(conversation)
    access.require_workspace(conversation)
    if conversation.side:
        raise RefusedError("A side conversation is never archived", code="side_conversation")
    held = access.hold(tx, conversation)
    _require_top(tx, held)
    return held


def _require_top(tx: Tx, conversation: Conversation) -> None:
    if store_family.parent(tx, conversation.id) is not None:
        raise ConflictError(
            "A subagent's conversation follows the one that started it",
            code="subagent_follows_parent",
        )


def _ended(tx: Tx, family: list[int], reason: str) -> None:
    for member in family:
        append(tx, member, Event("conversation_ended", payload={"reason": reason}))
