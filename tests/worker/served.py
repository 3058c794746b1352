"""A real server on a real port, with its engine, in the test's own process."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from people import Org
from stenograph.devices import target
from stenograph.engine import start
from stenograph.engine.desk import Desk
from stenograph.engine.engine import Engine, Place
from stenograph.engine.models.credentials import Credentials
from stenograph.engine.toolboxes import machine
from stenograph.http import server
from stenograph.http.listener import Listener
from stenograph.sessions import session
from stenograph.sessions.creation import NewSession
from stenograph.sessions.session import Session
from stenograph.settings import Settings
from stenograph.storage.database import Database, Tx
from stenograph.storage.sealing import Sealer
from worker.double import PATIENCE

T = TypeVar("T")


@dataclass
class Served:
    """A server at `url`, and the record that it keeps."""

    database: Database
    org: Org
    url: str

    def read(self, look: Callable[[Tx], T]) -> T:
        with self.database.read() as tx:
            return look(tx)

    def open(self, prompt: str, where: dict[str, Any]) -> str:
        """Open a session that works somewhere (`target` of createSession); returns its id."""

        def act(tx: Tx) -> str:
            chosen = target.choose(tx, self.org.owner, where)
            made = start.open_session(tx, self.org.owner, NewSession(), prompt)
            target.give(tx, made.id, chosen)
            return made.public_id

        return self.database.write(act)

    async def until(self, look: Callable[[Tx], T]) -> T:
        """Wait until a look over the record finds something, and return it."""
        async with asyncio.timeout(PATIENCE):
            while not (found := self.read(look)):
                await asyncio.sleep(0.02)
            return found

    async def ended(self, session_id: str) -> Session:
        """Wait until a session does not run any more."""

        def look(tx: Tx) -> Session | None:
            found = session.find(tx, self.org.owner, session_id)
            return None if found.status == "running" else found

        return await self.until(look)  # type: ignore[return-value]

    def calls(self, session_id: str) -> list[tuple[str, str, str]]:
        """Return (tool, status, output) of a session's calls."""
        rows = self.read(
            lambda tx: tx.rows(
                "SELECT k.name, k.status, d.output FROM tasks k JOIN runs r ON r.id = k.run_id"
                " JOIN conversations c ON c.id = r.conversation_id"
                " LEFT JOIN task_details d ON d.task_id = k.id"
                " WHERE c.public_id = :id AND k.kind = 'tool_task' ORDER BY k.id",
                id=session_id,
            )
        )
        return [tuple(row) for row in rows]


@asynccontextmanager
async def serving(
    database: Database, org: Org, settings: Settings, sealer: Sealer, folder: Path
) -> AsyncIterator[Served]:
    """Serve a database, and answer in it with the tools of workers."""
    desk = Desk(database, lambda organization, model: Credentials())
    desk = replace(desk, toolbox=machine.MachineTools(desk))
    listening = socket.create_server(("127.0.0.1", 0))
    up = asyncio.Event()
    listener = Listener(server.create(database, settings, sealer), 1, up.set)
    engine = Engine(desk, Place(f"sqlite:///{folder / 'engine.db'}"))
    await engine.start()
    tasks = [
        asyncio.create_task(listener.serve([listening])),
        asyncio.create_task(machine.watch(desk)),
    ]
    await up.wait()
    try:
        yield Served(database, org, f"http://127.0.0.1:{listening.getsockname()[1]}")
    finally:
        listener.stop()
        await tasks[0]
        tasks[1].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await engine.stop()


def prompt(*rounds: list[tuple[str, dict[str, Any]]]) -> str:
    """Return a prompt whose answer makes these calls, round by round, and then says `Done`."""
    text = ""
    for calls in rounds:
        made = ", ".join(
            f"{{ tool = {quoted(tool)}, arguments = {{ {table(arguments)} }} }}"
            for tool, arguments in calls
        )
        text += f"[[round]]\ncall = [{made}]\n"
    return f'```dev-scene\n{text}[[round]]\nsay = "Done: {{results}}"\n```'


def table(arguments: dict[str, Any]) -> str:
    return ", ".join(f"{name} = {quoted(value)}" for name, value in arguments.items())


def quoted(value: Any) -> str:
    return msgspec.json.encode(value).decode()
