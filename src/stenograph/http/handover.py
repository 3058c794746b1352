"""From the threads that write to the event loops that wait: one wake-up for all that a commit did.

`asyncio.wrap_future` wakes the loop for each answer; of answers that come together all but the
first then wait for the interpreter's lock, which the loop holds on to while it sends the first.
"""

import asyncio
from collections import defaultdict, deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeAlias, TypeVar

from stenograph.storage.database import Database, Tx

T = TypeVar("T")
_Answer: TypeAlias = tuple["asyncio.Future[Any]", "Future[Any]"]


class Handover:
    """Runs writes for coroutines, of any loop."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._answered: deque[_Answer] = deque()

    async def write(self, act: Callable[[Tx], T]) -> T:
        """Run `act` in a transaction; when this returns, what it did is on disk."""
        waiting: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        job = self._database.submit(act, self._wake)
        job.add_done_callback(lambda done: self._answered.append((waiting, done)))
        if job.done():
            self._wake()  # it may have been, before there was a callback
        return await waiting

    def _wake(self) -> None:
        """Take what was answered to the loops that wait for it; on any thread."""
        by_loop: dict[asyncio.AbstractEventLoop, list[_Answer]] = defaultdict(list)
        while self._answered:
            try:
                answer = self._answered.popleft()
            except IndexError:  # another thread was faster
                break
            by_loop[answer[0].get_loop()].append(answer)
        for loop, answers in by_loop.items():
            if not loop.is_closed():
                loop.call_soon_threadsafe(_deliver, answers)


def _deliver(answers: list[_Answer]) -> None:
    for waiting, done in answers:
        if waiting.done():
            continue  # whoever waited was cancelled
        if error := done.exception():
            waiting.set_exception(error)
        else:
            waiting.set_result(done.result())
