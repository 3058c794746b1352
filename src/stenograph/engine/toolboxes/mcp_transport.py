"""The ways to an MCP server: its command's standard input and output, or HTTP."""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Self

import httpx2
from mcp.client._transport import TransportStreams
from mcp.client.stdio import DEFAULT_INHERITED_ENV_VARS, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from stenograph.accounts.mcp_place import Place
from stenograph.engine.toolboxes.mcp_stderr import Stderr

#: Seconds to connect, and that a server may be silent while it is asked something.
CONNECTING = 30.0
SILENCE = 660.0
#: Bytes of one event of a stream; a result comes in one.
LARGEST_EVENT = 64 * 2**20


class Way:
    """How one server is reached, and what it said where it refused."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._stderr = Stderr()
        self._refused: int | None = None

    @asynccontextmanager
    async def opened(self, over: asyncio.Event) -> AsyncIterator[TransportStreams]:
        """Give the streams of messages; `over` is set when the server ends its own."""
        way = self._command() if self._place.url is None else self._http(self._place.url)
        async with way as (reading, writing):
            yield _Noticed(reading, over), writing

    def said(self) -> list[str]:
        """Return what it said last, for a person."""
        refused = [] if self._refused is None else [f"HTTP {self._refused}"]
        stderr = self._stderr.text()
        return [*refused, *([f"it said: {stderr}"] if stderr else [])]

    @asynccontextmanager
    async def _command(self) -> AsyncIterator[TransportStreams]:
        how = _process(self._place)
        async with self._stderr.opened() as errlog, stdio_client(how, errlog) as streams:
            errlog.close()
            yield streams

    @asynccontextmanager
    async def _http(self, bare: str) -> AsyncIterator[TransportStreams]:
        private = self._place.private
        url = f"{bare}?{private.query}" if private.query else bare
        client = httpx2.AsyncClient(
            headers=private.headers,
            timeout=httpx2.Timeout(CONNECTING, read=SILENCE),
            event_hooks={"response": [self._answered]},
        )
        # The SDK follows redirects on the same origin only.
        opening = streamable_http_client(url, http_client=client, max_sse_event_size=LARGEST_EVENT)
        async with client, opening as streams:
            yield streams

    async def _answered(self, response: httpx2.Response) -> None:
        # Only what is asked counts: many servers have no stream of their own to be read.
        if response.request.method == "POST":
            self._refused = response.status_code if response.is_error else None


class Open:
    """A transport that somebody else has opened, and will close."""

    def __init__(self, streams: TransportStreams) -> None:
        self._streams = streams

    async def __aenter__(self) -> TransportStreams:
        return self._streams

    async def __aexit__(self, *raised: object) -> None:
        return None


class _Noticed:
    """A stream that is read, and whose end is told."""

    def __init__(self, stream: Any, over: asyncio.Event) -> None:
        self._stream, self._over = stream, over

    @property
    def last_context(self) -> Any:
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> Any:
        return await self._stream.receive()

    async def aclose(self) -> None:
        await self._stream.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self._stream.__anext__()
        except StopAsyncIteration:
            self._over.set()
            raise

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        raised: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()


def _process(place: Place) -> StdioServerParameters:
    """Return how to start a command whose environment holds what was configured, PATH and HOME."""
    env = place.private.env
    program, *arguments = place.command
    if shutil.which(program, path=env.get("PATH", os.environ.get("PATH"))) is None:
        raise FileNotFoundError(f"There is no program {program!r} here")
    # The SDK hands a few more of ours on, and takes no word to leave them out.
    kept = {"PATH", "HOME", *env}
    unset = [
        word for name in DEFAULT_INHERITED_ENV_VARS if name not in kept for word in ("-u", name)
    ]
    return StdioServerParameters(
        command="env",
        args=[*unset, program, *arguments],
        env=env,
        cwd=os.environ.get("HOME", "/"),
        encoding_error_handler="replace",
    )
