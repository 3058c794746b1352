"""The README does what it says: its lines are run as they stand, against what `make run` starts."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from stenograph.cli import main

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
STENO = (sys.executable, "-c", "from stenograph.app import main; main()")
CURLS = re.findall(r"^curl .*$", README, re.MULTILINE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder in which the tour serves, as `make run` does in the checkout."""
    folder = tmp_path_factory.mktemp("checkout")
    command = [*STENO, "tour", str(ROOT / "samples"), "--port", "0", "--data", str(folder / "data")]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as tour:
        while not (folder / "data" / "tour.env").exists():
            assert tour.poll() is None
            time.sleep(0.05)
        yield folder
        tour.send_signal(signal.SIGTERM)
        assert tour.wait(30) == 0


def paste(folder: Path, line: str) -> Any:
    """Run a line as a person pastes it, after the README's first one."""
    first = ". data/tour.env"
    assert first in README
    done = subprocess.run(
        ["bash", "-euc", f"{first}\n{line}"], cwd=folder, capture_output=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def answers(folder: Path) -> list[Any]:
    if shutil.which("curl") is None:
        pytest.skip("there is no curl here")
    assert len(CURLS) == 3
    return [paste(folder, line) for line in CURLS]


def test_the_first_reading_is_a_page_of_messages(answers: list[Any]) -> None:
    page = answers[0]
    assert [item["kind"] for item in page["items"][:2]] == ["prompt", "reply"]
    assert page["end_cursor"] == str(page["items"][-1]["cursor"])


def test_the_second_is_a_page_of_stored_reasoning(answers: list[Any]) -> None:
    page = answers[1]
    assert page.keys() == {"items", "pagination"}
    assert any(item["available"] and item["text"] for item in page["items"])


def test_the_third_is_the_trajectory_with_its_subagent(answers: list[Any]) -> None:
    messages, _, document = answers
    assert document["schema_version"] == "ATIF-v1.7"
    assert document["steps"][0]["message"] == messages["items"][0]["content"]
    assert len(document["subagent_trajectories"]) == 1


def test_the_file_with_the_keys_is_its_owners_alone(folder: Path) -> None:
    assert (folder / "data" / "tour.env").stat().st_mode & 0o777 == 0o600


def test_once_shows_the_readings_and_ends(tmp_path: Path) -> None:
    done = subprocess.run(
        [*STENO, "tour", str(ROOT / "samples"), "--once", "--data", str(tmp_path / "data")],
        capture_output=True, text=True, timeout=120, env={**os.environ, "COLUMNS": "200"},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    for shown in ("1. A page of messages", "2. A page of stored reasoning", "3. The trajectory"):
        assert shown in done.stdout
    assert "The day is clamped once" in done.stdout
    # An agent works, and is shown in the same way.
    assert "✓ read\n" in done.stdout
    assert "summary.md holds the notes in one line" in done.stdout
    assert "success · " in done.stdout
    curls = re.findall(r"^curl -s -H 'Authorization: Bearer \S+' 'http://\S+'$", done.stdout, re.M)
    assert len(curls) == 12


def test_a_port_that_is_taken_is_said_in_one_line(folder: Path, tmp_path: Path) -> None:
    taken = re.search(r":(\d+)", (folder / "data" / "tour.env").read_text()).group(1)  # type: ignore[union-attr]
    tour = [*STENO, "tour", str(ROOT / "samples"), "--port", taken, "--data", str(tmp_path / "d")]
    done = subprocess.run(tour, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert re.fullmatch(rf"steno: Cannot listen on 127\.0\.0\.1:{taken}: [^\n]*\n", done.stderr)
    assert subprocess.run([*tour, "--once"], capture_output=True, timeout=60).returncode == 0


def test_the_commands_it_names_are_there() -> None:
    named = set(re.findall(r"^steno ([a-z]+(?: check)?)", README, re.MULTILINE))
    assert named >= {"import", "serve", "export", "prune", "db check"}
    for name in named:
        assert CliRunner().invoke(main.app, [*name.split(), "--help"]).exit_code == 0, name
