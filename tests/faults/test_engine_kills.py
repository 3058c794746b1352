"""A server, a worker, or both are killed while an agent works; both come back, and nothing is lost
or done twice.

The moments are those at which a reader sees another event of the session: every commit of the run
is one, and some lie in the middle of what a model says. `STENO_EXHAUSTIVE=1` tries each of them
with each victim; else a few are tried.
"""

import json
import os
import signal
import socket
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import pytest

from cli.test_serve import STENO
from oracles import atif_package, harbor
from stenograph.retention.integrity import check
from stenograph.storage import location

#: Seconds after which something that should have happened is a failed test.
PATIENCE = 60
#: Two calls at once, a child that runs a command too, a script, an attempt that fails, a slow end.
#: Each command leaves a line with its own name, so that the file tells how often it ran.
PROMPT = r"""```dev-scene
[[round]]
think = "I begin."
say = "Two at once."
pause_ms = 15
call = [
  { tool = "bash", arguments = { command = "echo first >> ran; sleep 0.1; echo one" } },
  { tool = "read", arguments = { path = "README.md" } },
]
[[round]]
call = [
  { tool = "spawn", arguments = { label = "helper", prompt = "[dev:call bash {\"command\": \"echo child >> ran; echo two\"}]" } },
  { tool = "script", arguments = { code = "print(bash(command='echo script >> ran; echo three'))" } },
]
[[round]]
say = "Once more, after a failure."
fail = { kind = "overloaded", retry_after = 0.1, times = 1 }
call = [{ tool = "bash", arguments = { command = "echo last >> ran; echo four" } }]
[[round]]
think = "All of it is here."
say = "Done: {results}"
pause_ms = 15
```"""  # noqa: E501
#: A worker that came back says the one, a server that waited in vain the other.
UNCERTAIN = ("begun before", "nobody knows")
COMMANDS = {"first", "child", "script", "last"}
VICTIMS = ("server", "worker", "both")
EXHAUSTIVE = os.environ.get("STENO_EXHAUSTIVE") == "1"
#: Events of one whole run, all in all; a moment behind the last kills nobody.
MOMENTS = 48
SOME = [(victim, 3 + 16 * n + 5 * k) for k, victim in enumerate(VICTIMS) for n in range(3)]
ALL = [(victim, moment) for victim in VICTIMS for moment in range(1, MOMENTS)]


