"""What a worker does with the calls that it is given."""

import asyncio
import contextvars
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from stenograph.errors import InvalidInputError
from stenograph.worker import masking
from stenograph.worker.client import RefusedError, address
from worker.double import doubled, working

pytestmark = pytest.mark.anyio


async def result(folder: Path, tool: str, **facts: Any) -> dict[str, Any]:
    """Return what a worker of a folder settles a call with."""
    async with doubled(folder) as double, working(double):
        double.call(tool, **facts)
        (told,) = await double.settled()
        return told


async def test_an_output_is_given_whole_with_what_the_model_is_told_of_it(tmp_path: Path) -> None:
    told = await result(tmp_path, "bash", command="for n in {1..5000}; do echo $n; done; exit 3")
    assert told["status"] == "failed"
    whole = "[exit status 3]\n" + "".join(f"{n}\n" for n in range(1, 5001))
    assert told["output"] == whole
    assert len(told["preview"]) == 4_000
    assert told["preview"].startswith("[exit status 3]\n1\n2\n")


@pytest.mark.parametrize("workspace", ["project", "./project/", "link", "{root}/project"])
async def test_a_call_works_in_its_sessions_folder(tmp_path: Path, workspace: str) -> None:
    (tmp_path / "root" / "project").mkdir(parents=True)
    (tmp_path / "root" / "link").symlink_to("project")
    path = workspace.format(root=tmp_path / "root")
    told = await result(tmp_path, "bash", command="pwd", workspace_path=path)
    assert told["output"] == f"{tmp_path}/root/project\n"


@pytest.mark.parametrize(
    ("workspace", "says"),
    [
        ("..", "leads out of the root folder"),
        ("project/../..", "leads out of the root folder"),
        ("/etc", "leads out of the root folder"),
        ("away", "leads out of the root folder"),
        ("missing", "There is no folder 'missing' in the root folder"),
        ("file", "'file' in the root folder is no folder"),
    ],
)
async def test_a_folder_that_is_not_in_the_root_fails_the_call_and_not_the_worker(
    tmp_path: Path, workspace: str, says: str
) -> None:
    (tmp_path / "root" / "project").mkdir(parents=True)
    (tmp_path / "root" / "file").touch()
    (tmp_path / "root" / "away").symlink_to("/etc")
    async with doubled(tmp_path) as double, working(double):
        double.call("bash", command="pwd; touch /dev/null", workspace_path=workspace)
        double.call("bash", "c2", command="pwd")
        first, second = sorted(await double.settled(2), key=lambda told: str(told["status"]))
        assert first == {
            "status": "completed",
            "output": f"{double.root}\n",
            "preview": first["preview"],
        }
        assert second["status"] == "failed"
        assert says in second["output"]


async def test_a_root_that_is_gone_fails_its_calls_until_it_is_back(tmp_path: Path) -> None:
    async with doubled(tmp_path) as double, working(double):
        away = tmp_path / "elsewhere"
        double.root.rename(away)
        double.call("bash", command="pwd")
        (told,) = await double.settled()
        assert (told["status"], told["output"]) == ("failed", f"There is no folder {double.root}")
        double.root.symlink_to(away)
        double.call("bash", "c2", command="pwd")
        _, told = await double.settled(2)
        assert told["status"] == "failed"
        assert "another one than when this worker was started" in told["output"]
        double.root.unlink()
        away.rename(double.root)
        double.call("bash", "c3", command="pwd")
        *_, told = await double.settled(3)
        assert told["output"] == f"{double.root}\n"


async def test_a_root_of_somebody_else_is_not_used(tmp_path: Path) -> None:
    told = await result(tmp_path, "bash", command="pwd", root_id="another")
    assert told["status"] == "failed"
    assert "root folder that this worker does not have" in told["output"]


async def test_only_what_the_enrolment_allows_is_done(tmp_path: Path) -> None:
    async with doubled(tmp_path, permissions={"read": True}) as double, working(double):
        double.call("bash", command="touch done")
        double.call("write", "c2", path="done", content="")
        double.call("glob", "c3", pattern="*")
        told = await double.settled(3)
        assert sorted(one["status"] for one in told) == ["completed", "failed", "failed"]
        assert not (double.root / "done").exists()


async def test_a_call_takes_no_longer_than_the_server_says(tmp_path: Path) -> None:
    command = {"command": "sleep 600", "timeout_seconds": 300}
    told = await result(tmp_path, "bash", timeout_ms=50, **command)
    assert told["status"] == "timed_out"


async def test_two_edits_at_once_lose_nothing(tmp_path: Path) -> None:
    async with doubled(tmp_path) as double, working(double, parallel=8):
        (double.root / "file").write_text("".join(f"<{n}>\n" for n in range(8)))
        for n in range(8):
            double.call("edit", f"c{n}", path="file", old_text=f"<{n}>", new_text="x" * 100_000)
        assert {told["status"] for told in await double.settled(8)} == {"completed"}
        assert (double.root / "file").read_text() == ("x" * 100_000 + "\n") * 8


# --- secrets -----------------------------------------------------------------------------------


async def test_a_command_sees_its_environment_and_nothing_of_the_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STENO_TEST_OWN", "the worker's own")
    async with doubled(tmp_path) as double, working(double):
        double.call("bash", command="env", environment={"TOKEN": "s3cret"})
        await double.settled()
        double.call("bash", "c2", command="env")
        first, second = (told["output"] for told in await double.settled(2))
        assert "TOKEN=s3cret\n" in first
        assert "TOKEN" not in second
        assert "STENO_TEST_OWN" not in first + second


