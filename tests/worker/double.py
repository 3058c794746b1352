"""A server that fails on purpose: it speaks the wire of workers, and nothing else is behind it.

For faults of the wire only. What a real server does is tested with a real one (`test_served.py`).
"""

import asyncio
import json
import re
import socket
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stenograph.http.listener import Listener
from stenograph.worker.config import Config, Pace, Ticket
from stenograph.worker.run import run

#: Seconds after which what should have happened is a failed test.
PATIENCE = 20
#: Attempts follow each other quickly here.
QUICK = Pace(0.01, 0.05)
SECRET = "sk-executor-double"


@dataclass
class Double:
    """`faults` by kind of request (`enrollments`, `claims`, `lease`, `settlement`), used up one by
    one: a status; a status with headers; `lost` (done, and the answer cut off); `hangs`.
    `asked`: every body by kind; `ended`: (claim, settlement) of each that was accepted."""

    root: Path
    machine: str | None = None
    lease: float = 30.0
    permissions: dict[str, bool] = field(
        default_factory=lambda: {"read": True, "write": True, "execute": True}
    )
    faults: dict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    asked: dict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    ended: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    canceled: set[str] = field(default_factory=set)
    stale: set[str] = field(default_factory=set)
    released: list[str] = field(default_factory=list)
    queue: list[dict[str, Any]] = field(default_factory=list)
    port: int = 0
    _listener: Listener | None = None
    _serving: "asyncio.Task[None] | None" = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def call(self, tool: str, claim_id: str = "c1", **facts: Any) -> None:
        """Offer a call; facts of the claim by name, the rest is the tool's arguments."""
        claim = {
            "claim_id": claim_id,
            "lease_seconds": self.lease,
            "run_public_id": "run",
            "task_key": facts.pop("task_key", claim_id),
            "session_id": facts.pop("session_id", "session"),
            "root_id": facts.pop("root_id", "root"),
            "workspace_path": facts.pop("workspace_path", None),
            "environment": facts.pop("environment", {}),
            "timeout_ms": facts.pop("timeout_ms", None),
            "resumed": facts.pop("resumed", False),
        }
        self.queue.append(claim | {"tool": {"name": tool, "arguments": facts}})

    async def until(self, look: Callable[[], Any]) -> Any:
        """Wait until a look finds something, and return it."""
        async with asyncio.timeout(PATIENCE):
            while not (found := look()):
                await asyncio.sleep(0.005)
            return found

    async def settled(self, count: int = 1) -> list[dict[str, Any]]:
        """Wait for that many settlements, and return them."""
        await self.until(lambda: len(self.ended) >= count)
        return [settlement for _, settlement in self.ended]

    # --- serving -----------------------------------------------------------------------------

    async def start(self) -> None:
        listening = socket.create_server(("127.0.0.1", self.port))
        self.port = listening.getsockname()[1]
        up = asyncio.Event()
        self._listener = Listener(self, 1, up.set)
        self._serving = asyncio.create_task(self._listener.serve([listening]))
        await up.wait()

    async def stop(self) -> None:
        assert self._listener is not None
        assert self._serving is not None
        self._listener.force_exit = True
        self._listener.stop()
        await self._serving

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        sent = json.loads(body) if body else {}
        match = re.search(r"/executor/(\w+)(?:/([\w-]+)/(\w+))?$", scope["path"])
        assert match is not None
        kind = match[3] or match[1]
        authorized = dict(scope["headers"]).get(b"authorization") == f"Bearer {SECRET}".encode()
        self.asked[kind].append(sent)
        fault = self.faults[kind].pop(0) if self.faults[kind] else None
        headers: list[tuple[bytes, bytes]] = []
        if isinstance(fault, tuple):
            fault, more = fault
            headers = [(name.encode(), value.encode()) for name, value in more.items()]
        if fault == "hangs":
            await receive()
            return
        if isinstance(fault, int):
            status, answer = fault, _error(f"fault_{fault}")
        elif kind != "enrollments" and not authorized:
            status, answer = 401, _error("unauthorized")
        else:
            status, answer = await getattr(self, f"_{kind}")(sent, match[2])
        data = json.dumps(answer).encode()
        length = len(data) + (1 if fault == "lost" else 0)
        headers += [(b"content-type", b"application/json"), (b"content-length", b"%d" % length)]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": data})

    async def _enrollments(self, sent: Any, _: Any) -> tuple[int, Any]:
        place = {
            "id": "root",
            "path_fingerprint": sent["enrollment"]["roots"][0]["path_fingerprint"],
            "permissions": self.permissions,
            "execution_mode": "host",
        }
        device = {
            "id": "device",
            "organization_id": "organization",
            "name": sent["enrollment"].get("name", "worker"),
            "lifecycle": "ephemeral"
            if "ephemeral" in sent["enrollment"]["ticket"]
            else "persistent",
            "machine": self.machine,
            "roots": [place],
        }
        return 201, {"device": device, "secret": SECRET}

    async def _claims(self, sent: Any, _: Any) -> tuple[int, Any]:
        with suppress(TimeoutError):
            async with asyncio.timeout(min(sent["claim"]["wait_ms"] / 1000, 0.05)):
                while not self.queue and not self.released:
                    await asyncio.sleep(0.005)
        released, self.released = self.released, []
        claim = self.queue.pop(0) if self.queue else None
        return 200, {"claim": claim, "released": released}

    async def _lease(self, _: Any, claim_id: str) -> tuple[int, Any]:
        if claim_id in self.stale:
            return 409, _error("stale_claim")
        canceled = claim_id in self.canceled
        lease = {"expires_at": "2027-01-01T00:00:00Z", "lease_seconds": self.lease}
        return 200, {"lease": lease | {"canceled": canceled}}

    async def _settlement(self, sent: Any, claim_id: str) -> tuple[int, Any]:
        if claim_id in self.stale:
            return 409, _error("stale_claim")
        told = sent["settlement"]
        if (claim_id, told) not in self.ended:
            if claim_id in dict(self.ended):
                return 409, _error("stale_claim")
            self.ended.append((claim_id, told))
        return 200, {"settlement": {"status": told["status"], "canceled": False}}


