"""What a command writes is told while it runs; that costs the call nothing, come what may."""

import asyncio
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import httpx
import msgspec
import pytest

from stenograph.client import AsyncClient
from stenograph.client.records import Frame
from stenograph.settings import Settings
from stenograph.worker import progress
from stenograph.worker.client import AwayError
from worker.served import Served, prompt
from worker.test_served import here, served, worker  # noqa: F401 - a fixture

pytestmark = pytest.mark.anyio


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Of a server whose streams stay open."""
    return replace(settings, stream_seconds=3_600)


async def test_a_watcher_reads_what_a_command_writes_before_it_ends(
    served: Served,  # noqa: F811
    tmp_path: Path,
) -> None:
    go = tmp_path / "go"
    command = f"echo first; while [ ! -e {go} ]; do echo tick; sleep 0.05; done; echo last"
    headers = {"Authorization": f"Bearer {served.org.keys['api']}"}
    async with worker(served, tmp_path / "root") as device, httpx.AsyncClient() as http:
        made = served.open(prompt([("bash", {"command": command})]), here(device))
        url = f"{served.url}/v3/organizations/default/sessions/{made}/events/stream"
        asking = http.stream("GET", url, params={"transcript": "1"}, headers=headers, timeout=30)
        async with asking as answer:
            async for line in answer.aiter_lines():
                if line.startswith("data: ") and "tool_output" in line:
                    break
        frame = await seen_by_a_member(served, made)
        go.touch()
        told = msgspec.json.decode(line.removeprefix("data: "))
        await served.ended(made)
    assert (told["type"], frame.type) == ("tool_output", "tool_output")
    assert told["data"]["text"].startswith("first\n")
    assert frame.text.startswith("first\n")
    assert (frame.data["name"], frame.data["task_key"]) == ("bash", told["data"]["task_key"])
    tool, status, output = served.calls(made)[0]
    assert (tool, status) == ("bash", "completed")
    assert output.endswith("tick\nlast\n")


async def seen_by_a_member(served: Served, session_id: str) -> Frame:  # noqa: F811
    """The first frame of a call's output that the client gives."""
    workspace = served.read(
        lambda tx: tx.value(
            "SELECT w.public_id FROM workspaces w JOIN conversations c ON c.workspace_id = w.id"
            " WHERE c.public_id = :id",
            id=session_id,
        )
    )
    async with AsyncClient(served.url, served.org.keys["member"]) as client:
        talk = client.workspace(str(workspace)).conversation(session_id)
        async with aclosing(aiter(talk.progress())) as frames:
            async for frame in frames:
                if frame.type == "tool_output":
                    return frame
    raise AssertionError


class Line:
    """A client whose reports go wrong as they are told to."""

    def __init__(self, *errors: Exception, unwatched: int = 0) -> None:
        self.errors = list(errors)
        self.unwatched = unwatched
        self.told: list[tuple[str, int]] = []

    async def report(self, claim_id: str, text: str, characters: int) -> bool:
        if self.errors:
            raise self.errors.pop(0)
        self.told.append((text, characters))
        return len(self.told) > self.unwatched


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_FIRST", "_WATCHED", "_UNWATCHED"):
        monkeypatch.setattr(progress, name, 0.01)


async def until(line: Line, count: int) -> None:
    async with asyncio.timeout(10):
        while len(line.told) < count:
            await asyncio.sleep(0.005)


@pytest.mark.usefixtures("quick")
async def test_the_end_is_told_in_whole_characters_and_what_got_lost_with_the_next() -> None:
    line = Line(AwayError("away"))
    async with progress.reported(line, lambda: "c") as watch:  # type: ignore[arg-type]
        watch("é🙂".encode()[:3])
        async with asyncio.timeout(10):
            while line.errors:
                await asyncio.sleep(0.005)
        watch("é🙂".encode()[3:] + b"x" * progress.WINDOW)
        await until(line, 1)
        assert line.told[-1] == ("x" * progress.WINDOW, progress.WINDOW + 2)
        watch(b"\0end")
        await until(line, 2)
    assert line.told[-1][0].endswith("end")
    assert "\0" not in line.told[-1][0]


@pytest.mark.usefixtures("quick")
async def test_what_nobody_saw_is_told_again_until_somebody_has() -> None:
    line = Line(unwatched=2)
    async with progress.reported(line, lambda: "c") as watch:  # type: ignore[arg-type]
        watch(b"first")
        await until(line, 3)
        watch(b", second")
        await until(line, 4)
    assert line.told == [("first", 5)] * 3 + [("first, second", 13)]


@pytest.mark.usefixtures("quick")
async def test_nothing_is_told_where_nothing_is_written_and_nothing_afterwards() -> None:
    line = Line()
    async with progress.reported(line, lambda: "c") as watch:  # type: ignore[arg-type]
        await asyncio.sleep(0.05)
        assert line.told == []
    watch(b"late")
    await asyncio.sleep(0.05)
    assert line.told == []
