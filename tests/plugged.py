"""The WebSocket of the Agent API, spoken to in this process."""

import asyncio
import json
from typing import Any

from serving import Api
from stenograph.http import cable

PATIENCE = 30


def shake_hands(api: Api, key: str) -> tuple[int, bytes, dict[str, str]]:
    """Ask for a socket that is refused; returns status, body and headers of the answer."""
    start, body = api.runner.run(_talk(api, key, []))
    headers = {name.decode(): value.decode() for name, value in start["headers"]}
    return start["status"], body["body"], headers


def subscribe(api: Api, key: str, workspace: str, conversation: str) -> dict[str, Any]:
    """Subscribe to a conversation's events; returns what the client is told first."""
    named = {"workspace_id": workspace, "conversation_id": conversation}
    identifier = json.dumps({"channel": cable.CHANNEL, **named})
    sent = api.runner.run(_talk(api, key, [{"command": "subscribe", "identifier": identifier}]))
    texts = [json.loads(it["text"]) for it in sent if it["type"] == "websocket.send"]
    (answer,) = [it for it in texts if it.get("identifier") == identifier]
    del answer["identifier"]
    return dict(answer)


async def _talk(api: Api, key: str, commands: list[dict[str, Any]]) -> list[Any]:
    """Open a socket, say all this, and hang up when as much was answered."""
    sent: list[Any] = []
    answered = asyncio.Event()
    incoming: list[dict[str, Any]] = [
        {"type": "websocket.connect"},
        *({"type": "websocket.receive", "text": json.dumps(it)} for it in commands),
    ]

    async def receive() -> dict[str, Any]:
        if incoming:
            return incoming.pop(0)
        await answered.wait()
        return {"type": "websocket.disconnect", "code": 1000}

    async def send(message: Any) -> None:
        sent.append(message)
        if sum("identifier" in it.get("text", "") for it in sent) == len(commands):
            answered.set()

    secret = api.org.keys.get(key, key)
    scope = {
        "type": "websocket",
        "scheme": "ws",
        "http_version": "1.1",
        "path": cable.PATH,
        "raw_path": cable.PATH.encode(),
        "query_string": b"",
        "headers": [(b"authorization", f"Bearer {secret}".encode())] if key else [],
        "subprotocols": [cable.PROTOCOL],
        "client": ("127.0.0.1", 1),
        "server": ("steno.test", 80),
        "state": {},
        "extensions": {"websocket.http.response": {}},
    }
    await asyncio.wait_for(api.app(scope, receive, send), PATIENCE)
    return sent
