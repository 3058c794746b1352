"""Subagents and scripts in a server that is killed: one child for a call, no call made twice."""

import os
import subprocess
import sys
from pathlib import Path

from stenograph.storage.location import Location

_TESTS = Path(__file__).parents[2]
#: In how many places a run is killed; they are spread evenly over it.
PLACES = {"sqlite": 9, "postgres": 3}


def test_a_family_that_is_killed_anywhere_does_its_work_once(
    database_location: Location, tmp_path: Path
) -> None:
    program = Path(__file__).with_name("killing.py")
    places = PLACES["postgres" if database_location.is_postgres else "sqlite"]
    done = subprocess.run(
        [sys.executable, str(program), database_location.url, str(tmp_path), str(places)],
        env={**os.environ, "PYTHONPATH": str(_TESTS)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
