"""Running a worker, in a process of its own or in another's."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import httpx
import msgspec

from stenograph.worker import enrolment, journal, place, state
from stenograph.worker.calls import Bench
from stenograph.worker.client import Client, Server, address
from stenograph.worker.config import Config, Tell, silent
from stenograph.worker.enrolment import Proof, RevokedError
from stenograph.worker.place import Place
from stenograph.worker.wire import Device
from stenograph.worker.worker import Worker


async def run(
    config: Config,
    *,
    stop: asyncio.Event | None = None,
    ready: Callable[[Device], None] | None = None,
    tell: Tell = silent,
) -> None:
    """Enrol, if need be, and work until `stop` is set.

    `ready` is called once, before the first request for work. `tell(event, **facts)` is called
    with `call` (tool, session, status, ms), `away` (reason), `back` and `stopping` (calls that
    run); nothing secret is among them. Raises `RevokedError` if the server does not know this
    worker any more, `NotEnrolledError` if there is nothing to enrol with, `InvalidInputError`,
    `ConflictError` and other `StenographError`s with a sentence. Loop and process are the caller's;
    commands see nothing of the environment, but could read it where the system lets them
    (`masking.hide`).
    """
    config = replace(config, url=address(config.url))
    root = place.existing(config.root)
    with state.opened(config.state, config.url, root) as shelf:
        async with httpx.AsyncClient() as http:
            server = Server(config.url, http)
            enrolled = await enrolment.obtain(server, config, root, shelf, tell)
            begun = journal.load(shelf.calls)
            if enrolled.is_new:
                begun.clear()
            (here,) = enrolled.device.roots
            bench = Bench(
                config=config,
                client=Client(server, enrolled.secret),
                serves_queue=enrolled.device.machine is not None,
                root_id=here.id,
                place=Place(root, here.permissions.permissions(), config.limits),
                journal=begun,
                tell=tell,
            )
            if ready is not None:
                ready(enrolled.device)
            try:
                await Worker(bench).work(stop or asyncio.Event())
            except RevokedError:
                if kept := shelf.read():
                    shelf.write(msgspec.structs.replace(kept, revoked=True))
                raise


async def make_ticket(config: Config, seconds: int) -> Proof:
    """Have a ticket made with the config's key, and keep what it takes to use it here.

    `config.root` may be a folder of another machine; then what is returned has to go there.
    Raises `StenographError`s with a sentence.
    """
    config = replace(config, url=address(config.url))
    root = place.real(config.root)
    with state.opened(config.state, config.url, root) as shelf:
        async with httpx.AsyncClient() as http:
            return await enrolment.make_ticket(
                Server(config.url, http), config, root, seconds, shelf
            )
