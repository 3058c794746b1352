"""Destroying conversations that were deleted, with all they hold (agent-api.md 2).

A tombstone stands 30 days. Then what no fork reads goes, and the rest with the last fork that
reads it: so a tombstone is looked at every night until nothing of it is left. It goes in pieces,
each in a transaction of its own, so that whoever writes meanwhile waits for one piece at most, and
a night that is broken off is gone on with in the next.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from stenograph.clock import DAY, now
from stenograph.conversations import store as conversations
from stenograph.conversations import store_family
from stenograph.retention import store_reap as store
from stenograph.storage.database import Database, Tx

#: Days that a tombstone stands.
DAYS = 30
#: How many turns, with their runs, go at once; and how many events.
TURNS = 50
EVENTS = 2_000

#: The tables to be written anew, so that no scrap of what went stays in them.
TOUCHED = store.TOUCHED


@dataclass(frozen=True, slots=True)
class Reaped:
    """What went: conversations that are gone for good, and pieces of them and of others."""

    conversations: int
    pieces: int


def reap(database: Database, progress: Callable[[int], None] | None = None) -> Reaped:
    """Destroy what was deleted 30 days ago.

    `progress` is told after each tombstone how many are gone. The newest are looked at first: forks
    and subagents go before what they hold on to.
    """
    cutoff = now() - DAYS * DAY
    gone, pieces, before = 0, 0, 2**62
    while True:
        with database.read() as tx:
            page = store.due(tx, cutoff, before)
        if not page:
            break
        for conversation_id in page:
            while database.write(partial(_piece, conversation_id=conversation_id, cutoff=cutoff)):
                pieces += 1
            gone += database.write(partial(_rest, conversation_id=conversation_id))
            if progress:
                progress(gone)
        before = page[-1]
    database.write(partial(store.delete_workspaces, cutoff=cutoff))
    return Reaped(gone, pieces)


def _piece(tx: Tx, conversation_id: int, cutoff: int) -> bool:
    """Delete some of what nobody reads of a tombstone. False: there is no more of it."""
    conversations.lock(tx, conversation_id)
    if store_family.is_live(tx, [conversation_id]):
        return False
    last = store.last_read(tx, conversation_id, cutoff)
    return bool(
        store.delete_events(tx, conversation_id, EVENTS)
        or store.delete_turns(tx, conversation_id, last, TURNS)
    )


def _rest(tx: Tx, conversation_id: int) -> bool:
    """Delete a tombstone that nothing stands on; of another, what it says of itself."""
    conversations.lock(tx, conversation_id)
    if store_family.is_live(tx, [conversation_id]):
        return False
    if store.is_held(tx, conversation_id):
        store.strip(tx, conversation_id)
        return False
    return destroy(tx, [conversation_id])


def destroy(tx: Tx, conversation_ids: Iterable[int]) -> bool:
    """Delete conversations with all they hold, at once; nothing may be forked from them.

    For tombstones without readers, and for sides, which serve one talk.
    """
    for conversation_id in sorted(conversation_ids, reverse=True):
        store.let_go(tx, conversation_id)
        store.delete(tx, conversation_id)
    return True