def _error(code: str) -> dict[str, Any]:
    return {"error": {"code": code, "message": f"It is {code}"}}


@dataclass
class Shift:
    """A worker at work for a double; `told`: what it said of itself."""

    told: list[tuple[str, dict[str, Any]]]
    task: "asyncio.Task[None]"
    stop: asyncio.Event

    def statuses(self) -> list[str]:
        return [facts["status"] for event, facts in self.told if event == "call"]


def config(double: Double, **more: Any) -> Config:
    ticket = Ticket("ticket", "verifier", "install")
    facts = {"state": double.root.parent / "state", "ticket": ticket, "pace": QUICK} | more
    return Config(double.url, double.root, **facts)


@asynccontextmanager
async def working(double: Double, **more: Any) -> AsyncIterator[Shift]:
    """A worker in this process that has enrolled, or failed; it is stopped in the end, and what it
    raised is raised."""
    told: list[tuple[str, dict[str, Any]]] = []
    stop, up = asyncio.Event(), asyncio.Event()
    coroutine = run(
        config(double, **more),
        stop=stop,
        ready=lambda device: up.set(),
        tell=lambda event, **facts: told.append((event, facts)),
    )
    shift = Shift(told, asyncio.create_task(coroutine), stop)
    shift.task.add_done_callback(lambda task: up.set())
    await up.wait()
    try:
        yield shift
    finally:
        stop.set()
        async with asyncio.timeout(PATIENCE):
            await shift.task


@asynccontextmanager
async def doubled(folder: Path, **facts: Any) -> AsyncIterator[Double]:
    """A double that is up, and its root `folder / "root"`."""
    (folder / "root").mkdir(exist_ok=True)
    double = Double(folder / "root", **facts)
    await double.start()
    try:
        yield double
    finally:
        await double.stop()
