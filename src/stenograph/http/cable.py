"""The WebSocket `/agent_api/v1/cable`, in ActionCable's JSON protocol (`actioncable-v1-json`).

A socket is for one member credential, in the header of its handshake. Each subscription follows
one conversation: `{"channel": "AgentAPI::V1::ConversationEventsChannel", "workspace_id": …,
"conversation_id": …, "items": …}`. There is no backlog: what is committed after
`confirm_subscription` comes. What ends the socket is said in `disconnect`, with whether to come
back: `unauthorized`, `invalid_request`, `rate_limited`, `slow_reader`, `server_restart`.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

import msgspec
import structlog
from litestar import Request
from litestar.connection import ASGIConnection

from stenograph.errors import (
    NotFoundError,
    TooManyRequestsError,
    UnauthorizedError,
)
from stenograph.events.live import CutError
from stenograph.http import errors
from stenograph.http.agent_api import following
from stenograph.http.agent_api.following import ITEMS, Begun, Items
from stenograph.http.auth import Gate, bearer
from stenograph.http.context import Ctx
from stenograph.http.following import Door, Open
from stenograph.http.rate_limits import WINDOW
from stenograph.http.route import get
from stenograph.settings import Settings
from stenograph.storage.database import Database
from stenograph.storage.sealing import Sealer

_log = structlog.get_logger("stenograph.http")

PATH = "/agent_api/v1/cable"
CHANNEL = "AgentAPI::V1::ConversationEventsChannel"
PROTOCOL = "actioncable-v1-json"
#: Seconds between two pings, by which a client knows that the connection lives.
PING = 3.0
#: How many conversations one socket follows.
SUBSCRIPTIONS = 32
#: The longest message of a client, in bytes.
MAX_MESSAGE = 64 * 1024

Reason: TypeAlias = Literal[
    "unauthorized", "invalid_request", "rate_limited", "slow_reader", "server_restart"
]
#: Close codes of RFC 6455, section 7.4, and whether it is worth while to come back.
_CODES: dict[Reason, tuple[int, bool]] = {
    "unauthorized": (1008, False),
    "invalid_request": (1003, False),
    "rate_limited": (1013, True),
    "slow_reader": (1013, True),
    "server_restart": (1012, True),
}


class Command(msgspec.Struct):
    """What a client sends. `identifier` is JSON in a string, and comes back as it was sent."""

    command: Literal["subscribe", "unsubscribe", "message"]
    identifier: str
    data: Any = None


class Channel(msgspec.Struct):
    """What is subscribed to."""

    channel: str
    workspace_id: str
    conversation_id: str
    items: str = "events"


async def _upgrade(ctx: Ctx) -> None:
    """Open a WebSocket."""


#: How the handshake is admitted; there is nothing for HTTP alone.
_ROUTE = get("/cable", id="openCable", tag="Events")(_upgrade)


class ClosedError(Exception):
    """The socket is to be closed for this reason."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason)
        self.reason = reason


def application(
    database: Database, settings: Settings, sealer: Sealer, gate: Gate, open: Open
) -> Callable[[Any, Any, Any], Awaitable[None]]:
    """Return the ASGI application that answers WebSockets."""

    async def serve(scope: Any, receive: Any, send: Any) -> None:
        connection: ASGIConnection[Any, Any, Any, Any] = ASGIConnection(scope)
        request = cast("Request[Any, Any, Any]", connection)
        try:
            if scope["path"] != PATH:
                raise NotFoundError("Not found")
            caller = await gate.agent(request, _ROUTE)
        except Exception as error:
            await _refuse(send, request, error)
            return
        secret = bearer(scope["headers"])
        assert secret is not None
        await send(
            {
                "type": "websocket.accept",
                "subprotocol": PROTOCOL if PROTOCOL in scope["subprotocols"] else None,
            }
        )

        def charge() -> None:
            # A subscription costs what a request does.
            budget = settings.agent_requests_per_minute
            holder = (_ROUTE.tag, "caller", caller.credential_public_id)
            gate.windows.charge(holder, budget, "Too many requests", WINDOW)

        socket = _Socket(Door(database, secret, "member"), sealer, receive, send, charge)
        await socket.run(open)

    return serve


async def _refuse(send: Any, request: "Request[Any, Any, Any]", error: Exception) -> None:
    """Answer the handshake as any request would be (ASGI's `websocket.http.response`)."""
    answer = errors.handle(request, error)
    headers = [(b"content-type", b"application/json")]
    headers += [(k.lower().encode(), v.encode()) for k, v in answer.headers.items()]
    start = {"status": answer.status_code, "headers": headers}
    await send({"type": "websocket.http.response.start", **start})
    body = msgspec.json.encode(answer.content)
    await send({"type": "websocket.http.response.body", "body": body})


@dataclass(frozen=True, slots=True)
class _Subscription:
    task: "asyncio.Task[None]"
    confirmed: asyncio.Event


