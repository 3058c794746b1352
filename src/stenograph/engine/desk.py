"""Where the engine works: what it was given, and how it reaches the record without waiting."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

from stenograph.engine import store
from stenograph.engine.choice import Rules
from stenograph.engine.models.answer import Delta, Response
from stenograph.engine.models.catalog import ModelId
from stenograph.engine.models.credentials import Credentials
from stenograph.engine.models.failures import ModelFailedError
from stenograph.engine.results import Secrets, no_secrets
from stenograph.engine.toolbox import Together, Toolbox
from stenograph.engine.work import Work
from stenograph.events.waiting import Waiter
from stenograph.storage.database import Database, Tx

T = TypeVar("T")
#: What a watcher hears of a model call: its deltas, and then the whole answer, or why there is none
#: (None: the turn has its end without it). Without an answer, nothing that was heard counts.
Heard: TypeAlias = Delta | Response | ModelFailedError | None

#: Threads that read where reading may wait for a network.
_READERS = 8


class Stopped(Exception):
    """The turn got its end from somewhere else."""


class HungUp(Exception):
    """Something is to be said into what is under way, which ends for that."""


class OutOfTime(Exception):
    """The time of the turn is up."""


def _no_one(work: Work, heard: Heard) -> None:
    """Let nobody watch."""


@dataclass(frozen=True, slots=True)
class Desk:
    """`credentials`: what opens a provider's door for an organization (row id). `pause` waits
    between two attempts. `watch` hears a model as it speaks; it neither waits nor raises.
    `secrets`: what must not be halved where a text is cut.
    """

    database: Database
    credentials: Callable[[int, ModelId], Credentials]
    toolbox: Toolbox = field(default_factory=Together)
    rules: Rules = field(default_factory=Rules)
    pause: Callable[[float], Awaitable[object]] = asyncio.sleep
    watch: Callable[[Work, Heard], None] = _no_one
    secrets: Secrets = no_secrets
    threads: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(_READERS, thread_name_prefix="engine-reader")
    )

    async def write(self, act: Callable[[Tx], T]) -> T:
        """Run `act` in one transaction; durable when it returns."""
        return await asyncio.wrap_future(self.database.submit(act))

    async def read(self, act: Callable[[Tx], T]) -> T:
        """Run `act` over a snapshot."""

        def look() -> T:
            with self.database.read() as tx:
                return act(tx)

        if self.database.reads_wait:
            return await asyncio.get_running_loop().run_in_executor(self.threads, look)
        return look()

    async def unless_ended(
        self,
        work: Work,
        act: Coroutine[Any, Any, T],
        seconds: float | None,
        hangs_up: Callable[[Tx], bool] | None = None,
    ) -> T:
        """Do something that takes its time.

        Raises `Stopped` when the turn has its end meanwhile, `OutOfTime` after `seconds`, `HungUp`
        when a look (`hangs_up`) over the record finds a reason; it is cancelled then, and has let
        go when this raises.
        """
        doing = asyncio.ensure_future(act)
        try:
            async with asyncio.timeout(seconds) as limit:
                with Waiter(work.conversation.id) as waiter:
                    while not doing.done():
                        await _first(doing, waiter)
                        if not doing.done() and not await self._goes_on(work):
                            raise Stopped
                        if not doing.done() and hangs_up and await self.read(hangs_up):
                            raise HungUp
            return doing.result()
        except TimeoutError:
            if limit.expired() and not doing.done():
                raise OutOfTime from None
            raise
        finally:
            if not doing.done():
                doing.cancel()
                await asyncio.gather(doing, return_exceptions=True)

    async def _goes_on(self, work: Work) -> bool:
        return await self.read(lambda tx: store.is_unsettled(tx, work.candidate))


async def _first(doing: asyncio.Future[Any], waiter: Waiter) -> None:
    waiting = asyncio.ensure_future(waiter.wait(60))
    try:
        await asyncio.wait({doing, waiting}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
