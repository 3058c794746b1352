"""A provider on loopback: it plays replies in the wire formats, and keeps what it was asked.

One asyncio server for one test; it speaks HTTP/1.1 with chunked bodies, as the providers do.
"""

import asyncio
import contextlib
import json
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

import pytest

from stenograph.engine.models.answer import (
    Delta,
    ReasoningDelta,
    Response,
    TextDelta,
    ToolCallArgumentsDelta,
    ToolCallStarted,
)
from stenograph.engine.models.credentials import Credentials
from stenograph.engine.models.failures import ModelFailedError
from stenograph.engine.models.request import ModelRequest
from stenograph.engine.models.stream import stream

KEY = "sk-loopback"


@dataclass(frozen=True)
class Reply:
    """A reply: its body in pieces.

    `cut` closes the connection amid the chunked body, `hang` waits for the client to hang up.
    """

    pieces: tuple[bytes, ...]
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    content_type: str = "text/event-stream"
    cut: bool = False
    hang: bool = False


@dataclass(frozen=True)
class Asked:
    """A request as it came in."""

    path: str
    headers: dict[str, str]
    body: Any


def events(*payloads: dict[str, Any], done: bool = False, **more: Any) -> Reply:
    """Server-sent events, each named by its `type` where it has one; `done` adds OpenAI's end."""
    pieces = [
        (f"event: {it['type']}\n" if "type" in it else "") + f"data: {json.dumps(it)}\n\n"
        for it in payloads
    ]
    if done:
        pieces.append("data: [DONE]\n\n")
    return Reply(tuple(piece.encode() for piece in pieces), **more)


def error(status: int, body: dict[str, Any], **headers: str) -> Reply:
    """An error as JSON; header names are written with underscores."""
    return Reply(
        (json.dumps(body).encode(),),
        status,
        {name.replace("_", "-"): value for name, value in headers.items()},
        "application/json",
    )


@dataclass(frozen=True)
class Heard:
    """What came of one call: the deltas and the response."""

    deltas: tuple[Delta, ...]
    response: Response

    @property
    def text(self) -> str:
        return "".join(it.text for it in self.deltas if isinstance(it, TextDelta))

    @property
    def reasoning(self) -> str:
        return "".join(it.text for it in self.deltas if isinstance(it, ReasoningDelta))

    @property
    def calls(self) -> list[tuple[str, str, str]]:
        """The calls as their deltas tell them: id, name and arguments."""
        started = [it for it in self.deltas if isinstance(it, ToolCallStarted)]
        return [
            (
                call.id,
                call.name,
                "".join(
                    it.text
                    for it in self.deltas
                    if isinstance(it, ToolCallArgumentsDelta) and it.index == call.index
                ),
            )
            for call in started
        ]


class Provider:
    """The server: replies in order, and the requests it got in `asked`."""

    def __init__(self, *replies: Reply) -> None:
        self.replies = list(replies)
        self.asked: list[Asked] = []
        self.port = 0
        self.hung_up = asyncio.Event()

    async def __aenter__(self) -> "Provider":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            headers = {
                name.lower(): value.strip()
                for name, _, value in (line.partition(":") for line in head[1:] if line)
            }
            length = int(headers.get("content-length", "0"))
            body = await reader.readexactly(length)
            path = head[0].split(" ")[1]
            self.asked.append(Asked(path, headers, json.loads(body or b"null")))
            reply = self.replies.pop(0)
            await self._reply(reply, writer)
            if reply.hang:
                with contextlib.suppress(ConnectionError):  # a reset hangs up too
                    await reader.read()
                self.hung_up.set()
        finally:
            writer.close()

    async def _reply(self, reply: Reply, writer: asyncio.StreamWriter) -> None:
        extra = "".join(f"{name}: {value}\r\n" for name, value in reply.headers.items())
        writer.write(
            f"HTTP/1.1 {reply.status} Reply\r\nContent-Type: {reply.content_type}\r\n"
            f"Transfer-Encoding: chunked\r\nConnection: close\r\n{extra}\r\n".encode()
        )
        for piece in reply.pieces:
            writer.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
            await writer.drain()
        if not (reply.cut or reply.hang):
            writer.write(b"0\r\n\r\n")
        await writer.drain()


async def collect(request: ModelRequest, credentials: Credentials) -> Heard:
    """Hear one call out."""
    deltas: list[Delta] = []
    async with aclosing(stream(request, credentials)) as answer:
        async for event in answer:
            if isinstance(event, Response):
                return Heard(tuple(deltas), event)
            deltas.append(event)
    raise AssertionError("the stream ended without a response")


def ask(request: ModelRequest, reply: Reply, path: str = "") -> tuple[Heard, Asked]:
    """Make one call of a provider that gives `reply`; `path` is the end of its base URL."""
    provider = Provider(reply)
    return asyncio.run(_ask(request, provider, path)), provider.asked[0]


def fails(request: ModelRequest, reply: Reply, path: str = "") -> ModelFailedError:
    """Make one call that fails, and see that it was made once: retries are the caller's."""
    provider = Provider(reply, reply, reply)
    with pytest.raises(ModelFailedError) as failed:
        asyncio.run(_ask(request, provider, path))
    assert len(provider.asked) == 1
    return failed.value


async def _ask(request: ModelRequest, provider: Provider, path: str) -> Heard:
    async with provider:
        return await collect(request, opening(request, provider, path))


def opening(request: ModelRequest, provider: Provider, path: str) -> Credentials:
    """The credentials that lead to the provider on loopback."""
    base_url = f"http://127.0.0.1:{provider.port}{path}"
    if request.model.provider_id == "bedrock":
        # botocore sends a bearer key over TLS alone; a signature names the key's id.
        return Credentials(base_url=base_url, aws_access_key_id=KEY, aws_secret_access_key="secret")
    return Credentials(api_key=KEY, base_url=base_url)
