"""The tools of an organization's MCP servers, offered as `mcp__<server>__<tool>`.

Every server has one session, which all runs of its organization share.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import isfinite
from types import ModuleType
from typing import TYPE_CHECKING, Any

import structlog

from stenograph.accounts import mcp_server
from stenograph.accounts.mcp_place import Place
from stenograph.accounts.mcp_server import McpServer
from stenograph.engine.results import storable
from stenograph.engine.toolbox import ToolContext, ToolOutcome, ToolSpec
from stenograph.engine.toolboxes import progress
from stenograph.engine.toolboxes.progress import MESSAGE, Step
from stenograph.engine.work import Work
from stenograph.errors import ConflictError
from stenograph.storage.database import Database
from stenograph.storage.sealing import Sealer, SealError, plain_texts
from stenograph.trajectories.redaction import Redactor

if TYPE_CHECKING:
    from stenograph.engine.toolboxes.mcp_connection import Connection

_log = structlog.get_logger()

#: Seconds that a turn waits for a server to name its tools; one that takes longer is left out
#: until it has.
PATIENCE = 5.0
#: Seconds until a server is asked for its tools again: after it named them, after it did not.
FRESH = 300.0
AGAIN = 30.0
#: Seconds that naming the tools may take altogether, starting the server included.
LISTING = 40.0


@dataclass(frozen=True, slots=True)
class _Offer:
    """A tool: what models see, what the server calls it, whether a second call does no harm."""

    spec: ToolSpec
    name: str
    is_repeatable: bool


@dataclass(slots=True)
class _Shelf:
    """A server in one version of its row, and what is known of it; moments are the loop's."""

    server: McpServer
    place: Place
    redactor: Redactor
    connection: Connection | None = None
    #: None: the server has named no tools, or not lately.
    offers: tuple[_Offer, ...] | None = None
    due_at: float = 0.0
    listing: asyncio.Task[None] | None = None
    asked_at: float = 0.0

    def connected(self) -> Connection:
        """Return the connection, a new one where there is none that lasts."""
        if self.connection is None or self.connection.retired:
            self.connection = _connect(self.place, self._expire)
        return self.connection

    def _expire(self) -> None:
        self.due_at = 0.0


@dataclass
class McpTools:
    """A toolbox (`engine.toolbox.Toolbox`) over all organizations' servers; lives on one loop.

    `stdio`: whether servers that are commands are run (the setting `mcp_stdio`).
    """

    database: Database
    sealer: Sealer
    stdio: bool = False
    patience: float = PATIENCE
    fresh: float = FRESH
    again: float = AGAIN
    _shelves: dict[int, _Shelf] = field(default_factory=dict)

    async def specs(self, work: Work) -> tuple[ToolSpec, ...]:
        """Return the tools of the organization's enabled servers, as far as they answer in time."""
        return tuple(offer.spec for _, offer in (await self._offers(work)).values())

    async def call(self, name: str, arguments: dict[str, Any], context: ToolContext) -> ToolOutcome:
        """Call a tool of a server; `uncertain` where nobody knows whether it took effect."""
        found = (await self._offers(context.work)).get(name)
        if found is None:
            return ToolOutcome("failed", f"The tool {name} is not on offer any more")
        shelf, offer = found
        if context.resumed and not offer.is_repeatable:
            return ToolOutcome(
                "uncertain", f"{name} was begun before this server stopped; it was not called again"
            )
        steps = _Steps(shelf.redactor)
        async with progress.shown(context, steps.last):
            outcome = await _called(shelf, offer, arguments, steps)
        return replace(outcome, output=shelf.redactor.text(outcome.output))

    async def close(self) -> None:
        """Let go of all servers; returns when their processes are gone."""
        shelves = list(self._shelves.values())
        self._shelves.clear()
        listings = [shelf.listing for shelf in shelves if shelf.listing is not None]
        for listing in listings:
            listing.cancel()
        await asyncio.gather(*(shelf.connection.close() for shelf in shelves if shelf.connection))
        await asyncio.gather(*listings, return_exceptions=True)

    async def _offers(self, work: Work) -> Mapping[str, tuple[_Shelf, _Offer]]:
        shelves = self._current(work.organization_id, await self._servers(work.organization_id))
        await asyncio.gather(*(self._stock(shelf) for shelf in shelves))
        offers: dict[str, tuple[_Shelf, _Offer]] = {}
        for shelf in shelves:
            for offer in shelf.offers or ():
                offers.setdefault(offer.spec.name, (shelf, offer))
        return offers

    async def _servers(self, organization_id: int) -> list[McpServer]:
        def look() -> list[McpServer]:
            with self.database.read() as tx:
                return mcp_server.enabled(tx, organization_id)

        found = await asyncio.to_thread(look) if self.database.reads_wait else look()
        return [it for it in found if self.stdio or it.transport != "stdio"]

    def _current(self, organization_id: int, servers: list[McpServer]) -> list[_Shelf]:
        """Return the shelves of these servers; those of others and of older versions are cleared
        away."""
        wanted = {server.id: server for server in servers}
        for row_id, shelf in list(self._shelves.items()):
            known = shelf.server
            if known.organization_id == organization_id and wanted.get(row_id) != known:
                del self._shelves[row_id]
                if shelf.connection is not None:
                    shelf.connection.retire()
                if shelf.listing is not None:
                    shelf.listing.cancel()
        for server in servers:
            if server.id not in self._shelves and (made := self._new(server)) is not None:
                self._shelves[server.id] = made
        return [self._shelves[server.id] for server in servers if server.id in self._shelves]

    def _new(self, server: McpServer) -> _Shelf | None:
        try:
            private = server.private(self.sealer)
        except SealError as error:
            _left_out(server, error.message)
            return None
        place = Place(server.url, server.command, private)
        return _Shelf(server, place, Redactor(private.values, "ephemeral"))

    async def _stock(self, shelf: _Shelf) -> None:
        """See to it that a shelf holds what its server offers, waiting `patience` for each try."""
        now = asyncio.get_running_loop().time()
        if shelf.listing is None and now >= shelf.due_at:
            shelf.listing = asyncio.create_task(self._list(shelf))
            shelf.asked_at = now
        left = shelf.asked_at + self.patience - now
        if shelf.listing is not None and left > 0:
            await asyncio.wait({shelf.listing}, timeout=left)
            if shelf.listing is not None and shelf.offers is None:
                _left_out(shelf.server, f"It named no tools in {self.patience:g} s")

    async def _list(self, shelf: _Shelf) -> None:
        shelf.due_at = float("inf")
        wait = self.again
        try:
            shelf.offers = await _offered(shelf)
            wait = self.fresh
        except Exception as error:
            shelf.offers = None
            _left_out(shelf.server, shelf.redactor.text(_said(error)))
        finally:
            shelf.listing = None
            # What changed while it was listed is due at once.
            if shelf.due_at == float("inf"):
                shelf.due_at = asyncio.get_running_loop().time() + wait


