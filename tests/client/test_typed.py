"""Both clients are typed: what is inferred, and what is refused, stands in `typed.py`."""

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

from stenograph.client import AsyncClient, Client
from stenograph.client.turns import TurnCollection

ROOT = Path(__file__).parents[2]


def test_a_type_checker_knows_what_either_client_returns() -> None:
    file = Path(__file__).with_name("typed.py")
    command = [sys.executable, "-m", "mypy", "--config-file", "pyproject.toml", str(file)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_help_shows_what_a_method_takes_and_does(kind: type) -> None:
    talk = kind("http://nowhere.invalid", "k").workspace("w").conversation("c")
    assert list(inspect.signature(talk.turns.reasoning).parameters) == [
        "turn_id", "variant_id", "before", "limit",
    ]  # fmt: skip
    assert "displayable reasoning" in (talk.turns.reasoning.__doc__ or "")
    assert "Give all turns" in (TurnCollection.each.__doc__ or "")
