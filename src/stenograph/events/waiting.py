"""Waiting for a conversation to move on: readers that long-poll are woken at commit.

Only this process's commits wake a reader at once; what another process commits is found by the
reader looking again every `POLL` seconds.
"""

import asyncio
import threading
from collections import defaultdict

POLL = 0.2

_lock = threading.Lock()
_waiting: dict[int, set[tuple[asyncio.AbstractEventLoop, asyncio.Event]]] = defaultdict(set)


def announce(conversation_id: int) -> None:
    """Wake everyone who waits for this conversation. Called at commit, on any thread."""
    with _lock:
        waiters = list(_waiting.get(conversation_id, ()))
    for loop, event in waiters:
        loop.call_soon_threadsafe(event.set)


class Waiter:
    """Registers interest before the look, so that nothing committed between is slept through."""

    def __init__(self, conversation_id: int) -> None:
        self._id = conversation_id
        self._event = asyncio.Event()
        self._entry = (asyncio.get_running_loop(), self._event)

    def __enter__(self) -> "Waiter":
        with _lock:
            _waiting[self._id].add(self._entry)
        return self

    def __exit__(self, *_: object) -> None:
        with _lock:
            _waiting[self._id].discard(self._entry)
            if not _waiting[self._id]:
                del _waiting[self._id]

    async def wait(self, seconds: float) -> None:
        """Return when something was committed, or after `POLL` or `seconds`, the smaller."""
        try:
            async with asyncio.timeout(min(seconds, POLL)):
                await self._event.wait()
        except TimeoutError:
            pass
        self._event.clear()