class World:
    """A server on a port that it keeps, and a worker with a folder; both may be killed."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.data, self.root, self.state = folder / "data", folder / "root", folder / "state"
        self.root.mkdir()
        (self.root / "README.md").write_text("# Hello\n")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.options = options
        self.processes: dict[str, subprocess.Popen[str]] = {}
        self.serve()
        self.key = json.loads((self.data / "keys.json").read_text())["api"]
        self.work()
        self.target = self.device()

    def serve(self) -> None:
        self._start(
            "server", "serve", "--port", str(self.port), "--data", str(self.data), "--json",
            *self.options,
        )  # fmt: skip

    def work(self) -> None:
        self._start(
            "worker", "worker", "--url", f"http://127.0.0.1:{self.port}", "--root", str(self.root),
            "--state", str(self.state), "--json", STENO_API_KEY=self.key,
        )  # fmt: skip

    def _start(self, name: str, *words: str, **environment: str) -> None:
        process = subprocess.Popen(
            [*STENO, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=os.environ | environment,
        )
        self.processes[name] = process
        assert process.stdout is not None
        if name == "server":
            assert process.stdout.readline(), "the server did not start"

    def kill(self, victim: str) -> None:
        chosen = ("server", "worker") if victim == "both" else (victim,)
        for name in chosen:
            process = self.processes.pop(name)
            process.send_signal(signal.SIGKILL)
            process.communicate()
        if "server" in chosen:
            self.serve()
        if "worker" in chosen:
            self.work()

    def close(self) -> None:
        # A worker that is told to stop waits for what it was promised, and there is nothing.
        self.processes["worker"].kill()
        self.processes["server"].terminate()
        for process in self.processes.values():
            process.communicate(timeout=PATIENCE)

    def ask(self, path: str, body: dict[str, Any] | None = None) -> Any:
        url = f"http://127.0.0.1:{self.port}/v3/organizations/default{path}"
        headers = {"Authorization": f"Bearer {self.key}"}
        method = "GET" if body is None else "POST"
        answer = httpx.request(method, url, headers=headers, json=body, timeout=PATIENCE)
        assert answer.is_success, answer.text
        return answer.json()

    def device(self) -> dict[str, Any]:
        until = time.monotonic() + PATIENCE
        while not (found := self.ask("/devices")["devices"]):
            assert time.monotonic() < until
            time.sleep(0.05)
        (one,) = found
        return {"kind": "headless", "device_id": one["id"], "root_id": one["roots"][0]["id"]}

    def run(self, victim: str, moment: int) -> tuple[str, list[Any], list[Any]]:
        """Run a session, and kill when its events have come that far; returns its id, and the
        events and feed items that a reader who asked all along was given."""
        asked = {"prompt": PROMPT, "target": self.target, "model": "dev/thinker"}
        session_id = str(self.ask("/sessions", asked)["session_id"])
        events: list[Any] = []
        items: list[Any] = []
        killed, last, cursor = False, -1, None
        until = time.monotonic() + PATIENCE
        while True:
            assert time.monotonic() < until, (events[-3:], items)
            path = f"/sessions/{session_id}/events?after_seq={last}&wait_ms=500&limit=3"
            page = self.ask(path)
            events += page["items"]
            last = page["next_seq"]
            after = "" if cursor is None else f"&after={cursor}"
            feed = self.ask(f"/sessions/{session_id}/conversation?first=1{after}")
            items += feed["items"]
            cursor = feed["end_cursor"]
            if not killed and last >= moment:
                killed = True
                self.kill(victim)
            if page["session"]["status"] != "running" and not page["items"] and not feed["items"]:
                return session_id, events, items


def verify(world: World, session_id: str, events: list[Any], items: list[Any]) -> None:
    """Check what was promised of a session that was killed in the middle."""
    session = world.ask(f"/sessions/{session_id}")
    assert session["status"] == "exit", session
    # One answer; whoever followed the feed and the events was given each once and in order.
    assert [item["kind"] for item in items if item["role"] == "assistant"] == ["reply"]
    assert len({item["id"] for item in items}) == len(items)
    assert [event["seq"] for event in events] == sorted({event["seq"] for event in events})
    document = world.ask(f"/sessions/{session_id}/trajectory")
    assert harbor.validate(document) == []
    assert atif_package.validate(document) == []
    calls = _calls(document)
    ran = Counter((world.root / "ran").read_text().split())
    for name in COMMANDS:
        # What is on record as done was done once; what nobody saw the end of, at most once.
        is_uncertain = any(words in calls[name] for words in UNCERTAIN)
        assert ran[name] in ((0, 1) if is_uncertain else (1,)), (ran, calls)
    totals = document["final_metrics"]["extra"]["session_totals"]
    own = [step["metrics"] for step in document["steps"] if step.get("metrics")]
    assert sum(one.get("prompt_tokens") or 0 for one in own) == totals["total_prompt_tokens"]
    assert (
        sum(one.get("completion_tokens") or 0 for one in own) == totals["total_completion_tokens"]
    )


def _calls(document: Any) -> dict[str, str]:
    """What came of each command, by its name, subagents included."""
    found: dict[str, str] = {}
    for step in document["steps"]:
        results = (step.get("observation") or {}).get("results", [])
        outputs = {it.get("source_call_id"): str(it.get("content")) for it in results}
        for call in step.get("tool_calls") or ():
            command = call["arguments"].get("command", "")
            if call["function_name"] == "bash" and command.startswith("echo "):
                found[command.split()[1]] = outputs.get(call["tool_call_id"], "")
    for child in document.get("subagent_trajectories") or ():
        found |= _calls(child)
    return found


def settled_account(world: World) -> None:
    """Every model call that was begun is accounted for, and the record is whole."""
    database = location.connect(location.locate(world.data, _database(world)))
    try:
        assert check(database) == []
        with database.read() as tx:
            lost = tx.rows(
                "SELECT i.id, i.status FROM invocations i"
                " LEFT JOIN usage_receipts u ON u.invocation_id = i.id"
                " WHERE u.id IS NULL AND coalesce(i.llm_call_count, 1) <> 0"
            )
            assert lost == []
            assert tx.value("SELECT count(*) FROM dispatches WHERE settled_at IS NULL") == 0
    finally:
        database.close()


def _database(world: World) -> str | None:
    return world.options[1] if world.options else None


@pytest.mark.parametrize(("victim", "moment"), ALL if EXHAUSTIVE else SOME)
def test_killed_at_any_moment(tmp_path: Path, victim: str, moment: int) -> None:
    world = World(tmp_path)
    try:
        verify(world, *world.run(victim, moment))
    finally:
        world.close()
    settled_account(world)


@pytest.mark.parametrize(("victim", "moment"), [("server", 9), ("both", 21)])
def test_killed_on_postgres(tmp_path: Path, empty_postgres: Any, victim: str, moment: int) -> None:
    world = World(tmp_path, "--database", empty_postgres().url)
    try:
        verify(world, *world.run(victim, moment))
    finally:
        world.close()
    settled_account(world)
