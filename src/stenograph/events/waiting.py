"""Waiting for a conversation, or something else that is named, to move on: readers are woken at
commit.

Only this process's commits wake a reader at once; what another process commits is found by the
reader looking again every `POLL` seconds.
"""

import asyncio
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeAlias

POLL = 0.2

#: The row id of a conversation, or a kind of other things and a row id.
Key: TypeAlias = int | tuple[str, int]
#: Is called, on any thread, with the number of the last event committed; None: none was.
Hear: TypeAlias = Callable[[int | None], None]

_lock = threading.Lock()
_listening: dict[Key, set[Hear]] = defaultdict(set)


def announce(key: Key, sequence: int | None = None) -> None:
    """Wake everyone who waits for this. Called at commit, on any thread."""
    with _lock:
        listeners = tuple(_listening.get(key, ()))
    for hear in listeners:
        hear(sequence)


@contextmanager
def listening(key: Key, hear: Hear) -> Iterator[None]:
    """Have `hear` called whenever this is announced, as long as this is entered."""
    with _lock:
        _listening[key].add(hear)
    try:
        yield
    finally:
        with _lock:
            _listening[key].discard(hear)
            if not _listening[key]:
                del _listening[key]


def wake(loop: asyncio.AbstractEventLoop, event: asyncio.Event) -> None:
    """Set an event of a loop from any thread; of a loop that has ended nobody waits."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(event.set)


class Waiter:
    """Registers interest before the look, so that nothing committed between is slept through."""

    def __init__(self, key: Key, poll: float = POLL) -> None:
        """`poll`: seconds after which what another process committed is looked for."""
        self._poll = poll
        loop, self._event = asyncio.get_running_loop(), asyncio.Event()
        self._listening = listening(key, lambda _: wake(loop, self._event))

    def __enter__(self) -> "Waiter":
        self._listening.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._listening.__exit__(None, None, None)

    async def wait(self, seconds: float) -> None:
        """Return when something was committed, or after `poll` or `seconds`, the smaller."""
        try:
            async with asyncio.timeout(min(seconds, self._poll)):
                await self._event.wait()
        except TimeoutError:
            pass
        self._event.clear()
