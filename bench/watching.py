"""Watching: from a step on its way to the record to its readers, 50 conversations at once."""

import asyncio
import json
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from websockets.asyncio.client import connect

from bench.figures import Figure
from bench.serving import AGENT, V3, Client, Server, folder, serving
from stenograph.http.cable import CHANNEL, PATH

CONVERSATIONS = 50
ROUNDS = 12
#: Seconds in which each conversation gets a step.
ROUND = 1.0

WAYS = {
    "poll": "a long poll",
    "stream": "server-sent events",
    "cable": "the cable",
}


@dataclass
class _Measured:
    """When each step was sent, and how long after that each reader had it, in milliseconds."""

    sent: dict[tuple[int, int], float] = field(default_factory=dict)
    took: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def arrived(self, way: str, session: int, step: int) -> None:
        self.took[way].append((time.perf_counter() - self.sent[session, step]) * 1e3)


def run() -> list[Figure]:
    """Measure from before the request that appends a step, its fsync included, to each reader."""
    with folder() as data, serving(data) as server:
        sessions = [_session(server) for _ in range(CONVERSATIONS)]
        measured = asyncio.run(_watch(server, sessions))
    figures = []
    for way, name in WAYS.items():
        took = sorted(measured.took[way])
        assert len(took) == CONVERSATIONS * ROUNDS, (way, len(took))
        median, last = statistics.median(took), took[len(took) * 99 // 100]
        figures.append(Figure(f"step sent to its reader by {name}, median", median, "ms"))
        figures.append(Figure(f"step sent to its reader by {name}, 99th", last, "ms", "under 50"))
    return figures


def _session(server: Server) -> tuple[str, str]:
    """Make a recorded session with its prompt; returns its id and that of its workspace."""
    client = Client(server)
    agent = {"name": "bench", "version": "1"}
    made = client.post(f"{V3}/sessions", {"recorded": True, "agent": agent, "prompt": "Go on"})
    client.close()
    reader = Client(server, "member")
    (workspace,) = json.loads(reader.get(f"{AGENT}/workspaces"))["workspaces"]
    reader.close()
    return made["session_id"], workspace["public_id"]


async def _watch(server: Server, sessions: list[tuple[str, str]]) -> _Measured:
    measured, ready = _Measured(), asyncio.Semaphore(0)
    readers = [
        asyncio.create_task(read(server, measured, ready, number, *names))
        for number, names in enumerate(sessions)
        for read in (_poll, _stream)
    ]
    readers += [
        asyncio.create_task(_cable(server, measured, ready, number, *names))
        for number, names in enumerate(sessions)
    ]
    for _ in readers:
        await ready.acquire()
    await asyncio.to_thread(_append, server, measured, sessions)
    await asyncio.wait_for(asyncio.gather(*readers), 30)
    return measured


def _append(server: Server, measured: _Measured, sessions: list[tuple[str, str]]) -> None:
    client = Client(server)
    start = time.perf_counter()
    for step in range(ROUNDS):
        for number, (session_id, _) in enumerate(sessions):
            due = start + (step + number / len(sessions)) * ROUND
            time.sleep(max(0.0, due - time.perf_counter()))
            measured.sent[number, step] = time.perf_counter()
            body = {"step_id": step + 2, "source": "agent", "message": str(step)}
            client.post(f"{V3}/sessions/{session_id}/steps", body)
    client.close()


async def _opened(server: Server, path: str) -> tuple[asyncio.StreamReader, Callable[..., None]]:
    place = urlsplit(server.url)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)

    def ask(path: str) -> None:
        head = f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.keys['api']}\r\n"
        writer.write(f"{head}\r\n".encode())

    ask(path)
    return reader, ask


def _steps(items: Any) -> Iterator[int]:
    return (int(item["text"]) for item in items if item["type"] == "assistant")


async def _poll(
    server: Server, measured: _Measured, ready: Any, number: int, session_id: str, _: str
) -> None:
    path = f"{V3}/sessions/{session_id}/events?wait_ms=20000&after_seq="
    reader, ask = await _opened(server, path + "1")
    ready.release()
    heard = 0
    while heard < ROUNDS:
        head = await reader.readuntil(b"\r\n\r\n")
        size = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        found = json.loads(await reader.readexactly(size))
        for step in _steps(found["items"]):
            measured.arrived("poll", number, step)
            heard += 1
        ask(f"{path}{found['next_seq']}")


async def _stream(
    server: Server, measured: _Measured, ready: Any, number: int, session_id: str, _: str
) -> None:
    reader, _ask = await _opened(server, f"{V3}/sessions/{session_id}/events/stream?after_seq=1")
    await reader.readuntil(b"retry:")
    ready.release()
    heard = 0
    while heard < ROUNDS:
        line = await reader.readuntil(b"\n")
        if line.startswith(b"data: "):
            for step in _steps([json.loads(line[6:])]):
                measured.arrived("stream", number, step)
                heard += 1


async def _cable(
    server: Server, measured: _Measured, ready: Any, number: int, session_id: str, workspace: str
) -> None:
    url = server.url.replace("http", "ws") + PATH
    key = {"Authorization": f"Bearer {server.keys['member']}"}
    channel = {"channel": CHANNEL, "workspace_id": workspace, "conversation_id": session_id}
    async with connect(url, additional_headers=key, compression=None) as socket:
        identifier = json.dumps(channel)
        await socket.send(json.dumps({"command": "subscribe", "identifier": identifier}))
        heard = 0
        async for text in socket:
            told = json.loads(text)
            if told.get("type") == "confirm_subscription":
                ready.release()
            elif told.get("message", 0) and told.get("identifier"):
                # One model call a step, told in order.
                if told["message"]["type"] == "round_result":
                    measured.arrived("cable", number, heard)
                    heard += 1
                if heard == ROUNDS:
                    return
