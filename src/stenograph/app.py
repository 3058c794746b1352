"""The only wiring: settings → storage → http, and the command line over all of it."""

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import Callable

from stenograph import logs
from stenograph.accounts import first_start
from stenograph.cli import main as cli
from stenograph.errors import StenographError
from stenograph.http import server
from stenograph.http.edge import Edge
from stenograph.retention import nightly
from stenograph.settings import Settings
from stenograph.storage import location, prepare
from stenograph.storage.sealing import sealer

#: How long a stopping server waits for the requests it is answering, in seconds.
PATIENCE = 10


def main() -> None:
    """The command `steno`."""
    try:
        cli.run(serve)
    except SystemExit as ended:
        # Granian's threads outlive it. One that asks for an interpreter which is being taken down
        # aborts the process (one stop in ten, measured), so it is not taken down.
        with contextlib.suppress(OSError):  # whoever read the output may have gone
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(ended.code if isinstance(ended.code, int) else int(ended.code is not None))


def serve(settings: Settings, announce: Callable[[str, bool], None]) -> None:
    """Serve until SIGTERM or SIGINT; `announce(url, first_start)` is called once it answers."""
    logs.configure(settings)
    database = prepare.ready(location.locate(settings.data, settings.database))
    try:
        made = first_start.ensure(database, settings.data, settings.organization)
        application = server.create(database, settings, sealer(settings.data, settings.key))
        address, port = _listening_place(settings.host, settings.port)
        host = _reachable(settings.host)
        url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        with nightly.pruning(database, settings.prune_at):
            asyncio.run(_serve(application, address, port, lambda: announce(url, made)))
    finally:
        database.close()


async def _serve(application: Edge, address: str, port: int, ready: Callable[[], None]) -> None:
    # Imported here: other commands start faster without it.
    from granian.constants import Interfaces
    from granian.server.embed import Server

    granian = Server(
        application,
        address=address,
        port=port,
        interface=Interfaces.ASGINL,
        websockets=False,
        log_enabled=False,
        backlog=1024,
    )
    granian.workers_kill_timeout = PATIENCE
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, granian.stop)
    serving = asyncio.create_task(granian.serve())
    answering = asyncio.create_task(_answers(address, port))
    await asyncio.wait({serving, answering}, return_when=asyncio.FIRST_COMPLETED)
    if answering.done():
        ready()
    answering.cancel()
    await serving


async def _answers(address: str, port: int) -> None:
    """Return once a connection to the server succeeds."""
    while True:
        try:
            _, writer = await asyncio.open_connection(_reachable(address), port)
        except OSError:
            await asyncio.sleep(0.01)
        else:
            writer.close()
            return


def _reachable(host: str) -> str:
    """The host by which this machine reaches a listener on `host`."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104


def _listening_place(host: str, port: int) -> tuple[str, int]:
    """Return the IP address of `host`, and `port` or a free one for 0.

    Raises `StenographError` if it cannot be listened on. Looked at before the server binds it,
    for the server shares its port with any other that asks (`SO_REUSEPORT`), and two of them
    would take turns.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, _, _, address = found[0]
        with socket.socket(family, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
            return str(address[0]), int(probe.getsockname()[1])
    except OSError as error:
        raise StenographError(
            f"Cannot listen on {host}:{port}: {error.strerror}", code="address_unavailable"
        ) from None
