"""The outermost layer: HEAD answered as GET without its body."""

from typing import Any

from litestar import Litestar


class Edge:
    """An ASGI application around Litestar's."""

    def __init__(self, app: Litestar) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and scope["method"] == "HEAD":
            # Method and body are all that differs (RFC 9110 section 9.3.2).
            scope = {**scope, "method": "GET"}
            send = _without_body(send)
        await self.app(scope, receive, send)


def _without_body(send: Any) -> Any:
    async def headers_only(message: Any) -> None:
        if message["type"] == "http.response.body":
            message = {**message, "body": b""}
        await send(message)

    return headers_only
