"""How an engine in this process hears of a new candidate at once.

The record is what counts: a candidate that was never rung for is found by looking
(`engine.engine`).
"""

from collections.abc import Callable

from stenograph.storage.database import Tx

_listeners: list[Callable[[str], None]] = []


def listen(hear: Callable[[str], None]) -> Callable[[], None]:
    """Call `hear` with the public id of each new candidate, on any thread; returns how to stop."""
    _listeners.append(hear)
    return lambda: _listeners.remove(hear)


def ring(tx: Tx, candidate: str) -> None:
    """Tell, once this transaction is durable, that a candidate waits to be answered."""

    def tell() -> None:
        for hear in tuple(_listeners):
            hear(candidate)

    tx.after_commit(tell)