async def test_values_of_a_call_are_on_no_disk(tmp_path: Path) -> None:
    async with doubled(tmp_path) as double:
        double.faults["settlement"] += ["hangs"]
        async with working(double, grace=0.1):
            environment = {"TOKEN": "s3cret-value"}
            double.call("bash", command="echo $TOKEN is it", environment=environment)
            (sent,) = await double.until(lambda: double.asked["settlement"])
            assert sent["settlement"]["output"] == "s3cret-value is it\n"
        written = [path.read_text() for path in (tmp_path / "state").rglob("*.json")]
        assert any("[redacted-secret] is it" in text for text in written)
        assert not any("s3cret" in text for text in written)


def test_values_of_a_call_are_in_no_log() -> None:
    def logged() -> dict[str, Any]:
        masking.values.set(("s3cret", "s3cret-value", ""))
        return masking.mask_log_event(None, "", {"exception": "of s3cret-value", "line": 3})

    assert contextvars.copy_context().run(logged) == {
        "exception": "of [redacted-secret]",
        "line": 3,
    }


# --- how much at once --------------------------------------------------------------------------


async def test_no_more_calls_run_at_once_than_it_has_hands(tmp_path: Path) -> None:
    async with doubled(tmp_path) as double, working(double, parallel=2):
        wait = "echo x >> begun; until [ -e go ]; do sleep 0.01; done; wc -l < begun"
        for n in range(3):
            double.call("bash", f"c{n}", command=wait)
        begun = double.root / "begun"
        await double.until(lambda: begun.exists() and begun.read_text() == "x\nx\n")
        assert len(double.queue) == 1
        (double.root / "go").touch()
        told = await double.settled(3)
        assert [one["output"].strip() for one in told][:1] == ["2"]


async def test_a_worker_of_a_queue_keeps_to_its_sessions_until_they_are_released(
    tmp_path: Path,
) -> None:
    async with doubled(tmp_path, machine="builders") as double, working(double, sessions=1):
        await double.until(lambda: double.asked["claims"])
        first = double.asked["claims"][0]["claim"]
        assert (first["sessions"], first["free"]) == ([], 1)
        double.call("glob", pattern="*", session_id="mine")
        await double.settled()
        seen = len(double.asked["claims"])
        await double.until(lambda: len(double.asked["claims"]) > seen)
        later = double.asked["claims"][-1]["claim"]
        assert (later["sessions"], later["free"]) == (["mine"], 0)
        double.released.append("mine")
        await double.until(lambda: double.asked["claims"][-1]["claim"]["free"] == 1)
        assert double.asked["claims"][-1]["claim"]["sessions"] == []


async def test_a_worker_without_a_queue_takes_what_is_addressed_to_it(tmp_path: Path) -> None:
    async with doubled(tmp_path) as double, working(double, sessions=1):
        for n in range(2):
            double.call("glob", f"c{n}", pattern="*", session_id=f"s{n}")
        await double.settled(2)
        assert {sent["claim"]["free"] for sent in double.asked["claims"]} == {1}


# --- stopping ----------------------------------------------------------------------------------


async def test_it_ends_by_itself_when_there_is_no_more_work(tmp_path: Path) -> None:
    async with doubled(tmp_path) as double:
        double.call("bash", command="echo work")
        async with working(double, idle=0.2) as shift:
            await asyncio.wait_for(asyncio.shield(shift.task), 20)
        assert shift.statuses() == ["completed"]


async def test_a_call_that_ends_soon_enough_is_settled_before_a_worker_stops(
    tmp_path: Path,
) -> None:
    async with doubled(tmp_path) as double, working(double) as shift:
        double.call(
            "bash", command="echo x > begun; until [ -e go ]; do sleep 0.01; done; echo end"
        )
        await double.until((double.root / "begun").exists)
        shift.stop.set()
        (double.root / "go").touch()
        await shift.task
        assert [told["output"] for _, told in double.ended] == ["end\n"]


async def test_a_call_that_does_not_end_is_ended_and_its_outcome_said_to_be_uncertain(
    tmp_path: Path,
) -> None:
    async with doubled(tmp_path) as double, working(double, grace=0.5) as shift:
        os.mkfifo(double.root / "alive")
        pipe = os.open(double.root / "alive", os.O_RDONLY | os.O_NONBLOCK)
        double.call("bash", command="exec 3>alive; echo up >&3; sleep 600")
        await double.until(lambda: _some(pipe))
        shift.stop.set()
        await shift.task
        (told,) = [told for _, told in double.ended]
        assert told["status"] == "uncertain"
        assert "ended in the middle of this call of bash" in told["output"]
        os.set_blocking(pipe, True)
        assert os.read(pipe, 100) == b""
        os.close(pipe)


def _some(pipe: int) -> bytes:
    try:
        return os.read(pipe, 100)
    except BlockingIOError:
        return b""


async def test_a_server_that_gives_no_work_at_all_ends_it_with_its_sentence(
    tmp_path: Path,
) -> None:
    async with doubled(tmp_path) as double:
        double.faults["claims"].append(418)
        with pytest.raises(RefusedError, match="fault_418"):
            async with working(double) as shift:
                await shift.task


# --- the room ----------------------------------------------------------------------------------


def test_a_worker_loads_nothing_of_the_record() -> None:
    code = (
        "import sys, stenograph.worker.run;"
        "print([name for name in sys.modules if name.startswith('stenograph.')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    rooms = {name.split(".")[1] for name in eval(done.stdout)}
    assert rooms == {"clock", "engine", "errors", "worker"}


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:8642",
        "ftp://host",
        "http://",
        "http://me:pass@host",
        "http://[",
        "http://h:x",
        "/x",
    ],
)
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(InvalidInputError, match="has to be like http"):
        address(url)


def test_an_address_may_end_in_a_slash() -> None:
    assert address("https://steno.example/") == "https://steno.example"
