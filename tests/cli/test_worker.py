"""`steno worker` and `steno worker ticket`, as a person starts them."""

import asyncio
import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from cli.test_serve import STENO, Server
from stenograph.cli import main
from stenograph.worker.place import fingerprint
from worker.double import Double, doubled

V3 = "/v3/organizations/default"


def steno(*options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*STENO, "worker", *options],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=os.environ | environment,
    )


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    started = Server(tmp_path_factory.mktemp("server") / "data")
    yield started
    started.stop()


@pytest.fixture
def place(server: Server, tmp_path: Path) -> tuple[str, ...]:
    """The options that a newcomer gives: where the server, the folder and the state are."""
    (tmp_path / "root").mkdir()
    root, state = str(tmp_path / "root"), str(tmp_path / "state")
    return ("--url", server.url, "--root", root, "--state", state)


def devices(server: Server) -> list[dict[str, object]]:
    listed: list[dict[str, object]] = server.get(f"{V3}/devices", "api").json()["devices"]
    return listed


def test_the_command_that_a_ticket_comes_with_starts_a_worker(
    server: Server, place: tuple[str, ...], tmp_path: Path
) -> None:
    more = ("--machine", "builders", "--allow", "read,execute", "--name", "Ada")
    made = steno("ticket", *place, *more, STENO_API_KEY=server.keys["api"])
    assert (made.returncode, made.stderr) == (0, "")
    ticket, command = made.stdout.splitlines()
    assert command.startswith(f"STENO_TICKET={ticket} steno worker --url {server.url} --root ")
    # What it takes besides lies in the state folder.
    options = command.partition(" worker ")[2].split()
    before = len(devices(server))
    once = ("--once-idle", "0", "--json")
    for environment in ({"STENO_TICKET": ticket}, {"STENO_TICKET": ticket}):
        done = steno(*options, *once, **environment)
        assert (done.returncode, done.stderr) == (0, "")
        said = json.loads(done.stdout)
        assert said["event"] == "ready"
        assert said["allow"] == ["read", "execute"]
        assert (said["machine"], said["name"]) == ("builders", "Ada")
    *_, device = devices(server)
    assert len(devices(server)) == before + 1
    assert device["id"] == said["device"]
    assert device["roots"][0]["path_fingerprint"] == fingerprint(str(tmp_path / "root"))  # type: ignore[index]


def test_a_ticket_can_be_carried_to_another_machine(
    server: Server, place: tuple[str, ...], tmp_path: Path
) -> None:
    made = steno("ticket", *place, "--json", "--key", server.keys["api"])
    (tmp_path / "ticket.json").write_text(made.stdout)
    elsewhere = (*place[:4], "--state", str(tmp_path / "elsewhere"), "--once-idle", "0")
    done = steno(*elsewhere, "--ticket-file", str(tmp_path / "ticket.json"))
    assert (done.returncode, done.stderr) == (0, "")


def test_a_key_is_enough_and_a_revoked_worker_is_told_with_status_3(
    server: Server, place: tuple[str, ...]
) -> None:
    key = ("--key-file", server.said["keys"])
    once = ("--once-idle", "0.2")
    ids = []
    for _ in range(2):
        done = steno(*place, *key, *once, "--json")
        assert (done.returncode, done.stderr) == (0, "")
        ids.append(json.loads(done.stdout)["device"])
    assert ids[0] == ids[1]
    headers = {"Authorization": f"Bearer {server.keys['api']}"}
    assert httpx.delete(f"{server.url}{V3}/devices/{ids[0]}", headers=headers).status_code == 200
    done = steno(*place, *once, "--quiet")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == (
        "steno: The server does not know this worker any more: its enrolment was revoked\n"
    )
    again = steno(*place, *key, *once, "--json")
    assert again.returncode == 0
    assert json.loads(again.stdout)["device"] != ids[0]


def test_what_cannot_be_is_one_clear_line(tmp_path: Path) -> None:
    done = steno("--root", str(tmp_path), "--state", str(tmp_path / "state"))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("steno: This worker is not enrolled at http://127.0.0.1:8642 for")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--url", "http://127.0.0.1:1"], "Name the folder to work in: --root DIR"),
        (["--root", "{root}", "--allow", "all"], "--allow takes some of read,write,execute"),
        (["--root", "{root}", "--key-file", "{root}/none"], "No such file"),
        (["ticket", "--root", "{root}"], "A ticket is made with an API key"),
        (["ticket", "--root", "{root}", "--key", "k", "--url", "host"], "has to be like http://"),
    ],
)
def test_what_is_missing_is_said(tmp_path: Path, options: list[str], says: str) -> None:
    given = [option.format(root=tmp_path) for option in options]
    done = CliRunner().invoke(main.app, ["worker", *given])
    assert says in str(done.exception)


