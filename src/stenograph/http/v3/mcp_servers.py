"""MCP servers: set up, read, changed, checked and deleted; values are never read back."""

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from stenograph.accounts import mcp_server
from stenograph.accounts.mcp_place import Transport, Wanted
from stenograph.accounts.mcp_server import McpServer as Found
from stenograph.clock import iso
from stenograph.engine.toolboxes.mcp import check
from stenograph.http.context import Ctx
from stenograph.http.route import Route, delete, get, patch, post
from stenograph.http.v3 import wire

_Name = Annotated[str, Meta(description="1 to 40 of `a-z`, `0-9`, `_` and `-`, unique.")]
_Url = Annotated[
    str,
    Meta(
        description="`http://` or `https://`. Its query is never read back; keys belong in"
        " `headers`. Redirects to another host are not followed."
    ),
]
_Command = Annotated[
    str,
    Meta(
        description="A program that this server runs and talks to over its standard input and"
        " output. Its environment holds `env`, `PATH` and `HOME`."
    ),
]
_Args = Annotated[list[str], Meta(description="Read back: keys belong in `env`.")]
_CHANGES = "What is left out stays, null takes one away, and all go with another %s."


class McpServer(msgspec.Struct):
    """What is told of an MCP server: of values, only the names."""

    id: str
    name: str
    transport: Transport
    url: str | None
    query: Annotated[list[str], Meta(description="The names of the URL's parameters.")]
    headers: Annotated[list[str], Meta(description="The names of the headers that are sent.")]
    command: str | None
    args: list[str]
    env: Annotated[list[str], Meta(description="The names of the variables that are set.")]
    enabled: bool
    created_at: wire.Time
    updated_at: wire.Time


class McpServerList(msgspec.Struct):
    """All MCP servers of the organization, by name."""

    items: list[McpServer]


class NewMcpServer(msgspec.Struct):
    """Where a server is: `url` and `headers`, or `command`, `args` and `env`."""

    name: _Name
    transport: Transport
    url: _Url | None = None
    headers: dict[str, str] = {}
    command: _Command | None = None
    args: _Args | None = None
    env: dict[str, str] = {}
    enabled: bool = True


class McpServerChange(msgspec.Struct):
    """What is to be another; what is left out stays."""

    name: _Name | UnsetType = UNSET
    url: _Url | UnsetType = UNSET
    headers: Annotated[dict[str, str | None], Meta(description=_CHANGES % "`url`")] = {}
    command: _Command | UnsetType = UNSET
    args: _Args | UnsetType = UNSET
    env: Annotated[
        dict[str, str | None], Meta(description=_CHANGES % "`command` or other `args`")
    ] = {}
    enabled: bool | UnsetType = UNSET


class McpTool(msgspec.Struct):
    """A tool by the name that models call it by."""

    name: str
    description: str


class McpCheck(msgspec.Struct):
    """What a server offers at this moment."""

    id: str
    tools: list[McpTool]


_STDIO = "This server runs no commands (`mcp_stdio_disabled`)"
_ERRORS = {
    409: f"The name is taken (`mcp_server_exists`), there are too many"
    f" (`mcp_server_limit_reached`), or: {_STDIO}."
}


def _wire(ctx: Ctx, found: Found) -> McpServer:
    private = found.private(ctx.sealer)
    return McpServer(
        id=found.public_id,
        name=found.name,
        transport=found.transport,
        url=found.url,
        query=private.query_names,
        headers=sorted(private.headers),
        command=found.command[0] if found.command else None,
        args=list(found.command[1:]),
        env=sorted(private.env),
        enabled=found.enabled,
        created_at=iso(found.created_at),
        updated_at=iso(found.updated_at),
    )


@get(
    "/organizations/{orgId}/mcp-servers",
    id="listMcpServers",
    tag="MCP Servers",
    scope="mcp:read",
    answer=McpServerList,
)
async def list_mcp_servers(ctx: Ctx) -> McpServerList:
    """List MCP servers."""
    found = await ctx.read(lambda tx: mcp_server.listed(tx, ctx.caller))
    return McpServerList([_wire(ctx, one) for one in found])


