"""The only wiring: settings → storage → engine → http, and the command line over all of it."""

import asyncio
import gc
import os
import signal
import socket
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from stenograph import logs
from stenograph.accounts import first_start
from stenograph.cli import main as cli
from stenograph.conversations import search_index
from stenograph.engine import choice
from stenograph.engine.engine import Place
from stenograph.errors import StenographError
from stenograph.retention import nightly
from stenograph.settings import Settings
from stenograph.storage import location, lock, prepare
from stenograph.storage.location import Location
from stenograph.storage.sealing import sealer

if TYPE_CHECKING:
    from stenograph.http.edge import Edge

#: How long a stopping server waits for the requests it is answering, in seconds.
PATIENCE = 10
#: Seconds between two looks whether the process whose engine answers still does.
LOOK = 2.0


def main() -> None:
    """The command `steno`."""
    cli.run(serve)


def serve(settings: Settings, announce: Callable[[str, bool], None]) -> None:
    """Serve until SIGTERM or SIGINT; `announce(url, first_start)` is called once it answers."""
    # Imported here: other commands start faster without it.
    from stenograph.engine import serving
    from stenograph.http import idempotency, server

    logs.configure(settings)
    choice.rules(settings)  # what cannot be used is said before anything is begun
    place = location.locate(settings.data, settings.database)
    database = prepare.ready(place)
    try:
        made = first_start.ensure(database, settings.data, settings.organization)
        sealed = sealer(settings.data, settings.key)
        application = server.create(database, settings, sealed)
        listening = _listen(settings.host, settings.port)
        host, port = _reachable(settings.host), listening.getsockname()[1]
        url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        engine = partial(
            serving.running, database, settings, sealed, os.environ, _place(settings, place, port)
        )
        driving = partial(_drive, engine, settings.data / lock.ENGINE, url)
        with (
            nightly.pruning(database, settings.prune_at, idempotency.prune),
            search_index.upkeep(database),
        ):
            asyncio.run(_serve(application, driving, listening, lambda: announce(url, made)))
    finally:
        database.close()


def _place(settings: Settings, place: Location, port: int) -> Place:
    """Where the engine's log of steps lies: beside the record."""
    if place.is_postgres:
        # Started again on the same port of the same machine, it takes up what it left.
        return Place(place.url, "dbos", f"{socket.gethostname()}:{port}", shared=True)
    return Place(f"sqlite:///{settings.data / 'engine.db'}")


async def _drive(
    running: Callable[[], AbstractAsyncContextManager[None]], path: Path, url: str
) -> None:
    """Run the engine until this is cancelled: at once, or when the process that does so ends."""
    while (held := lock.take(path, url)) is None:
        await asyncio.sleep(LOOK)
    with held:
        async with running():
            await asyncio.Event().wait()


async def _serve(
    application: "Edge",
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
