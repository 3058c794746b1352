"""The whole server on a loopback socket, and clients that follow what it tells."""

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from serving import Api
from stenograph import app as process
from stenograph.events import journal, live, waiting
from stenograph.events.journal import Event
from stenograph.events.live import Frame
from stenograph.http.listener import Listener

#: Seconds after which what should have come is a failed test.
PATIENCE = 20


def until(look: Callable[[], Any]) -> Any:
    """Wait until something is so, and return it."""
    end = time.monotonic() + PATIENCE
    while not (found := look()):
        assert time.monotonic() < end, "it never came"
        time.sleep(0.01)
    return found


@dataclass(frozen=True)
class Told:
    """One server-sent event."""

    type: str
    data: Any
    id: str | None


@dataclass
class Server:
    """A server that listens; `api` is what it serves."""

    api: Api
    port: int
    listener: Listener
    thread: threading.Thread
    loop: asyncio.AbstractEventLoop

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def headers(self, key: str) -> dict[str, str]:
        secret = self.api.org.keys.get(key, key)
        return {"Authorization": f"Bearer {secret}"} if secret else {}

    @contextmanager
    def stream(self, path: str, key: str = "member", **headers: str) -> Iterator["Stream"]:
        """Follow a path until the block ends or the server does."""
        timeout = httpx.Timeout(PATIENCE)
        with (
            httpx.Client(base_url=self.url, timeout=timeout) as client,
            client.stream("GET", path, headers=self.headers(key) | headers) as answer,
        ):
            yield Stream(answer)

    def running(self) -> int:
        """How many tasks there are besides the listener's own."""

        async def count() -> int:
            return len(asyncio.all_tasks()) - 2

        return asyncio.run_coroutine_threadsafe(count(), self.loop).result(PATIENCE)

    def is_idle(self) -> bool:
        """Whether nothing is left of those who followed."""
        return not (waiting._listening or live._subscriptions or self.running())


class Stream:
    """What comes over one stream."""

    def __init__(self, answer: httpx.Response) -> None:
        self.answer = answer
        self.comments = 0
        self._lines = answer.iter_lines() if answer.status_code == 200 else iter(())

    def __iter__(self) -> "Stream":
        return self

    def __next__(self) -> Told:
        fields: dict[str, str] = {}
        for line in self._lines:
            if line.startswith(":"):
                self.comments += 1
            elif line:
                name, _, value = line.partition(": ")
                fields[name] = value
            elif "data" in fields:
                return Told(fields["event"], json.loads(fields["data"]), fields.get("id"))
            else:
                fields = {}
        raise StopIteration

    def take(self, count: int) -> list[Told]:
        return [next(self) for _ in range(count)]


@contextmanager
def listening(api: Api, patience: int = 5) -> Iterator[Server]:
    """Serve an application's routes on a free port."""
    place = process._listen("127.0.0.1", 0)
    port = place.getsockname()[1]
    ready = threading.Event()
    loops: list[asyncio.AbstractEventLoop] = []
    listener = Listener(api.app, patience, ready.set)

    async def serve() -> None:
        loops.append(asyncio.get_running_loop())
        await listener.serve([place])

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert ready.wait(PATIENCE)
    try:
        yield Server(api, port, listener, thread, loops[0])
    finally:
        listener.stop()
        thread.join(PATIENCE)
        assert not thread.is_alive()


@dataclass(frozen=True)
class Followed:
    """A conversation that something happens in: row id, where it is, its newest candidate."""

    api: Api
    id: int
    workspace: str
    public_id: str

    @property
    def path(self) -> str:
        return f"{self.api.agent}/workspaces/{self.workspace}/conversations/{self.public_id}"

    def append(self, *events: Event) -> int:
        return self.api.database.write(lambda tx: journal.append(tx, self.id, *events))

    def happen(self, count: int = 1) -> int:
        """Let something happen, count times in one transaction."""
        return self.append(*(Event("usage", payload={"cost_usd": 0.0}),) * count)

    def tell(self, turn: Any, text: str = "x", topic: live.Topic = "transcript") -> None:
        data = {"turn_public_id": "t", "task_key": "r1", "text": text}
        live.publish(self.id, Frame(topic, "text_delta", data, turn.id, turn.variant_id))


def conversation(api: Api, row_id: int) -> Followed:
    with api.database.read() as tx:
        workspace, public_id = tx.row(
            "SELECT w.public_id, c.public_id FROM conversations c"
            " JOIN workspaces w ON w.id = c.workspace_id WHERE c.id = :id",
            id=row_id,
        ) or ("", "")
    return Followed(api, row_id, workspace, public_id)