class _Socket:
    """One connection, from its acceptance to its end."""

    def __init__(
        self, door: Door, sealer: Sealer, receive: Any, send: Any, charge: Callable[[], None]
    ) -> None:
        self._door, self._sealer, self._charge = door, sealer, charge
        self._receive, self._send = receive, send
        self._subscriptions: dict[str, _Subscription] = {}
        self._closing: asyncio.Future[Reason] = asyncio.get_running_loop().create_future()

    async def run(self, open: Open) -> None:
        """Serve until the client leaves or the socket is closed; then nothing of it is left."""
        forget = open.add(lambda: self._close("server_restart"))
        working = [asyncio.create_task(it) for it in (self._listen(), self._ping())]
        try:
            await self._say({"type": "welcome"})
            ends: list[asyncio.Future[Any]] = [self._closing, *working]
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            if self._closing.done():
                await self._part(self._closing.result())
        except OSError:
            pass  # it left meanwhile
        finally:
            forget()
            following = [it.task for it in self._subscriptions.values()]
            for task in (*working, *following):
                task.cancel()
            await asyncio.gather(*working, *following, return_exceptions=True)

    def _close(self, reason: Reason) -> None:
        if not self._closing.done():
            self._closing.set_result(reason)

    async def _part(self, reason: Reason) -> None:
        code, comes_back = _CODES[reason]
        await self._say({"type": "disconnect", "reason": reason, "reconnect": comes_back})
        await self._send({"type": "websocket.close", "code": code, "reason": reason})

    async def _say(self, message: Any) -> None:
        text = msgspec.json.encode(message).decode()
        await self._send({"type": "websocket.send", "text": text})

    async def _ping(self) -> None:
        while True:
            await asyncio.sleep(PING)
            await self._say({"type": "ping", "message": int(time.time())})

    async def _listen(self) -> None:
        try:
            while (message := await self._receive())["type"] != "websocket.disconnect":
                if message["type"] == "websocket.receive":
                    await self._obey(message)
        except ClosedError as closed:
            self._close(closed.reason)
            await asyncio.Event().wait()  # until `run` has said so

    async def _obey(self, message: Any) -> None:
        text = message.get("text")
        if text is None or len(text) > MAX_MESSAGE:
            raise ClosedError("invalid_request")
        try:
            command = msgspec.json.decode(text, type=Command)
        except (msgspec.DecodeError, RecursionError):
            raise ClosedError("invalid_request") from None
        try:
            self._charge()
        except TooManyRequestsError:
            raise ClosedError("rate_limited") from None
        match command.command:
            case "subscribe":
                await self._subscribe(command.identifier)
            case "unsubscribe":
                await self._unsubscribe(command.identifier)
            case "message":
                pass  # the channel takes no actions

    async def _subscribe(self, identifier: str) -> None:
        known = self._subscriptions.get(identifier)
        if known is not None:
            if known.confirmed.is_set():
                await self._say({"identifier": identifier, "type": "confirm_subscription"})
            return
        wanted = _channel(identifier)
        if wanted is None or len(self._subscriptions) >= SUBSCRIPTIONS:
            await self._reject(identifier)
            return
        confirmed = asyncio.Event()
        task = asyncio.create_task(self._follow(identifier, wanted, confirmed))
        self._subscriptions[identifier] = _Subscription(task, confirmed)

    async def _unsubscribe(self, identifier: str) -> None:
        known = self._subscriptions.pop(identifier, None)
        if known is not None:
            known.task.cancel()
            await asyncio.gather(known.task, return_exceptions=True)

    async def _reject(self, identifier: str) -> None:
        await self._say({"identifier": identifier, "type": "reject_subscription"})

    async def _follow(self, identifier: str, wanted: Channel, confirmed: asyncio.Event) -> None:
        try:
            begun = await self._begin(wanted)
            await self._say({"identifier": identifier, "type": "confirm_subscription"})
            confirmed.set()
            async for sent in following.followed(self._door, self._sealer, begun):
                if sent is not None:
                    await self._say({"identifier": identifier, "message": sent.data})
        except UnauthorizedError:
            self._close("unauthorized")
        except CutError:
            self._close("slow_reader")
        except OSError:
            pass  # the client left
        except Exception as error:
            if not isinstance(error, NotFoundError):
                _log.error("subscription failed", error=type(error).__name__)
            self._subscriptions.pop(identifier, None)
            await self._reject(identifier)

    async def _begin(self, wanted: Channel) -> Begun:
        items = cast("Items", wanted.items)
        return await self._door.read(
            lambda tx, caller: following.begin(
                tx, caller, wanted.workspace_id, wanted.conversation_id, items, None
            )
        )


def _channel(identifier: str) -> Channel | None:
    """Read an identifier; None for what names no channel that there is."""
    try:
        found = msgspec.json.decode(identifier, type=Channel)
    except (msgspec.DecodeError, RecursionError):
        return None
    named = (found.workspace_id, found.conversation_id)
    if found.channel != CHANNEL or found.items not in ITEMS:
        return None
    return found if all(it.isprintable() for it in named) else None
