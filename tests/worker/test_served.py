"""Workers at a real server: what is asked of an agent there is done here."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from people import Org
from stenograph.clock import SECOND
from stenograph.devices import dispatch
from stenograph.engine import start
from stenograph.http.agent_api import executor
from stenograph.settings import Settings
from stenograph.storage.database import Database
from stenograph.storage.sealing import Sealer
from stenograph.worker.config import Config
from stenograph.worker.run import run
from stenograph.worker.wire import Device
from worker.double import PATIENCE, QUICK
from worker.served import Served, prompt, serving
from worker.test_state import STENO

pytestmark = pytest.mark.anyio


@pytest.fixture
async def served(
    database: Database, org: Org, settings: Settings, sealer: Sealer, tmp_path: Path
) -> AsyncIterator[Served]:
    async with serving(database, org, settings, sealer, tmp_path) as up:
        yield up


@asynccontextmanager
async def worker(served: Served, root: Path, **more: Any) -> AsyncIterator[Device]:
    """A worker in this process, enrolled by the owner's key."""
    root.mkdir(exist_ok=True)
    ready: asyncio.Future[Device] = asyncio.get_running_loop().create_future()
    stop = asyncio.Event()
    state = root.parent / "state"
    config = Config(served.url, root, state, key=served.org.keys["api"], pace=QUICK, wait=1, **more)
    task = asyncio.create_task(run(config, stop=stop, ready=ready.set_result))
    await asyncio.wait({task, ready}, return_when=asyncio.FIRST_COMPLETED)
    try:
        yield ready.result() if ready.done() else await task  # type: ignore[misc]
    finally:
        stop.set()
        async with asyncio.timeout(PATIENCE):
            await task


def here(device: Device, **more: Any) -> dict[str, Any]:
    """The target of a session that works on a device."""
    return {"kind": "headless", "device_id": device.id, "root_id": device.roots[0].id} | more


async def test_a_session_works_on_a_workers_root(served: Served, tmp_path: Path) -> None:
    async with worker(served, tmp_path / "root") as device:
        (tmp_path / "root" / "project").mkdir()
        made = served.open(
            prompt(
                [("bash", {"command": "echo hello > file; pwd"})],
                [("read", {"path": "file"}), ("bash", {"command": "exit 3"})],
            ),
            here(device, workspace_path="project"),
        )
        ended = await served.ended(made)
    assert (ended.status, ended.outcome) == ("exit", "success")
    assert served.calls(made) == [
        ("bash", "completed", f"{tmp_path}/root/project\n"),
        ("read", "completed", "1\thello\n"),
        ("bash", "failed", "[exit status 3]\n"),
    ]


async def test_a_cancelled_session_ends_what_its_worker_does(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch, "LEASE", 2 * SECOND)
    monkeypatch.setattr(executor, "_LEASE_SECONDS", 2)
    async with worker(served, tmp_path / "root") as device:
        os.mkfifo(tmp_path / "root" / "alive")
        pipe = os.open(tmp_path / "root" / "alive", os.O_RDONLY | os.O_NONBLOCK)
        command = "exec 3>alive; (sleep 600 & wait) & echo up >&3; sleep 600"
        made = served.open(prompt([("bash", {"command": command})]), here(device))
        await served.until(lambda tx: _some(pipe))
        served.database.write(lambda tx: start.cancel_session(tx, served.org.owner, made))
        os.set_blocking(pipe, True)
        assert await asyncio.to_thread(os.read, pipe, 100) == b""
        os.close(pipe)
    assert [status for _, status, _ in served.calls(made)] == ["canceled"]


def _some(pipe: int) -> bytes:
    try:
        return os.read(pipe, 100)
    except BlockingIOError:
        return b""


async def test_a_worker_that_is_killed_in_a_call_says_when_it_is_back_that_it_does_not_know(
    served: Served, tmp_path: Path
) -> None:
    async with worker(served, tmp_path / "root") as device:
        pass
    options = ("--url", served.url, "--root", str(tmp_path / "root"), "--quiet")
    process = await asyncio.create_subprocess_exec(
        *STENO, "worker", *options, "--state", str(tmp_path / "state")
    )
    begun = tmp_path / "root" / "begun"
    command = "echo x >> count; echo $$ > begun; sleep 600"
    made = served.open(
        prompt([("bash", {"command": command})], [("bash", {"command": "cat count"})]), here(device)
    )
    await served.until(lambda tx: begun.exists() and begun.read_text())
    process.send_signal(signal.SIGKILL)
    await process.wait()
    os.killpg(int(begun.read_text()), signal.SIGKILL)
    async with worker(served, tmp_path / "root") as again:
        ended = await served.ended(made)
    assert again.id == device.id
    assert ended.outcome == "success"
    (first, second) = served.calls(made)
    assert first[1] == "uncertain"
    assert "ended in the middle of this call" in first[2]
    assert second == ("bash", "completed", "x\n")


async def test_sessions_of_a_queue_go_to_a_worker_each(served: Served, tmp_path: Path) -> None:
    roots = [tmp_path / "one", tmp_path / "two"]
    wait = "touch here; until [ -e go ]; do sleep 0.02; done; pwd"
    async with worker(served, roots[0], machine="build"), worker(served, roots[1], machine="build"):
        made = [
            served.open(
                prompt([("bash", {"command": wait})], [("bash", {"command": "pwd"})]),
                {"kind": "machine", "name": "build"},
            )
            for _ in roots
        ]
        # Both are begun though neither has ended: not by the same worker, which takes one.
        await served.until(lambda tx: all((root / "here").exists() for root in roots))
        for root in roots:
            (root / "go").touch()
        for session_id in made:
            assert (await served.ended(session_id)).outcome == "success"
        outputs = {tuple(output for _, _, output in served.calls(one)) for one in made}
        # A session stays with its worker.
        assert outputs == {(f"{root}\n", f"{root}\n") for root in roots}
        # And a worker that has done with one takes another.
        third = served.open(
            prompt([("bash", {"command": "pwd"})]), {"kind": "machine", "name": "build"}
        )
        assert (await served.ended(third)).outcome == "success"