async def check(server: McpServer, sealer: Sealer) -> tuple[ToolSpec, ...]:
    """Connect to a server, and return its tools by the names that models call them by.

    Raises `ConflictError` (`mcp_server_unavailable`), which says why.
    """
    place = Place(server.url, server.command, server.private(sealer))
    shelf = _Shelf(server, place, Redactor(place.private.values, "ephemeral"))
    try:
        return tuple(offer.spec for offer in await _offered(shelf))
    except Exception as error:
        why = shelf.redactor.text(_said(error))
        raise ConflictError(why, code="mcp_server_unavailable") from None
    finally:
        if shelf.connection is not None:
            await shelf.connection.close()


def _connect(place: Place, changed: Callable[[], None]) -> Connection:
    from stenograph.engine.toolboxes.mcp_connection import Connection

    # What is logged in the connection's tasks is masked (`stenograph.logs`).
    before = plain_texts.set(set(place.private.values))
    try:
        return Connection(place, changed)
    finally:
        plain_texts.reset(before)


async def _offered(shelf: _Shelf) -> tuple[_Offer, ...]:
    """Ask a server for its tools. Raises `TimeoutError`, `Lost`, or what the SDK does."""
    words = await asyncio.to_thread(_loaded)
    tools = await asyncio.wait_for(shelf.connected().tools(), LISTING)
    hide = shelf.redactor
    offers = []
    for tool in tools:
        parameters = words.parameters(hide.value(tool.input_schema))
        if parameters is None:
            _left_out(shelf.server, hide.text(f"The schema of its tool {tool.name} is too large"))
            continue
        description = hide.text(tool.description or tool.title or "")
        name = words.name(shelf.server.name, tool.name)
        spec = ToolSpec(name, description[: words.LONGEST_DESCRIPTION], parameters)
        offers.append(_Offer(spec, tool.name, words.is_repeatable(tool)))
    return tuple(offers)


@dataclass(slots=True)
class _Steps:
    """What a server last said of how far a call is."""

    redactor: Redactor
    said: tuple[float, float | None, str | None] | None = None

    async def hear(self, progress: float, total: float | None, message: str | None) -> None:
        if isfinite(progress):
            self.said = (
                progress,
                total if total is not None and isfinite(total) else None,
                message,
            )

    def last(self) -> Step | None:
        if self.said is None:
            return None
        done, total, message = self.said
        if message is not None:
            is_long = len(message) > MESSAGE
            message = None if is_long else self.redactor.text(storable(message))
        return Step(done, total, message)


async def _called(
    shelf: _Shelf, offer: _Offer, arguments: dict[str, Any], steps: _Steps
) -> ToolOutcome:
    from stenograph.engine.toolboxes.mcp_connection import Lost

    words = _loaded()
    while True:
        connection = shelf.connection
        is_old = connection is not None and not connection.retired
        try:
            result = await shelf.connected().call(offer.name, arguments, steps.hear)
        except TimeoutError:
            return ToolOutcome("timed_out", "The server gave no answer in time")
        except Lost as lost:
            if is_old and not lost.sent:
                continue  # with a new connection
            if lost.sent and not offer.is_repeatable:
                return ToolOutcome("uncertain", f"{lost}: the call may have had its effect")
            return ToolOutcome("failed", str(lost))
        except Exception as error:
            return ToolOutcome("failed", _said(error))
        return ToolOutcome("failed" if result.is_error else "completed", words.output(result))


def _said(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return f"It named no tools in {LISTING:g} s"
    return str(error) or type(error).__name__


def _left_out(server: McpServer, why: str) -> None:
    _log.warning("mcp_server_left_out", server=server.name, id=server.public_id, why=why)


def _loaded() -> ModuleType:
    """Import the SDK, which takes half a second the first time."""
    from stenograph.engine.toolboxes import mcp_connection, mcp_words  # noqa: F401

    return mcp_words
