"""What goes wrong between a worker and its server: nothing is lost, and nothing is done twice."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from worker.double import Double, doubled, working

pytestmark = pytest.mark.anyio

DONE_ONCE = {"command": "echo done >> log; cat log"}


def marks(double: Double) -> int:
    """How often `DONE_ONCE` was done."""
    log = double.root / "log"
    return len(log.read_text().splitlines()) if log.exists() else 0


@pytest.mark.parametrize(
    "faults",
    [["lost"], ["lost", "lost", 503], [500, 502, 504], [(429, {"Retry-After": "0"})]],
    ids=str,
)
async def test_a_result_is_given_again_until_it_is_acknowledged(
    tmp_path: Path, faults: list[Any]
) -> None:
    async with doubled(tmp_path) as double, working(double) as shift:
        double.faults["settlement"] += faults
        double.call("bash", **DONE_ONCE)
        await double.until(shift.statuses)
        assert shift.statuses() == ["completed"]
        sent = double.asked["settlement"]
        assert len(sent) == len(faults) + 1
        assert all(one == sent[0] for one in sent)
        assert [told["output"] for told in await double.settled()] == ["done\n"]
        assert marks(double) == 1


async def test_a_request_for_work_is_made_again(tmp_path: Path) -> None:
    async with doubled(tmp_path) as double, working(double) as shift:
        double.faults["claims"] += [500, (429, {"Retry-After": "0"}), (503, {})]
        double.call("bash", command="echo here")
        assert (await double.settled())[0]["output"] == "here\n"
        assert [event for event, _ in shift.told][:2] == ["away", "back"]


@pytest.mark.parametrize(("tool", "status"), [("bash", "uncertain"), ("glob", "completed")])
async def test_a_call_whose_claim_was_lost_on_its_way_is_repeated_only_if_it_can_be(
    tmp_path: Path, tool: str, status: str
) -> None:
    arguments = DONE_ONCE if tool == "bash" else {"pattern": "*"}
    async with doubled(tmp_path) as double, working(double):
        double.faults["claims"].append("lost")
        double.call(tool, task_key="t", **arguments)
        await double.until(lambda: not double.queue)
        double.call(tool, "c2", task_key="t", resumed=True, **arguments)
        assert (await double.settled())[0]["status"] == status
        assert double.ended[0][0] == "c2"
        assert marks(double) == 0


async def test_a_result_that_is_too_large_is_cut_and_says_so(tmp_path: Path) -> None:
    async with doubled(tmp_path) as double, working(double):
        double.faults["settlement"] += [413, 413]
        double.call("bash", command="head -c 2000000 /dev/zero | tr '\\0' x")
        (told,) = await double.settled()
        assert told["status"] == "completed"
        assert told["output"].startswith("[2000000 characters in all, of which the server takes ")
        assert 250_000 < len(told["output"]) < 260_000
        assert len(told["preview"]) == 4_000


async def test_a_result_that_the_server_will_not_have_is_a_failure_that_says_why(
    tmp_path: Path,
) -> None:
    async with doubled(tmp_path) as double, working(double):
        double.faults["settlement"].append(422)
        double.call("bash", **DONE_ONCE)
        (told,) = await double.settled()
        assert told["status"] == "failed"
        assert "fault_422" in told["output"]


@pytest.mark.parametrize("how", ["stale", "canceled"])
async def test_a_call_that_nobody_wants_any_more_is_ended_and_not_settled(
    tmp_path: Path, how: str
) -> None:
    async with doubled(tmp_path, lease=0.3) as double, working(double) as shift:
        os.mkfifo(double.root / "alive")
        pipe = os.open(double.root / "alive", os.O_RDONLY | os.O_NONBLOCK)
        double.call("bash", command="exec 3>alive; (sleep 600 & wait) & echo up >&3; sleep 600")
        # The lease is extended for as long as it takes.
        await double.until(lambda: len(double.asked["lease"]) > 1)
        getattr(double, how).add("c1")
        await double.until(shift.statuses)
        assert shift.statuses() == [how]
        # All that it had started has died: nobody holds the pipe open.
        os.set_blocking(pipe, True)
        assert (os.read(pipe, 100), os.read(pipe, 100)) == (b"up\n", b"")
        os.close(pipe)
        assert double.asked["settlement"] == []
        assert not any((tmp_path / "state").rglob("calls/*"))


async def test_a_server_that_is_away_meanwhile_gets_the_result_when_it_is_back(
    tmp_path: Path,
) -> None:
    async with doubled(tmp_path, lease=0.3) as double, working(double) as shift:
        double.call("bash", command="until [ -e go ]; do sleep 0.01; done; echo done | tee -a log")
        await double.until(lambda: len(double.asked["lease"]) > 0)
        await double.stop()
        await double.until(lambda: "away" in dict(shift.told))
        (double.root / "go").touch()
        await double.until(lambda: marks(double))
        await double.start()
        (told,) = await double.settled()
        assert told["output"] == "done\n"
        assert marks(double) == 1
        await double.until(shift.statuses)
        assert shift.statuses() == ["completed"]
        assert "back" in dict(shift.told)


async def test_a_call_that_is_claimed_again_while_it_runs_goes_on_under_the_new_claim(
    tmp_path: Path,
) -> None:
    async with doubled(tmp_path) as double, working(double) as shift:
        wait = "until [ -e go ]; do sleep 0.01; done; echo done | tee -a log"
        double.call("bash", task_key="t", command=wait)
        await double.until(lambda: not double.queue)
        double.stale.add("c1")
        double.call("bash", "c2", task_key="t", resumed=True, command=wait)
        await double.until(lambda: not double.queue)
        (double.root / "go").touch()
        await double.settled()
        await double.until(shift.statuses)
        assert [(claim, told["output"]) for claim, told in double.ended] == [("c2", "done\n")]
        assert marks(double) == 1


async def test_a_result_that_came_too_late_is_given_when_its_call_is_claimed_again(
    tmp_path: Path,
) -> None:
    async with doubled(tmp_path) as double, working(double) as shift:
        double.stale.add("c1")
        double.call("bash", task_key="t", **DONE_ONCE)
        await double.until(shift.statuses)
        assert shift.statuses() == ["stale"]
        double.call("bash", "c2", task_key="t", resumed=True, **DONE_ONCE)
        (told,) = await double.settled()
        assert (told["status"], told["output"], marks(double)) == ("completed", "done\n", 1)


async def test_an_enrolment_whose_answer_was_lost_is_sent_again_as_it_was(tmp_path: Path) -> None:
    async with doubled(tmp_path) as double:
        double.faults["enrollments"] += ["lost", 503]
        async with working(double):
            await double.until(lambda: double.asked["claims"])
        first, *others = double.asked["enrollments"]
        assert others == [first, first]


async def test_a_server_that_does_not_answer_is_hung_up_on_when_the_worker_stops(
    tmp_path: Path,
) -> None:
    async with doubled(tmp_path) as double:
        double.faults["claims"].append("hangs")
        async with working(double, grace=0.1) as shift:
            await double.until(lambda: double.asked["claims"])
            shift.stop.set()
            await asyncio.wait_for(shift.task, 10)
