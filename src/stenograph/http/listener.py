"""HTTP/1.1 and WebSockets: uvicorn with httptools and websockets, on the event loop's own thread
(docs/decisions/0034)."""

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterator
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from stenograph.http.cable import MAX_MESSAGE

#: The longest request line with headers, in bytes; what came in one piece with the end counts not.
MAX_HEAD = 2**18
#: Seconds that a connection may stay open without a request.
IDLE = 75
#: Seconds that a client may read nothing of what is written to it.
STALL = 60
#: Connections that may wait to be accepted.
BACKLOG = 1024


class _Gathering:
    """A transport that sends the head of an answer together with what follows it at once.

    Each sending costs a call of the system, and lets other threads take the interpreter's lock.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._held = b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        if self._held or not data:
            self._transport.write(self._held + data)
            self._held = b""
        else:
            self._held = data
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        if self._held:
            self.write(b"")

    def close(self) -> None:
        self._flush()
        self._transport.close()


class _Stalling:
    """Drops a client that reads nothing. To close would wait until it has read what is left."""

    loop: asyncio.AbstractEventLoop
    transport: asyncio.Transport
    _stalling: asyncio.TimerHandle | None = None

    def pause_writing(self) -> None:
        super().pause_writing()  # type: ignore[misc]
        self._stalling = self.loop.call_later(STALL, self.transport.abort)

    def resume_writing(self) -> None:
        self._go_on()
        super().resume_writing()  # type: ignore[misc]

    def connection_lost(self, error: Exception | None) -> None:
        self._go_on()
        super().connection_lost(error)  # type: ignore[misc]

    def _go_on(self) -> None:
        if self._stalling is not None:
            self._stalling.cancel()
            self._stalling = None


class _Socket(_Stalling, WebSocketsSansIOProtocol):
    """A WebSocket; a client that answers no ping is gone, whatever is left to be written."""

    def keepalive_timeout(self) -> None:
        super().keepalive_timeout()
        self.transport.abort()


class _Protocol(_Stalling, HttpToolsProtocol):
    """Bounds what uvicorn does not: the head of a request, and silence before the first."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(_Gathering(transport, self.loop))  # type: ignore[arg-type]
        self._head: int | None = 0
        self.timeout_keep_alive_task = self.loop.call_later(IDLE, self.timeout_keep_alive_handler)

    def data_received(self, data: bytes) -> None:
        if self._head is not None:
            self._head += len(data)
        super().data_received(data)
        if self._head is not None and self._head > MAX_HEAD and not self.transport.is_closing():
            self.send_400_response("The head of this request is too large.")

    def _should_upgrade(self) -> bool:
        # RFC 6455, section 4.1: the library that takes over takes nothing else, and says nothing.
        return self.parser.get_method() == b"GET" and super()._should_upgrade()

    def on_headers_complete(self) -> None:
        self._head = None
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._head = 0
        super().on_message_complete()


class Listener(uvicorn.Server):
    """Serves an application on a socket, until `stop` is called.

    An application that has an `end_streams` is told to end what would go on without end.
    """

    def __init__(self, application: Any, patience: int, ready: Callable[[], None]) -> None:
        """`patience`: seconds that stopping waits for answers; `ready` is called once it serves."""
        super().__init__(
            uvicorn.Config(
                application,
                http=_Protocol,
                ws=_Socket,
                ws_max_size=MAX_MESSAGE,
                ws_per_message_deflate=False,
                lifespan="off",
                interface="asgi3",
                backlog=BACKLOG,
                log_config=None,
                log_level="critical",
                access_log=False,
                proxy_headers=False,
                server_header=False,
                timeout_keep_alive=IDLE,
                timeout_graceful_shutdown=patience,
            )
        )
        self._ready = ready
        self._end_streams: Callable[[], None] = getattr(application, "end_streams", lambda: None)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()

    def stop(self) -> None:
        """Take no more requests, answer those that came, and let `serve` return."""
        self._end_streams()
        self.should_exit = True

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are the process's own affair."""
        yield
