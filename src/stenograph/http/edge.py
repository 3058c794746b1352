"""The outermost layer: every request counted, HEAD answered as GET without its body."""

import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from litestar import Litestar

from stenograph.http.auth import Gate
from stenograph.http.following import Open
from stenograph.http.metrics import Metrics
from stenograph.storage.sealing import plain_texts

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
#: An ASGI application.
Application: TypeAlias = Callable[[Any, Any, Any], Awaitable[None]]


class Edge:
    """An ASGI application around Litestar's, and around the one that answers WebSockets."""

    def __init__(
        self, app: Litestar, sockets: Application, gate: Gate, metrics: Metrics, open: Open
    ) -> None:
        self.app = app
        self.sockets = sockets
        self.gate = gate
        self.metrics = metrics
        self.open = open

    def end_streams(self) -> None:
        """End what would go on for as long as this serves. On any thread."""
        self.open.end()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "websocket":
            await self.sockets(scope, receive, send)
            return
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        scope["open"] = self.open
        started = time.perf_counter()
        before = plain_texts.set(set())
        method = scope["method"]
        head = method == "HEAD"
        if head:
            # Method and body are all that differs (RFC 9110 section 9.3.2).
            scope = {**scope, "method": "GET", "head": True}
        status = 500

        async def watched(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            elif head:
                message = {**message, "body": b""}
            await send(message)

        try:
            await self.app(scope, receive, watched)
        finally:
            plain_texts.reset(before)
            self.metrics.observe(
                method if method in _METHODS else "other",
                scope.get("path_template", "none"),
                status,
                time.perf_counter() - started,
            )
