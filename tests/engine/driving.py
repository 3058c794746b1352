"""An engine over a test's database, with tools that a scene can call and a log of their calls."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from stenograph.accounts.access import Caller
from stenograph.conversations import input as inputs
from stenograph.conversations.access import Conversation
from stenograph.engine import start, store
from stenograph.engine.choice import Rules
from stenograph.engine.desk import Desk
from stenograph.engine.engine import Engine, Place
from stenograph.engine.models.credentials import Credentials
from stenograph.engine.results import Secrets, no_secrets
from stenograph.engine.toolbox import ToolContext, ToolOutcome, ToolSpec
from stenograph.engine.work import Work
from stenograph.sessions import conversing, sending
from stenograph.sessions.creation import NewSession
from stenograph.sessions.sending import NewMessage
from stenograph.storage.database import Database, Tx

T = TypeVar("T")

#: Seconds after which a run that should have ended is a failed test.
PATIENCE = 30


@dataclass
class Tools:
    """`read` says what it read, `glob` one name, `big` a million and one characters,
    `broken` raises, `slow` takes `seconds` unless it is cancelled. `made`: the calls, by name and
    path."""

    made: list[tuple[str, dict[str, Any], bool]] = field(default_factory=list)
    log: Path | None = None
    seconds: float = PATIENCE

    async def specs(self, work: Work) -> tuple[ToolSpec, ...]:
        names = ("read", "glob", "big", "broken", "slow", "binary")
        return tuple(ToolSpec(name, f"The tool {name}.") for name in names)

    async def call(self, name: str, arguments: dict[str, Any], context: ToolContext) -> ToolOutcome:
        self.made.append((name, arguments, context.resumed))
        if self.log is not None:
            with self.log.open("a") as file:
                file.write(f"{context.work.candidate} {context.key} {int(context.resumed)}\n")
        match name:
            case "read":
                return ToolOutcome("completed", f"the content of {arguments.get('path')}")
            case "glob":
                return ToolOutcome("completed", "README.md")
            case "big":
                return ToolOutcome("completed", "0123456789" * 100_000 + "!")
            case "binary":
                return ToolOutcome("completed", "\x00\ud800 and words")
            case "broken":
                raise ValueError("it fell apart")
            case _:
                await asyncio.sleep(self.seconds)
                return ToolOutcome("completed", "at last")


@dataclass
class Driven:
    """A database whose engine is driven to the end of all work by `settle`."""

    database: Database
    owner: Caller
    place: Place
    tools: Tools = field(default_factory=Tools)
    rules: Rules = field(default_factory=Rules)
    waits: list[float] = field(default_factory=list)
    watch: Callable[..., None] | None = None
    secrets: Secrets = no_secrets
    credentials: Callable[..., Credentials] = lambda organization, model: Credentials()

    def desk(self) -> Desk:
        async def pause(seconds: float) -> None:
            self.waits.append(seconds)

        more = {} if self.watch is None else {"watch": self.watch}
        return Desk(
            self.database,
            self.credentials,
            self.tools,
            self.rules,
            pause,
            secrets=self.secrets,
            **more,
        )

    def during(self, act: Callable[[], Any]) -> None:
        """Start the engine, await `act`, and stop the engine."""

        async def run() -> None:
            engine = Engine(self.desk(), self.place)
            await engine.start()
            try:
                async with asyncio.timeout(PATIENCE):
                    await act()
            finally:
                await engine.stop()

        asyncio.run(run())

    def settle(self) -> None:
        """Drive everything that waits to its end."""
        self.during(self.settled)

    async def settled(self) -> None:
        while self.read(store.unsettled):
            await asyncio.sleep(0.01)

    async def until(self, look: Callable[[Tx], Any]) -> Any:
        """Wait until a look over the record finds something, and return it."""
        while not (found := self.read(look)):
            await asyncio.sleep(0.01)
        return found

    def read(self, look: Callable[[Tx], T]) -> T:
        with self.database.read() as tx:
            return look(tx)

    def write(self, act: Callable[[Tx], T]) -> T:
        return self.database.write(act)

    def open(self, prompt: str, **facts: Any) -> str:
        """Open a session with a prompt; returns its public id."""
        new = NewSession(**facts)
        return self.write(lambda tx: start.open_session(tx, self.owner, new, prompt)).public_id

    def say(self, session_id: str, text: str, **more: Any) -> None:
        new = NewMessage(text, **more)
        self.write(lambda tx: sending.to_session(tx, self.owner, session_id, new))

    def ask(self, conversation: Conversation, text: str, **wishes: Any) -> str:
        """Put a question into a conversation's queue; returns the input's public id."""

        def act(tx: Tx) -> str:
            made = inputs.accept(
                tx,
                self.owner,
                conversation,
                kind="direct_reply",
                text=text,
                wishes=inputs.Wishes(**wishes),
            )
            conversing.catch_up(tx, conversation.id)
            return made.public_id

        return self.write(act)

    def rows(self, sql: str, **params: Any) -> list[tuple[Any, ...]]:
        return self.read(lambda tx: tx.rows(sql, **params))


def scene(text: str) -> str:
    """Write a prompt that brings a scene of its own."""
    return f"```dev-scene\n{text}```"
