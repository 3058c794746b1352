"""The only wiring: settings → storage → engine → http, and the command line over all of it."""

import asyncio
import gc
import os
import signal
import socket
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path

from stenograph import logs
from stenograph.accounts import first_start
from stenograph.cli import main as cli
from stenograph.engine.desk import Desk
from stenograph.engine.engine import Engine, Place
from stenograph.engine.models.catalog import ModelId
from stenograph.engine.models.credentials import Credentials, from_environment
from stenograph.errors import StenographError
from stenograph.http import idempotency, server
from stenograph.http.edge import Edge
from stenograph.retention import nightly
from stenograph.settings import Settings
from stenograph.storage import location, lock, prepare
from stenograph.storage.database import Database
from stenograph.storage.sealing import sealer

#: How long a stopping server waits for the requests it is answering, in seconds.
PATIENCE = 10
#: The file in the data folder that the process holds whose engine answers, and the seconds between
#: two looks of another whether it still does.
LOCK = "engine.lock"
LOOK = 2.0


def main() -> None:
    """The command `steno`."""
    cli.run(serve)


def serve(settings: Settings, announce: Callable[[str, bool], None]) -> None:
    """Serve until SIGTERM or SIGINT; `announce(url, first_start)` is called once it answers."""
    logs.configure(settings)
    database = prepare.ready(location.locate(settings.data, settings.database))
    try:
        made = first_start.ensure(database, settings.data, settings.organization)
        application = server.create(database, settings, sealer(settings.data, settings.key))
        listening = _listen(settings.host, settings.port)
        host, port = _reachable(settings.host), listening.getsockname()[1]
        url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        driving = partial(_drive, _engine(database, settings, port), settings.data / LOCK, url)
        with nightly.pruning(database, settings.prune_at, idempotency.prune):
            asyncio.run(_serve(application, driving, listening, lambda: announce(url, made)))
    finally:
        database.close()


def _engine(database: Database, settings: Settings, port: int) -> Engine:
    """The engine of this process; its log of steps lies beside the record."""

    def credentials(organization_id: int, model: ModelId) -> Credentials:
        return from_environment(os.environ, model.provider_id, {})

    place = Place(f"sqlite:///{settings.data / 'engine.db'}")
    if database.reads_wait:
        # Started again on the same port of the same machine, it takes up what it left.
        url = location.locate(settings.data, settings.database).url
        place = Place(url, "dbos", f"{socket.gethostname()}:{port}")
    return Engine(Desk(database, credentials), place)


async def _drive(engine: Engine, path: Path, url: str) -> None:
    """Run the engine until this is cancelled: at once, or when the process that does so ends."""
    while (held := lock.take(path, url)) is None:
        await asyncio.sleep(LOOK)
    with held:
        await engine.start()
        try:
            await asyncio.Event().wait()
        finally:
            await engine.stop()


async def _serve(
    application: Edge,
    driving: Callable[[], Coroutine[None, None, None]],
    listening: socket.socket,
    ready: Callable[[], None],
) -> None:
    # Imported here: other commands start faster without it.
    from stenograph.http.listener import Listener

    # What was made so far stays, and requests leave few cycles behind: looking for them after
    # every 700 objects, and through all there are, took a fifteenth of the time.
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000)
    listener = Listener(application, PATIENCE, ready)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, listener.stop)
    engine = asyncio.create_task(driving())
    try:
        await listener.serve([listening])
    finally:
        engine.cancel()
        await asyncio.gather(engine, return_exceptions=True)


def _reachable(host: str) -> str:
    """The host by which this machine reaches a listener on `host`."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104


def _listen(host: str, port: int) -> socket.socket:
    """Take `port` of `host`, or a free one for 0. Raises `StenographError` if it cannot be had."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        # The protocol has to be said: asyncio turns Nagle's algorithm off where it reads TCP.
        listening = socket.socket(family, kind, protocol)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        return listening
    except OSError as error:
        raise StenographError(
            f"Cannot listen on {host}:{port}: {error.strerror}", code="address_unavailable"
        ) from None
