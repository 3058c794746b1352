"""An MCP server made with the `mcp` package, over stdio (`python sample_server.py`) or loopback."""

import asyncio
import base64
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    ToolAnnotations,
)

DATA = base64.b64encode(bytes(1_000)).decode()
MIXED = [
    TextContent(text="words"),
    ImageContent(data=DATA, mime_type="image/png"),
    AudioContent(data=DATA, mime_type="audio/wav"),
    ResourceLink(name="report", uri="file:///report.txt"),
    EmbeddedResource(resource=BlobResourceContents(uri="file:///x.bin", blob=DATA)),
]


def sample(touched: Path | None = None) -> MCPServer:
    """A server whose tools say what they see; `touched` gets a line for each call of `count`,
    `hang` and `die`."""
    server = MCPServer("sample", log_level="CRITICAL")

    def touch(name: str) -> None:
        if touched is not None:
            with touched.open("a") as file:
                file.write(f"{name}\n")

    @server.tool()
    def echo(text: str) -> str:
        """Say it again."""
        return text

    @server.tool()
    def environment() -> dict[str, str]:
        return dict(os.environ)

    @server.tool()
    def process() -> int:
        return os.getpid()

    @server.tool()
    def headers(ctx: Context) -> dict[str, str]:
        return dict(ctx.headers or {})

    @server.tool(structured_output=False)
    def mixed() -> CallToolResult:
        return CallToolResult(content=MIXED, structured_content={"a": [1]})

    @server.tool()
    def huge() -> str:
        return "0123456789" * 300_000

    @server.tool()
    def fail(text: str) -> str:
        raise ToolError(f"it fell apart: {text}")

    @server.tool()
    def die() -> str:
        touch("die")
        os._exit(3)

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    def die_reading() -> str:
        os._exit(3)

    @server.tool()
    async def hang() -> str:
        touch("hang")
        await asyncio.sleep(3_600)
        return "at last"

    @server.tool(annotations=ToolAnnotations(idempotent_hint=True))
    def count() -> str:
        touch("count")
        return "counted"

    @server.tool(name="a tool/with.a name of its own that is quite a bit too long for models")
    def strange() -> str:
        return "strange"

    @server.tool()
    def grow(name: str) -> str:
        server.add_tool(echo, name=name)
        return f"there is {name}"

    return server


@asynccontextmanager
async def on_loopback(server: MCPServer) -> AsyncIterator[str]:
    """Serve it over streamable HTTP; gives its URL."""
    async with served(server.streamable_http_app()) as url:
        yield url


@asynccontextmanager
async def served(app: Any) -> AsyncIterator[str]:
    """Serve an ASGI application; gives the URL of its `/mcp`."""
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    config = uvicorn.Config(app, log_level="critical", timeout_graceful_shutdown=1)
    running = uvicorn.Server(config)
    task = asyncio.create_task(running.serve([listening]))
    try:
        while not running.started:
            await asyncio.sleep(0.01)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
    finally:
        running.should_exit = True
        await task
        listening.close()


if __name__ == "__main__":
    where = os.environ.get("TOUCHED")
    sample(Path(where) if where else None).run()
