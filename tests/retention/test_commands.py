"""`steno prune` and `steno db check`, as a person or a script runs them."""

import json
import subprocess
import sys

import pytest

from people import make_org
from retention import rows
from stenograph.clock import now
from stenograph.storage.database import Database
from stenograph.storage.location import Location, connect

STENO = (sys.executable, "-c", "from stenograph.app import main; main()")


def steno(place: Location, *arguments: str) -> subprocess.CompletedProcess[str]:
    data = str(place.path.parent)
    return subprocess.run(
        [*STENO, *arguments, "--data", data], capture_output=True, text=True, timeout=60
    )


@pytest.fixture
def place(sqlite_database: Database, sqlite_location: Location) -> Location:
    """A database with a world in it, closed."""
    org = make_org(sqlite_database)
    sqlite_database.write(lambda tx: rows.build(tx, org.owner))
    sqlite_database.write(lambda tx: tx.run("UPDATE originals SET compressed = NULL"))
    sqlite_database.close()
    return sqlite_location


def test_prune_says_what_went(place: Location) -> None:
    done = steno(place, "prune", "--older-than", "0", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    report, other = json.loads(done.stdout)["reports"]
    assert (report["runs"], report["direct_replies"], report["skipped"]) == (1, 1, 0)
    assert other["organization"] == "elsewhere"
    again = steno(place, "prune", "--older-than", "0", "--organization", "default", "--quick")
    assert again.stdout == (
        "default: details of 0 runs and 0 direct replies, older than 0 days, were deleted\n"
    )


def test_prune_takes_the_default_of_ninety_days(place: Location) -> None:
    database = connect(place)
    database.write(lambda tx: tx.run("UPDATE runs SET completed_at = :at", at=now()))
    database.close()
    done = steno(place, "prune", "--organization", "default")
    assert "0 runs and 1 direct replies, older than 90 days" in done.stdout


def test_prune_says_when_retention_is_off(place: Location) -> None:
    database = connect(place)
    database.write(lambda tx: tx.run("UPDATE organizations SET details_retention_days = NULL"))
    database.close()
    done = steno(place, "prune", "--organization", "default")
    assert done.stdout == "default: retention is off, nothing was deleted\n"


def test_prune_refuses_what_makes_no_sense(place: Location) -> None:
    assert steno(place, "prune", "--older-than", "-1").returncode == 2
    unknown = steno(place, "prune", "--organization", "nobody")
    assert (unknown.returncode, unknown.stderr) == (1, "steno: There is no organization nobody\n")


def test_check_ends_with_status_1_when_something_is_wrong(place: Location) -> None:
    healthy = steno(place, "db", "check")
    assert (healthy.returncode, healthy.stdout) == (0, "The record is whole\n")
    database = connect(place)
    database.write(lambda tx: tx.run("UPDATE conversations SET next_position = 1"))
    database.close()
    broken = steno(place, "db", "check", "--json")
    assert broken.returncode == 1
    assert [f["table"] for f in json.loads(broken.stdout)["findings"]] == ["conversations"]
    said = steno(place, "db", "check")
    assert said.returncode == 1
    assert "Its next turn position is not the one behind its last turn." in said.stdout


def test_the_policy_is_shown_and_set(place: Location) -> None:
    name = "execution_details_retention_days"
    assert steno(place, "retention").stdout == "90 days\n"
    assert json.loads(steno(place, "retention", "30", "--json").stdout) == {name: 30}
    assert steno(place, "retention").stdout == "30 days\n"
    assert steno(place, "retention", "off").stdout == "off: details stay\n"
    for wrong in ("0", "x", "1.5"):
        done = steno(place, "retention", wrong)
        assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert json.loads(steno(place, "retention", "--json").stdout) == {name: None}
