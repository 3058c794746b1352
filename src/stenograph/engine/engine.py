"""The engine of a process: it hears of candidates, and looks for those it has not heard of."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from types import ModuleType

import structlog

from stenograph.clock import SECOND, now
from stenograph.engine import store
from stenograph.engine.desk import Desk
from stenograph.events import bell

_log = structlog.get_logger()

#: Seconds between two looks for candidates that nobody here has heard of.
LOOK = 5.0
#: Seconds after which an engine that is not seen has left what it was driving.
GONE = 60.0


@dataclass(frozen=True, slots=True)
class Place:
    """Where DBOS keeps its log of steps: `sqlite:///…`, or a PostgreSQL database with a schema.

    `executor` names the process; started again under the same name it takes up what it left. Where
    others share the place (`shared`), they take up what it left when it is not seen for `GONE`
    seconds.
    """

    url: str
    schema: str = "dbos"
    executor: str = "local"
    shared: bool = False


@dataclass(slots=True)
class Engine:
    """Started and stopped on one loop, on which its runs live. One to a process."""

    desk: Desk
    place: Place
    #: The module that imports DBOS, once it is needed.
    _drive: ModuleType | None = None
    _heard: "asyncio.Queue[str]" = field(default_factory=asyncio.Queue)
    _begun: set[str] = field(default_factory=set)
    #: The executors that drive somewhere, this one included; None: nobody else shares the place.
    _others: frozenset[str] | None = None
    _working: "list[asyncio.Task[None]]" = field(default_factory=list)
    _deafen: Callable[[], None] | None = None

    async def start(self) -> None:
        """Listen, and take up what was left. DBOS is loaded when there is something to do."""
        loop = asyncio.get_running_loop()

        def hear(candidate: str) -> None:
            with suppress(RuntimeError):  # the loop is closed: the next start finds it
                loop.call_soon_threadsafe(self._heard.put_nowait, candidate)

        self._deafen = bell.listen(hear)
        self._working = [asyncio.create_task(self._begin_each()), asyncio.create_task(self._look())]

    async def stop(self) -> None:
        """Leave off; the next start goes on where each run stands."""
        if self._deafen is not None:
            self._deafen()
        for task in self._working:
            task.cancel()
        await asyncio.gather(*self._working, return_exceptions=True)
        if self._drive is not None:
            await self._drive.stop()
        self.desk.threads.shutdown(wait=False)

    async def _begin_each(self) -> None:
        while True:
            candidate = await self._heard.get()
            try:
                await self._begin(candidate)
            except Exception as error:
                # It stays unsettled in the record, so the next look brings it back.
                _log.error("run_not_begun", candidate=candidate, exc_info=error)

    async def _begin(self, candidate: str) -> None:
        if self._drive is None:
            drive = await asyncio.to_thread(_loaded)
            drive.launch(self.desk, self.place.url, self.place.schema, self.place.executor)
            self._drive = drive
        if not self._drive.drives(candidate):
            await self._drive.begin(candidate, self._others)
            self._begun.add(candidate)

    async def _look(self) -> None:
        while True:
            try:
                await self._look_once()
            except Exception as error:
                _log.error("engine_look_failed", exc_info=error)
            await asyncio.sleep(LOOK)

    async def _look_once(self) -> None:
        if self.place.shared:
            self._others = await self.desk.write(
                lambda tx: store.seen(tx, self.place.executor, now(), int(GONE * SECOND))
            )
        waiting = await self.desk.read(store.unsettled)
        for candidate in waiting:
            self._heard.put_nowait(candidate)
        if self._drive is not None and self._begun.difference(waiting):
            # One that has just answered may not be over for DBOS yet: the next look finds it.
            self._begun -= await self._drive.sweep()


def _loaded() -> ModuleType:
    from stenograph.engine import drive

    return drive
