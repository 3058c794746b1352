"""Events go after thirty days (agent-api.md 7); what a conversation has counted stays counted."""

from collections.abc import Callable

from stenograph.clock import now
from stenograph.events import store
from stenograph.storage.database import Database, Tx

#: How long an event is kept, in microseconds from when it was written.
KEPT = 30 * 86_400 * 1_000_000
#: How many go in one transaction.
BATCH = 1_000


def expire(tx: Tx, before: int, batch: int = BATCH) -> int:
    """Delete up to `batch` events that were written before a moment; returns how many went.

    An imported log's events count from its import, whenever what they tell of happened.
    """
    return store.delete_before(tx, before, batch)


def sweep(database: Database, go_on: Callable[[int], None] = lambda _: None) -> int:
    """Delete every event that is over age, a batch at a time; returns how many went.

    `go_on` is called after each batch with the count so far, and may raise to stop.
    """
    before, gone = now() - KEPT, 0
    while deleted := database.write(lambda tx: expire(tx, before, BATCH)):
        gone += deleted
        go_on(gone)
        if deleted < BATCH:
            break
    return gone
