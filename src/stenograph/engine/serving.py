"""The engine as a server runs it: with all its tools, and with those who look after what ends."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace

import structlog

from stenograph.engine import choice, keys, schedule, watching
from stenograph.engine.desk import Desk
from stenograph.engine.engine import Engine, Place
from stenograph.engine.toolbox import Together
from stenograph.engine.toolboxes import machine
from stenograph.engine.toolboxes.machine import MachineTools
from stenograph.engine.toolboxes.mcp import McpTools
from stenograph.engine.toolboxes.script import Script
from stenograph.engine.toolboxes.spawn import Spawn
from stenograph.sessions import ephemeral, secret
from stenograph.settings import Settings
from stenograph.storage.database import Database
from stenograph.storage.sealing import Sealer

_log = structlog.get_logger()

#: Seconds between two looks for ephemeral workspaces whose time is up.
REAP = 15.0


@asynccontextmanager
async def running(
    database: Database,
    settings: Settings,
    sealer: Sealer,
    environment: Mapping[str, str],
    place: Place,
) -> AsyncIterator[None]:
    """Drive what waits for as long as the block runs.

    `environment` is where the server's own keys for models lie. Raises `InvalidInputError`
    `invalid_setting` for settings about models that cannot be used.
    """
    desk = Desk(
        database,
        keys.resolver(database, sealer, environment, choice.endpoints_of(settings)),
        rules=choice.rules(settings),
        watch=watching.watch(database, sealer),
        secrets=lambda tx, conversation_id: secret.values(tx, sealer, conversation_id),
    )
    servers = McpTools(database, sealer, settings.mcp_stdio)
    tools = Together(MachineTools(desk), Spawn(), Script(), servers)
    engine = Engine(replace(desk, toolbox=tools), place)
    await engine.start()
    looks = (machine.watch(desk), _reap(desk), schedule.keep(desk))
    beside = [asyncio.create_task(look) for look in looks]
    try:
        yield
    finally:
        for task in beside:
            task.cancel()
        await asyncio.gather(*beside, return_exceptions=True)
        await engine.stop()
        await servers.close()


async def _reap(desk: Desk) -> None:
    while True:
        try:
            if await desk.read(ephemeral.is_due):
                await desk.write(ephemeral.expire)
        except Exception as error:
            _log.error("workspaces_not_reaped", error=type(error).__name__)
        await asyncio.sleep(REAP)