@post(
    "/organizations/{orgId}/mcp-servers",
    id="createMcpServer",
    tag="MCP Servers",
    scope="mcp:write",
    body=NewMcpServer,
    status=201,
    answer=McpServer,
    errors=_ERRORS,
)
async def create_mcp_server(ctx: Ctx) -> McpServer:
    """Set up an MCP server.

    Its tools are offered to every agent of the organization that runs here, as
    `mcp__<server>__<tool>`. A `stdio` server is a command that this server runs: owners and admins
    set it up, where the operator allows it.
    """
    body = ctx.body(NewMcpServer)
    wanted = Wanted(
        body.name, body.url, body.headers, body.command, body.args, body.env, body.enabled
    )
    made = await ctx.write(
        lambda tx: mcp_server.create(
            tx, ctx.caller, ctx.sealer, body.transport, wanted, stdio=ctx.settings.mcp_stdio
        )
    )
    return _wire(ctx, made)


@get(
    "/organizations/{orgId}/mcp-servers/{mcpServerId}",
    id="getMcpServer",
    tag="MCP Servers",
    scope="mcp:read",
    answer=McpServer,
)
async def get_mcp_server(ctx: Ctx, mcp_server_id: str) -> McpServer:
    """Read an MCP server."""
    return _wire(ctx, await ctx.read(lambda tx: mcp_server.find(tx, ctx.caller, mcp_server_id)))


@patch(
    "/organizations/{orgId}/mcp-servers/{mcpServerId}",
    id="updateMcpServer",
    tag="MCP Servers",
    scope="mcp:write",
    body=McpServerChange,
    answer=McpServer,
    errors=_ERRORS,
)
async def update_mcp_server(ctx: Ctx, mcp_server_id: str) -> McpServer:
    """Change an MCP server.

    Values belong to the place they were given for: another `url` or command starts without any.
    """
    await ctx.read(lambda tx: mcp_server.find(tx, ctx.caller, mcp_server_id))
    body = ctx.body(McpServerChange)
    given = {
        name: value
        for name in body.__struct_fields__
        if (value := getattr(body, name)) is not UNSET
    }
    changed = await ctx.write(
        lambda tx: mcp_server.change(
            tx, ctx.caller, ctx.sealer, mcp_server_id, Wanted(**given), stdio=ctx.settings.mcp_stdio
        )
    )
    return _wire(ctx, changed)


@delete(
    "/organizations/{orgId}/mcp-servers/{mcpServerId}",
    id="deleteMcpServer",
    tag="MCP Servers",
    scope="mcp:write",
    answer=wire.Deleted,
)
async def delete_mcp_server(ctx: Ctx, mcp_server_id: str) -> wire.Deleted:
    """Delete an MCP server.

    Runs that go on are no longer offered its tools.
    """
    await ctx.write(lambda tx: mcp_server.delete(tx, ctx.caller, mcp_server_id))
    return wire.Deleted(mcp_server_id)


@post(
    "/organizations/{orgId}/mcp-servers/{mcpServerId}/check",
    id="checkMcpServer",
    tag="MCP Servers",
    scope="mcp:write",
    answer=McpCheck,
    errors={409: f"It could not be reached (`mcp_server_unavailable`), or: {_STDIO}."},
)
async def check_mcp_server(ctx: Ctx, mcp_server_id: str) -> McpCheck:
    """Connect to an MCP server and list its tools.

    None of them is called.
    """
    found = await ctx.read(lambda tx: mcp_server.find(tx, ctx.caller, mcp_server_id))
    mcp_server.require_runnable(ctx.caller, found.transport, stdio=ctx.settings.mcp_stdio)
    tools = await check(found, ctx.sealer)
    return McpCheck(found.public_id, [McpTool(tool.name, tool.description) for tool in tools])


routes: list[Route] = [
    list_mcp_servers,
    create_mcp_server,
    get_mcp_server,
    update_mcp_server,
    delete_mcp_server,
    check_mcp_server,
]
