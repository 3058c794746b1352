"""Server-sent events (WHATWG HTML, section 9.2): what a client follows, as text/event-stream.

Each event has its type in `event:`, JSON in `data:`, and where it is kept the place to resume from
in `id:`; a client that comes back sends the last one as `Last-Event-ID`. A comment comes every 15
seconds in which nothing else does. What ends a stream early is said in a last event `error`, whose
data is the body that a request would get.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any

import msgspec
from litestar import Response
from litestar.response.streaming import ASGIStreamingResponse

from stenograph.accounts.access import Plane
from stenograph.errors import ConflictError
from stenograph.events.live import CutError
from stenograph.http import errors
from stenograph.http.auth import bearer
from stenograph.http.context import Ctx
from stenograph.http.following import Door, Open, Sent

MEDIA_TYPE = "text/event-stream"
#: Seconds of silence after which a comment is sent.
HEARTBEAT = 15.0
#: Milliseconds after which a client that lost the connection should come back.
_RETRY = b"retry: 1000\n\n"
_COMMENT = b":\n\n"
_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}

SLOW = ConflictError(
    "The stream was not read as fast as it was written; take it up again", code="slow_reader"
)


def door(ctx: Ctx, plane: Plane) -> Door:
    """Return how the client of this request looks at the record as long as it stays."""
    secret = bearer(ctx.request.scope["headers"])
    assert secret is not None
    return Door(ctx.database, secret, plane, ctx.route.scope)


def stream(ctx: Ctx, followed: AsyncIterator[Sent | None]) -> Response[Any]:
    """Answer with what is followed, until that ends, the client leaves or the server stops.

    A stream is served for `Settings.stream_seconds` at most; of HEAD there is no body.
    """
    return _Stream(_written(ctx, followed))


async def _written(ctx: Ctx, followed: AsyncIterator[Sent | None]) -> AsyncGenerator[bytes, None]:
    loop = asyncio.get_running_loop()
    scope: dict[str, Any] = ctx.request.scope  # type: ignore[assignment]
    open: Open = scope["open"]
    seconds = 0 if "head" in scope else ctx.settings.stream_seconds
    last = loop.time()
    until = last + seconds
    yield _RETRY
    try:
        async with aclosing(followed) as it:  # type: ignore[type-var]
            async for sent in it:
                if sent is not None:
                    yield written(sent)
                    last = loop.time()
                elif open.ending or loop.time() >= until:
                    return
                elif loop.time() - last >= HEARTBEAT:
                    yield _COMMENT
                    last = loop.time()
    except CutError:
        yield _error(ctx, SLOW)
    except Exception as error:
        yield _error(ctx, error)


def _error(ctx: Ctx, error: Exception) -> bytes:
    return written(Sent("error", errors.handle(ctx.request, error).content))


def written(sent: Sent) -> bytes:
    """Write one event."""
    lines = [b"event: " + sent.type.encode(), b"data: " + msgspec.json.encode(sent.data)]
    if sent.id is not None:
        lines.insert(0, b"id: " + sent.id.encode())
    return b"\n".join(lines) + b"\n\n"


class _Stream(Response[Any]):
    """A response whose body is closed, and has let go of everything, when the client leaves."""

    def __init__(self, body: AsyncGenerator[bytes, None]) -> None:
        super().__init__(None)
        self._body = body

    def to_asgi_response(
        self, app: Any, request: Any, *, headers: Any = None, **_: Any
    ) -> ASGIStreamingResponse:
        return _Sending(iterator=self._body, headers=_HEADERS, media_type=MEDIA_TYPE)


class _Sending(ASGIStreamingResponse):
    async def _stream(self, send: Any) -> None:
        body: Any = self.iterator
        async with aclosing(body):
            await super()._stream(send)


def last_event_id(ctx: Ctx, query: str) -> dict[str, str]:
    """Return the request's query, in which the place that a client resumes from wins."""
    found = dict(ctx.query)
    resumed = ctx.header("last-event-id")
    if resumed is not None:
        found[query] = resumed
    return found