def test_a_key_that_may_not_make_tickets_is_told_which_scope_it_lacks(
    server: Server, place: tuple[str, ...], tmp_path: Path
) -> None:
    data = Path(server.said["keys"]).parent
    made = subprocess.run(
        [*STENO, "keys", "create", "--plane", "api", "--scopes", "run", "--data", str(data)],
        capture_output=True,
        text=True,
        check=True,
    )
    for key, says in ((made.stdout.strip(), "lacks the scope devices:write"), ("x", "this key")):
        done = steno(*place, STENO_API_KEY=key)
        assert done.returncode == 1
        assert says in done.stderr


# --- at work; what a server would have to be brought to say, a double says -----------------------


async def start(double: Double, *options: str, **environment: str) -> asyncio.subprocess.Process:
    state = str(double.root.parent / "state")
    return await asyncio.create_subprocess_exec(
        *STENO, "worker", "--url", double.url, "--root", str(double.root), "--state", state,
        *options, env=os.environ | environment,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip


async def stop(
    worker: asyncio.subprocess.Process, number: int, *, lines: int = 0
) -> tuple[str, str]:
    """Send a signal once it has said so many lines, and return all; the status has to be 0."""
    assert worker.stdout is not None
    first = [await asyncio.wait_for(worker.stdout.readline(), 30) for _ in range(lines)]
    worker.send_signal(number)
    out, err = await asyncio.wait_for(worker.communicate(), 30)
    assert worker.returncode == 0
    return b"".join([*first, out]).decode(), err.decode()


TICKET = {"STENO_TICKET": "the-ticket", "STENO_VERIFIER": "the-verifier"}


@pytest.mark.skipif(not os.path.exists("/proc/self/environ"), reason="there is no /proc")
def test_no_command_finds_the_workers_secrets_in_proc(tmp_path: Path) -> None:
    async def look() -> str:
        async with doubled(tmp_path) as double:
            options = ("--key", "the-key", "--install-id", "install")
            worker = await start(double, *options, **TICKET, STENO_KEY="the-sealing-key")
            double.call("bash", command="for f in environ cmdline; do cat /proc/$PPID/$f; done")
            (told,) = await double.settled()
            await stop(worker, signal.SIGTERM)
            return str(told["output"])

    shown = asyncio.run(look())
    assert "--install-id" in shown  # it looked where they would have been
    for secret in ("the-ticket", "the-verifier", "the-key", "the-sealing-key"):
        assert secret not in shown


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_person_reads_one_line_a_call(tmp_path: Path, number: int) -> None:
    async def work() -> tuple[str, str]:
        async with doubled(tmp_path, machine="builders") as double:
            worker = await start(double, "--install-id", "install", "--name", "Ada", **TICKET)
            double.call("bash", command="exit 1", session_id="0198-session")
            await double.settled()
            return await stop(worker, number, lines=2)

    out, err = asyncio.run(work())
    ready, call, stopping = out.splitlines()
    assert ready == f"Ada (device), serves builders; {tmp_path}/root: read, write, execute"
    assert re.fullmatch(r"bash   failed + [\d,]+ ms  0198-session", call)
    assert (stopping, err) == ("Stopping; calls that still run: 0", "")


def test_a_machine_reads_lines_of_json(tmp_path: Path) -> None:
    async def work() -> tuple[str, str]:
        async with doubled(tmp_path) as double:
            worker = await start(double, "--install-id", "install", "--json", **TICKET)
            double.faults["claims"].append(503)
            double.call("glob", pattern="*", session_id="s")
            await double.settled()
            return await stop(worker, signal.SIGTERM, lines=4)

    out, _ = asyncio.run(work())
    said = [json.loads(line) for line in out.splitlines()]
    assert [one["event"] for one in said] == ["ready", "away", "back", "call", "stopping"]
    assert said[3].items() >= {"tool": "glob", "session": "s", "status": "completed"}.items()
