"""Waiting: for a server that is away, for an event, for the end of tasks."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from stenograph.worker.client import AwayError
from stenograph.worker.config import Pace

T = TypeVar("T")


async def insist(
    attempt: Callable[[], Awaitable[T]],
    pace: Pace,
    seconds: float,
    away: Callable[[AwayError], None],
) -> T:
    """Attempt it until there is an answer; `away` is told of each time that there is none.

    Raises the last `AwayError` when the `seconds` are over, and every other error at once.
    """
    last = time.monotonic() + seconds
    delays = pace.delays()
    while True:
        try:
            return await attempt()
        except AwayError as error:
            away(error)
            pause = max(next(delays), error.retry_after)
            if time.monotonic() + pause > last:
                raise
        await asyncio.sleep(pause)


async def within(seconds: float, event: asyncio.Event) -> bool:
    """Wait for an event; returns whether it came in time."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True


async def end(*tasks: "asyncio.Task[Any]") -> None:
    """Cancel tasks, and wait until they have ended."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
