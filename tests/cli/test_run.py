"""`steno run` and `steno chat`: an agent at work in a folder, over a server of their own."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from cli.test_serve import STENO, Server

#: Seconds after which a command that should have ended is a failed test.
PATIENCE = 60


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "folder"
    made.mkdir()
    (made / "README.md").write_text("# Hello\n")
    (made / "LICENSE").write_text("MIT\n")
    return made


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where the data folder lies that a server serves already: to run there takes half the time."""
    made = tmp_path_factory.mktemp("home")
    server = Server(made / "data")
    yield made
    assert server.stop()[0] == 0


def steno(tmp_path: Path, *words: str, said: str = "", **environment: str):
    return subprocess.run(
        [*STENO, *words, "--data", str(tmp_path / "data")],
        input=said,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env=os.environ | environment,
    )


def went_well(done: subprocess.CompletedProcess) -> None:
    assert (done.returncode, done.stderr) == (0, "")


def exported(tmp_path: Path, session_id: str) -> dict:
    done = steno(tmp_path, "export", session_id)
    went_well(done)
    return json.loads(done.stdout)


def told(done: subprocess.CompletedProcess) -> list[dict]:
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_what_it_thinks_calls_and_says_is_shown_and_recorded(tmp_path, folder):
    done = steno(tmp_path, "run", "[dev:files]", "--root", str(folder))
    went_well(done)
    lines = done.stdout.splitlines()
    assert lines[0] == "I need both files, and neither depends on the other."
    assert lines.count('→ read {"path":"README.md"}') == 1
    assert lines.count("✓ read") == 2
    assert any(line.startswith("They say: ") for line in lines)
    assert lines[-2].startswith("success · ")
    document = exported(tmp_path, lines[-1].removeprefix("session "))
    assert [step["source"] for step in document["steps"]] == ["user", "agent", "agent"]
    results = document["steps"][1]["observation"]["results"]
    assert [result["content"] for result in results] == ["1\t# Hello\n", "1\tMIT\n"]
    offered = [tool["function"]["name"] for tool in document["agent"]["tool_definitions"]]
    assert {"bash", "read", "write", "edit", "glob", "grep", "spawn", "script"} <= set(offered)
    # Nothing of the command is left: no key that works, no worker that waits.
    keys = json.loads(steno(tmp_path, "keys", "list", "--json").stdout)["keys"]
    own = [key for key in keys if key["name"] == "steno run"]
    assert own
    assert all(key["revoked_at"] for key in own)


@pytest.mark.parametrize(
    ("prompt", "options", "status", "outcome"),
    [
        ('[dev:call finish {"outcome": "failure", "summary": "no"}]', [], 1, "failure"),
        ('[dev:call finish {"outcome": "action_required", "summary": "?"}]', [], 2,
         "action_required"),
        ("[dev:refuse]", [], 1, "failure"),
        ("hello", ["--max-steps", "0"], 1, "failure"),
    ],
)  # fmt: skip
def test_the_exit_status_is_the_outcome(home, prompt, options, status, outcome):
    done = steno(home, "run", prompt, "--json", *options)
    assert (done.returncode, done.stderr) == (status, "")
    *events, last = told(done)
    assert last["session"]["outcome"] == outcome
    assert [event["seq"] for event in events] == sorted({event["seq"] for event in events})


def test_a_secret_is_in_the_environment_of_commands_and_nowhere_else(home, folder):
    value = "swordfish-and-chips"
    steno(home, "secrets", "set", "PASSWORD", said=value)
    prompt = """```dev-scene
[[round]]
call = [{ tool = "bash", arguments = { command = "echo $PASSWORD | wc -c; echo $PASSWORD" } }]
[[round]]
say = "{results}"
```"""
    done = steno(home, "run", "-", "--root", str(folder), "--secret", "PASSWORD", said=prompt)
    went_well(done)
    assert str(len(value) + 1) in done.stdout
    assert "[redacted-secret]" in done.stdout
    document = json.dumps(exported(home, done.stdout.splitlines()[-1].split()[-1]))
    assert value not in done.stdout + done.stderr + document


def test_a_call_that_nobody_is_there_to_allow_is_denied(home, folder):
    done = steno(home, "run", "[dev:call write {\"path\": \"x\", \"content\": \"y\"}]",
                 "--root", str(folder), "--ask")  # fmt: skip
    went_well(done)
    assert "Nobody is there to ask" in done.stdout
    assert not (folder / "x").exists()


def test_a_call_that_is_allowed_is_made(home, folder):
    done = steno(home, "run", "[dev:call write {\"path\": \"x\", \"content\": \"y\"}]",
                 "--root", str(folder), "--ask", said="y\n")  # fmt: skip
    went_well(done)
    assert (folder / "x").read_text() == "y"


def test_a_folder_that_may_only_be_read_stays_as_it_is(home, folder):
    done = steno(home, "run", "[dev:call write {\"path\": \"x\", \"content\": \"y\"}]",
                 "--root", str(folder), "--allow", "read")  # fmt: skip
    assert "There is no tool named 'write'" in done.stdout
    assert not (folder / "x").exists()


def test_ctrl_c_cancels_the_session(tmp_path):
    process = subprocess.Popen(
        [*STENO, "run", "[dev:slow]", "--data", str(tmp_path / "data"), "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, err) == (130, "")
    assert json.loads(out.splitlines()[-1])["session"]["status"] == "cancelled"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run"], "Say what to do"),
        (["run", " "], "Say what to do"),
        (["run", "x", "--root", "/no/such/folder"], "/no/such/folder"),
        (["run", "x", "--model", "nobody/knows"], "No provider"),
        (["run", "x", "--allow", "fly"], "fly"),
        (["run", "x", "--secret", "NONE"], "secret_not_found"),
        (["run", "x", "--url", "http://127.0.0.1:9", "--key", "reason_x"], "cannot be reached"),
        (["run", "x", "--url", "http://127.0.0.1:9"], "STENO_API_KEY"),
    ],
)
def test_what_cannot_be_is_one_clear_line(home, words, message):
    done = steno(home, *words)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("steno: ")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_it_runs_on_a_server_that_serves_the_folder_or_is_named(tmp_path, folder):
    server = Server(tmp_path / "data")
    local = steno(tmp_path, "run", "[dev:files]", "--root", str(folder), "--quiet")
    named = steno(tmp_path / "other", "run", "[dev:files]", "--root", str(folder), "--quiet",
                  "--url", server.url, STENO_API_KEY=server.keys["api"])  # fmt: skip
    went_well(local)
    went_well(named)
    url = f"{server.url}/v3/organizations/default/sessions"
    headers = {"Authorization": f"Bearer {server.keys['api']}"}
    found = httpx.get(url, headers=headers).json()["items"]
    assert [session["outcome"] for session in found] == ["success", "success"]
    assert not (tmp_path / "other" / "data").exists()
    assert server.stop()[0] == 0


def test_a_chat_goes_on_with_what_is_typed(home):
    done = steno(home, "chat", "one", said="two\n\nnever read\n")
    went_well(done)
    assert [line for line in done.stdout.splitlines() if "You said" in line] == [
        "You said: one", "You said: two",
    ]  # fmt: skip


def test_an_answer_may_hold_whatever_ends_a_line_elsewhere(home):
    prompt = """```dev-scene
[[round]]
say = "one\\u2028two\\u0085three"
```"""
    done = steno(home, "run", "-", "--json", said=prompt)
    went_well(done)
    said = [json.loads(line) for line in done.stdout.split("\n") if line]
    assert "one\u2028two\u0085three" in [event.get("text") for event in said]
