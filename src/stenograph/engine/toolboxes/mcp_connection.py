"""A session with one MCP server, in a task of its own.

What the SDK opens has to be closed by the task that opened it (anyio's cancel scopes), while calls
come from any task of the loop. Importing this takes half a second.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2
from mcp.client.client import Client
from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CONNECTION_CLOSED,
    CallToolResult,
    Implementation,
    Tool,
    ToolListChangedNotification,
)

from stenograph import __version__
from stenograph.accounts.mcp_place import Place
from stenograph.engine.toolboxes.mcp_transport import Open, Way

#: Seconds a server has to start and name its tools; seconds without a call until it is let go.
OPENING = 30.0
IDLE = 300.0
#: Seconds that one call may take.
CALLING = 600.0
#: What the SDK says of a session that the server does not know.
_FORGOTTEN = "Session terminated"
#: How its errors begin of a connection that ended.
_CLOSING = ("Connection closed", "SSE stream ")
#: How many tools of one server are offered, and how many pages of them are read.
MOST_TOOLS = 200
_MOST_PAGES = 50

# They quote what a server sent, which may be a secret of its own. What matters of it is raised.
for _name in ("mcp", "client"):
    logging.getLogger(_name).setLevel(logging.CRITICAL)


class Lost(Exception):
    """The connection ended; `sent`: a request may have reached the server before."""

    def __init__(self, why: str, *, sent: bool) -> None:
        super().__init__(why)
        self.sent = sent


class Connection:
    """Opened at once by whoever makes it, on the loop that runs; `changed` is called when the
    server says that its tools have changed."""

    def __init__(self, place: Place, changed: Callable[[], None] = lambda: None) -> None:
        self._changed = changed
        self._way = Way(place)
        self._scope = anyio.CancelScope()
        self._opened: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self._over = asyncio.Event()
        self._calls = 0
        self._cause: Exception | None = None
        self._leaving = False
        self._task = asyncio.create_task(self._live())

    @property
    def retired(self) -> bool:
        """Whether new calls should go elsewhere; those under way go on."""
        return self._leaving or self._scope.cancel_called

    async def tools(self) -> list[Tool]:
        """Return what the server offers now. Raises `Lost` or what the SDK does."""
        async with self._used() as client:
            found: list[Tool] = []
            cursor: str | None = None
            for _ in range(_MOST_PAGES):
                page = await client.list_tools(cursor=cursor)
                found += page.tools
                cursor = page.next_cursor
                if cursor is None or len(found) >= MOST_TOOLS:
                    break
            return found[:MOST_TOOLS]

    async def call(
        self, name: str, arguments: dict[str, Any], heard: ProgressFnT | None = None
    ) -> CallToolResult:
        """Call a tool; `heard` hears how far it is. Raises `TimeoutError`, `Lost` or what the SDK
        does."""
        async with self._used() as client, asyncio.timeout(CALLING):
            return await client.call_tool(name, arguments, progress_callback=heard)

    def retire(self) -> None:
        """Let go of the server when the calls under way are done."""
        self._leaving = True
        self._rest()

    async def close(self) -> None:
        """Let go of the server now; returns when its process is gone."""
        self._leaving = True
        self._scope.cancel()
        await asyncio.wait({self._task})

    @asynccontextmanager
    async def _used(self) -> AsyncIterator[Client]:
        self._calls += 1
        try:
            client = await asyncio.shield(self._opened)
            self._scope.deadline = float("inf")
            yield client
        except MCPError as error:
            # A server that was started again knows nothing of our session, and did nothing.
            forgotten = error.message == _FORGOTTEN
            if not _is_closing(error) and not forgotten:
                raise
            self.retire()
            raise await self._lost(sent=not forgotten) from None
        finally:
            self._calls -= 1
            self._rest()

    def _rest(self) -> None:
        if self._calls == 0 and self._opened.done():
            self._scope.deadline = anyio.current_time() + (0 if self.retired else IDLE)

    async def _lost(self, *, sent: bool) -> Lost:
        if sent:
            await asyncio.wait({self._task}, timeout=1)  # for what it ended of
        sent = sent and not isinstance(self._cause, httpx2.ConnectError)
        return Lost(self._explained("The connection ended"), sent=sent)

    async def _live(self) -> None:
        try:
            with self._scope:
                self._scope.deadline = anyio.current_time() + OPENING
                await self._serve()
        except Exception as error:
            self._cause = _root(error)
        self._leaving = True
        if not self._opened.done():
            why = "It did not answer" if self._scope.cancel_called else "It could not be reached"
            self._opened.set_exception(Lost(self._explained(why), sent=False))
            self._opened.exception()  # whoever waits has it; if nobody does, that is no fault

    async def _serve(self) -> None:
        async with self._way.opened(self._over) as streams:
            client = Client(
                Open(streams),
                client_info=Implementation(name="stenograph", version=__version__),
                message_handler=self._heard,
                cache=None,
            )
            async with client:
                self._opened.set_result(client)
                self._rest()
                await self._over.wait()
                self._leaving = True

    async def _heard(self, message: object) -> None:
        if isinstance(message, ToolListChangedNotification):
            self._changed()

    def _explained(self, what: str) -> str:
        parts = [what]
        if self._cause is not None and not _is_closing(self._cause):
            parts.append(str(self._cause) or type(self._cause).__name__)
        return "; ".join([*parts, *self._way.said()])


def _root(error: BaseException) -> Exception:
    """Return what was raised first, of what task groups have gathered."""
    leaves = [leaf for leaf in _leaves(error) if isinstance(leaf, Exception)]
    telling = [leaf for leaf in leaves if not _is_closing(leaf)]
    return (telling or leaves or [Exception(type(error).__name__)])[0]


def _leaves(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [leaf for one in error.exceptions for leaf in _leaves(one)]
    return [error]


def _is_closing(error: BaseException) -> bool:
    # Servers use the code too, for whatever went wrong in a tool.
    is_one = isinstance(error, MCPError) and error.code == CONNECTION_CLOSED
    return is_one and str(error).startswith(_CLOSING)
