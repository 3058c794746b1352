"""The tools of workers, for sessions that have a place where a worker can work."""

import asyncio
from typing import Any

import structlog

from stenograph.devices import target
from stenograph.engine.desk import Desk
from stenograph.engine.toolbox import ToolContext, ToolOutcome, ToolSpec
from stenograph.engine.toolboxes import leases
from stenograph.engine.tools.toolbox import TOOLS
from stenograph.engine.tools.workplace import Permissions
from stenograph.engine.work import Work
from stenograph.events.waiting import Waiter

_log = structlog.get_logger()

#: Seconds between two looks for leases that ran out and workers that are gone.
LOOK = 5.0

_TOOLS = tuple((tool.needs, tool.spec) for tool in TOOLS)


class MachineTools:
    """A `Toolbox` whose calls workers make, wherever they are: it offers a call, and waits until it
    has its end in the record. So it does not matter which process it was that offered it.
    """

    def __init__(self, desk: Desk) -> None:
        """`desk`: one over the engine's database; its own toolbox is not looked at."""
        self._desk = desk

    async def specs(self, work: Work) -> tuple[ToolSpec, ...]:
        """Return what the root allows; nothing, if the conversation works nowhere."""
        where = await self._desk.read(lambda tx: target.of(tx, work.conversation.id))
        if where is None:
            return ()
        granted = where.permissions
        may = Permissions(granted.read, granted.write, granted.execute)
        return tuple(spec for needs, spec in _TOOLS if not may.missing(needs))

    async def call(self, name: str, arguments: dict[str, Any], context: ToolContext) -> ToolOutcome:
        """Have a worker do it. Of a turn that ends meanwhile the worker is told with its lease."""
        work, key = context.work, context.key
        run = work.run
        assert run is not None
        offered = await self._desk.write(lambda tx: leases.offer(tx, work.candidate, key))
        with Waiter(work.conversation.id) as waiter:
            while True:
                outcome = await self._desk.read(lambda tx: leases.outcome(tx, run, key))
                if outcome is not None:
                    return outcome
                if not offered:
                    return ToolOutcome("failed", f"There is no worker that could do {name}")
                await waiter.wait(60)


async def watch(desk: Desk) -> None:
    """Give up, again and again, what will not come (`leases.expire`); runs until cancelled."""
    while True:
        try:
            if await desk.read(leases.is_due):
                await desk.write(leases.expire)
        except Exception as error:
            _log.error("leases_not_looked_at", error=type(error).__name__)
        await asyncio.sleep(LOOK)
