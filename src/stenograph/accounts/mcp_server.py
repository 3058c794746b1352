"""MCP servers: providers of tools that an organization sets up for its agents.

Addresses and commands are read back; the values of headers, of environment variables and of a
URL's query are sealed, and their names alone are. A value belongs to the place it was given for:
where the URL or the command becomes another, the values must be given anew.
"""

import re
from dataclasses import dataclass, field

import msgspec

from stenograph.accounts import mcp_place
from stenograph.accounts import store_settings as store
from stenograph.accounts.access import Caller
from stenograph.accounts.mcp_place import Place, Private, Transport, Wanted
from stenograph.clock import now
from stenograph.errors import ConflictError, ForbiddenError, NotFoundError
from stenograph.ids import new_id
from stenograph.storage.database import Row, Tx
from stenograph.storage.sealing import Sealer, plain_texts

#: How many MCP servers an organization may have: every turn asks all of them for their tools.
MOST_SERVERS = 50
_NAME = re.compile(r"[a-z0-9_-]{1,40}")


@dataclass(frozen=True, slots=True)
class McpServer:
    """`url` has no query; `command` is a program and its arguments. Times in microseconds."""

    id: int
    public_id: str
    organization_id: int
    name: str
    transport: Transport
    url: str | None
    command: tuple[str, ...]
    sealed: bytes = field(repr=False)
    enabled: bool
    created_at: int
    updated_at: int

    def private(self, sealer: Sealer) -> Private:
        """Open what is sealed. Raises `SealError`."""
        text = sealer.open(self.sealed, _context(self.public_id))
        return _noted(msgspec.json.decode(text, type=Private))


def listed(tx: Tx, caller: Caller) -> list[McpServer]:
    """List the organization's MCP servers by name."""
    return [_server(row) for row in store.mcp_servers(tx, caller.organization_id)]


def enabled(tx: Tx, organization_id: int) -> list[McpServer]:
    """List those whose tools an organization's agents are offered, by name."""
    return [_server(row) for row in store.mcp_servers(tx, organization_id, all=False)]


def find(tx: Tx, caller: Caller, public_id: str) -> McpServer:
    """Return one. Raises `NotFoundError` (`mcp_server_not_found`)."""
    row = store.mcp_server(tx, caller.organization_id, public_id)
    if row is None:
        raise NotFoundError("There is no such MCP server", code="mcp_server_not_found")
    return _server(row)


def require_runnable(caller: Caller, transport: Transport, *, stdio: bool) -> None:
    """Check that the caller may have a server of this kind run; `stdio`: the setting.

    Raises `ForbiddenError` for a command that is not an owner's or admin's, `ConflictError`
    (`mcp_stdio_disabled`) where commands are not allowed.
    """
    if transport != "stdio":
        return
    _require_admin(caller)
    if not stdio:
        raise ConflictError(
            "This server runs no commands as MCP servers: its operator has to set STENO_MCP_STDIO",
            code="mcp_stdio_disabled",
        )


def create(
    tx: Tx, caller: Caller, sealer: Sealer, transport: Transport, wanted: Wanted, *, stdio: bool
) -> McpServer:
    """Set up a server.

    Raises what `require_runnable` does, `InvalidInputError` (`invalid_mcp_server`), or
    `ConflictError` (`mcp_server_exists`, `mcp_server_limit_reached`).
    """
    require_runnable(caller, transport, stdio=stdio)
    name = _checked_name(wanted.name)
    public_id, at = new_id(), now()
    place = mcp_place.change(transport, Place(), wanted)
    if store.count_mcp_servers(tx, caller.organization_id) >= MOST_SERVERS:
        raise ConflictError(
            f"An organization has {MOST_SERVERS} MCP servers at most",
            code="mcp_server_limit_reached",
        )
    made = store.insert_mcp_server(
        tx,
        public_id=public_id,
        organization_id=caller.organization_id,
        creator_id=caller.principal_id,
        name=name,
        transport=transport,
        url=place.url,
        command=_written(place.command),
        ciphertext=_seal(sealer, public_id, place.private),
        enabled=int(wanted.enabled is not False),
        created_at=at,
        updated_at=at,
    )
    if not made:
        raise _taken(name)
    return find(tx, caller, public_id)


def change(
    tx: Tx, caller: Caller, sealer: Sealer, public_id: str, wanted: Wanted, *, stdio: bool
) -> McpServer:
    """Make a server another; its transport stays. Raises what `find` and `create` do."""
    store.hold_mcp_server(tx, caller.organization_id, public_id)
    known = find(tx, caller, public_id)
    require_runnable(caller, known.transport, stdio=stdio)
    name = known.name if wanted.name is None else _checked_name(wanted.name)
    if store.is_named(tx, caller.organization_id, name, but=public_id):
        raise _taken(name)
    before = Place(known.url, known.command, known.private(sealer))
    place = mcp_place.change(known.transport, before, wanted)
    store.update_mcp_server(
        tx,
        caller.organization_id,
        public_id,
        name=name,
        url=place.url,
        command=_written(place.command),
        ciphertext=_seal(sealer, public_id, place.private),
        enabled=known.enabled if wanted.enabled is None else wanted.enabled,
        at=now(),
    )
    return find(tx, caller, public_id)


def delete(tx: Tx, caller: Caller, public_id: str) -> None:
    """Delete a server; a command is an owner's or admin's to delete. Raises what `find` does."""
    if find(tx, caller, public_id).transport == "stdio":
        _require_admin(caller)
    store.delete_mcp_server(tx, caller.organization_id, public_id)


def _checked_name(name: str | None) -> str:
    if name is None or _NAME.fullmatch(name) is None:
        raise mcp_place.invalid("A name is 1 to 40 of a-z, 0-9, '_' and '-'")
    return name


def _require_admin(caller: Caller) -> None:
    if not caller.is_admin:
        raise ForbiddenError(
            "Only an owner or admin has commands run as MCP servers", code="forbidden"
        )


def _written(command: tuple[str, ...]) -> str | None:
    return msgspec.json.encode(command).decode() if command else None


def _seal(sealer: Sealer, public_id: str, private: Private) -> bytes:
    return sealer.seal(msgspec.json.encode(_noted(private)).decode(), _context(public_id))


def _noted(private: Private) -> Private:
    """Let nothing that is told of this request hold a value."""
    if (known := plain_texts.get()) is not None:
        known.update(private.values)
    return private


def _context(public_id: str) -> str:
    return f"mcp_server:{public_id}"


def _server(row: Row) -> McpServer:
    *head, command, sealed, is_enabled, created_at, updated_at = row
    words = msgspec.json.decode(command, type=tuple[str, ...]) if command else ()
    columns = (*head, words, bytes(sealed), bool(is_enabled), created_at, updated_at)
    return McpServer(*columns)


def _taken(name: str) -> ConflictError:
    return ConflictError(f"There is an MCP server called {name}", code="mcp_server_exists")
