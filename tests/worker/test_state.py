"""What a worker keeps between starts, and what it says after it was killed."""

import asyncio
import json
import os
import signal
import stat
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from stenograph.errors import ConflictError, StenographError
from stenograph.worker import journal
from stenograph.worker.config import Ticket
from stenograph.worker.enrolment import NotEnrolledError, RevokedError, challenge
from stenograph.worker.journal import Entry
from stenograph.worker.place import fingerprint
from stenograph.worker.wire import Settlement
from worker.double import PATIENCE, SECRET, Double, doubled, working

pytestmark = pytest.mark.anyio

STENO = (sys.executable, "-c", "from stenograph.app import main; main()")


def test_a_challenge_is_the_one_of_rfc_7636() -> None:
    # Its appendix B.
    verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
    assert challenge(verifier) == "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"


def test_a_root_is_known_by_the_sha256_of_its_path() -> None:
    # `printf /home/me/project | sha256sum`
    digest = "225df3094012a213addf6b7d1c3b643daff302a33347426db49b5872e519e971"
    assert fingerprint("/home/me/project") == digest


def enrolled(double: Double) -> Path:
    (file,) = (double.root.parent / "state").rglob("enrolment.json")
    return file


async def test_an_enrolment_is_kept_for_its_owner_alone_and_used_again(tmp_path: Path) -> None:
    async with doubled(tmp_path) as double:
        for ticket in (Ticket("ticket", "verifier", "install"), None, Ticket("ticket")):
            seen = len(double.asked["claims"])
            async with working(double, ticket=ticket):
                await double.until(lambda seen=seen: len(double.asked["claims"]) > seen)
        (sent,) = double.asked["enrollments"]
        assert sent["enrollment"] == {
            "ticket": "ticket",
            "code_verifier": "verifier",
            "install_id": "install",
            "version": "1",
            "roots": [{"path_fingerprint": fingerprint(str(double.root))}],
        }
        kept = enrolled(double)
        assert json.loads(kept.read_text())["secret"] == SECRET
        for path in (kept.parent, *kept.parent.rglob("*")):
            assert not path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO), path


async def test_another_ticket_enrols_anew_and_an_ephemeral_worker_keeps_no_secret(
    tmp_path: Path,
) -> None:
    async with doubled(tmp_path) as double:
        for word in ("first", "ephemeral"):
            seen = len(double.asked["claims"])
            async with working(double, ticket=Ticket(word, "verifier", "install")):
                await double.until(lambda seen=seen: len(double.asked["claims"]) > seen)
        assert len(double.asked["enrollments"]) == 2
        assert json.loads(enrolled(double).read_text())["secret"] is None
        with pytest.raises(NotEnrolledError, match="give it a --ticket, or a --key"):
            async with working(double, ticket=None) as shift:
                await shift.task


async def test_a_ticket_of_elsewhere_wants_its_verifier(tmp_path: Path) -> None:
    async with doubled(tmp_path) as double:
        with pytest.raises(NotEnrolledError, match="--verifier"):
            async with working(double, ticket=Ticket("ticket")) as shift:
                await shift.task


async def test_a_revoked_worker_says_so_and_keeps_it_in_mind(tmp_path: Path) -> None:
    async with doubled(tmp_path) as double:
        double.faults["claims"].append(401)
        with pytest.raises(RevokedError, match="its enrolment was revoked"):
            async with working(double) as shift:
                await shift.task
        assert json.loads(enrolled(double).read_text())["revoked"] is True


async def test_two_workers_do_not_share_what_they_keep(tmp_path: Path) -> None:
    async with doubled(tmp_path) as double, working(double):
        await double.until(lambda: double.asked["claims"])
        with pytest.raises(ConflictError, match="is running already"):
            async with working(double) as second:
                await second.task
        async with working(double, state=tmp_path / "other"):
            await double.until(lambda: len(double.asked["enrollments"]) == 2)


async def test_a_damaged_enrolment_is_named(tmp_path: Path) -> None:
    async with doubled(tmp_path) as double:
        async with working(double):
            await double.until(lambda: double.asked["claims"])
        enrolled(double).write_text("{")
        with pytest.raises(StenographError, match=r"enrolment\.json is damaged"):
            async with working(double) as shift:
                await shift.task


# --- kill -9 -----------------------------------------------------------------------------------


@asynccontextmanager
async def process(double: Double) -> AsyncIterator[asyncio.subprocess.Process]:
    """A worker in a process of its own; it is killed in the end."""
    options = ("--url", double.url, "--root", str(double.root), "--quiet")
    worker = await asyncio.create_subprocess_exec(
        *STENO, "worker", *options, "--state", str(double.root.parent / "state"),
        "--ticket", "ticket", "--verifier", "verifier", "--install-id", "install",
    )  # fmt: skip
    try:
        yield worker
    finally:
        if worker.returncode is None:
            worker.send_signal(signal.SIGKILL)
        await asyncio.wait_for(worker.wait(), PATIENCE)


async def test_a_worker_that_was_killed_is_uncertain_of_what_it_had_begun(tmp_path: Path) -> None:
    async with doubled(tmp_path) as double:
        async with process(double):
            double.call("bash", command="echo $$ > begun; sleep 600")
            begun = double.root / "begun"
            await double.until(lambda: begun.exists() and begun.read_text())
        os.killpg(int(begun.read_text()), signal.SIGKILL)
        async with working(double):
            (told,) = await double.settled()
        assert double.ended[0][0] == "c1"
        assert told["status"] == "uncertain"
        assert "ended in the middle of this call of bash" in told["output"]
        assert not any(enrolled(double).parent.joinpath("calls").iterdir())


async def test_a_worker_that_was_killed_before_its_result_was_acknowledged_gives_it_again(
    tmp_path: Path,
) -> None:
    async with doubled(tmp_path) as double:
        double.faults["settlement"].append("hangs")
        async with process(double):
            double.call(
                "bash", command="echo done >> log; echo s3cret", environment={"T": "s3cret"}
            )
            await double.until(lambda: double.asked["settlement"])
        async with working(double):
            (told,) = await double.settled()
        # As it lay on the disk.
        assert told == {
            "status": "completed",
            "output": "[redacted-secret]\n",
            "preview": "[redacted-secret]\n",
        }
        assert (double.root / "log").read_text() == "done\n"


def test_a_journal_drops_what_is_broken_or_old_and_bounds_what_nobody_takes(tmp_path: Path) -> None:
    folder = tmp_path / "calls"
    kept = journal.load(folder)
    told = Settlement("completed", "output")
    for n in range(40):
        kept.keep(Entry(f"t{n}", "c", "s", "bash", journal.clock.now(), told), str)
    kept.tidy(but="t0")
    assert set(kept.entries) == {"t0", *(f"t{n}" for n in range(8, 40))}
    kept.keep(Entry("old", "c", "s", "bash", 0, told), str)
    (folder / "broken.json").write_bytes(msgspec.json.encode(told)[:-3])
    (folder / ".half").write_bytes(b"{}")
    again = journal.load(folder)
    assert again.entries == {task: e for task, e in kept.entries.items() if task != "old"}
    assert len(list(folder.iterdir())) == 33
