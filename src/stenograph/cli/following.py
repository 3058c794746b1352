"""A session over HTTP: begun, followed to the end of its turn, talked to, stopped."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

import httpx
import msgspec

from stenograph.cli.reached import TIMEOUT, Reached, said
from stenograph.errors import StenographError

#: Seconds before a stream that broke off is taken up again, and for how long that is tried.
_PAUSE, _PATIENCE = 0.5, 60.0


@dataclass(slots=True)
class Session:
    """One session of a server; `seq` is the last event that was seen of it."""

    server: Reached
    http: httpx.AsyncClient
    public_id: str
    seq: int = field(default=-1)

    async def say(self, text: str) -> None:
        """Send a message; while a turn runs, it steers it."""
        await self._post("/messages", {"message": text})

    async def cancel(self) -> None:
        """Stop what runs."""
        await self._post("/cancel", {})

    async def decide(self, key: str, decision: str, note: str | None) -> None:
        """Let a call be made, or not."""
        body = {"decision": decision} | ({} if note is None else {"note": note})
        await self._post(f"/approvals/{key}", body)

    async def _post(self, path: str, body: dict[str, Any]) -> Any:
        url = f"{self.server.root}/sessions/{self.public_id}{path}"
        return said(await self.http.post(url, json=body))

    async def events(self) -> AsyncGenerator[tuple[str, Mapping[str, Any]], None]:
        """Give (type, event) as they come, up to the last one, `session`, when its turn is over.

        To be closed by who stops in the middle. Raises `StenographError` when the server stays
        away.
        """
        loop = asyncio.get_running_loop()
        lost_at: float | None = None
        while True:
            try:
                async with aclosing(self._stream()) as stream:
                    async for kind, event in stream:
                        lost_at = None
                        self.seq = event.get("seq", self.seq)
                        if kind == "error":
                            raise StenographError(str(event.get("message") or event.get("error")))
                        yield kind, event
                        if kind == "session":
                            return
            except httpx.TransportError as error:
                lost_at = lost_at or loop.time()
                if loop.time() - lost_at > _PATIENCE:
                    raise StenographError(f"The server is away: {error}") from None
            await asyncio.sleep(_PAUSE)

    async def _stream(self) -> AsyncGenerator[tuple[str, Mapping[str, Any]], None]:
        url = f"{self.server.root}/sessions/{self.public_id}/events/stream"
        params = {"after_seq": str(self.seq), "transcript": "1"}
        async with self.http.stream("GET", url, params=params) as answer:
            if not answer.is_success:
                await answer.aread()
                said(answer)
            kind, rest = "", b""
            async for chunk in answer.aiter_bytes():
                # At LF alone: what else Python takes for the end of a line stands in texts.
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    name, _, value = line.partition(b": ")
                    if name == b"event":
                        kind = value.decode()
                    elif name == b"data":
                        yield kind, msgspec.json.decode(value)


def client(server: Reached) -> httpx.AsyncClient:
    """Return a client for the server; a stream may be silent for as long as it likes."""
    timeout = httpx.Timeout(TIMEOUT, read=None)
    return httpx.AsyncClient(headers=server.headers, timeout=timeout)


async def begin(server: Reached, http: httpx.AsyncClient, body: dict[str, Any]) -> Session:
    """Create a session. Raises `StenographError` with what the server says against it."""
    made = said(await http.post(f"{server.root}/sessions", json=body))
    return Session(server, http, made["session_id"])
