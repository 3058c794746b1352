"""A process that is killed at any moment leaves a whole record, and the next one goes on."""

import json
import shutil
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from exports import exported
from faults.killing import killed, statements
from people import make_org
from retention import bytes_left, engine_rows, rows
from retention.rows import World
from stenograph.accounts import access
from stenograph.retention.integrity import check
from stenograph.retention.prune import prune
from stenograph.storage.database import Database
from stenograph.storage.location import Location, connect
from stenograph.trajectories.importers.discovery import find, read_source
from stenograph.trajectories.recording.record import record

SAMPLES = Path(__file__).parents[2] / "samples" / "claude-code"

#: In how many places each kind of work is killed; they are spread evenly over it.
PLACES = 40


def spread(count: int) -> Sequence[int]:
    return sorted({1 + n * (count - 1) // (PLACES - 1) for n in range(PLACES)})


def take_in(database: Database, log: Path) -> list[str]:
    with database.read() as tx:
        owner = access.local(tx)
    return [
        recorded.session_id
        for candidate in find([log])
        if candidate.format is not None
        for draft in read_source(candidate)
        for recorded in database.write(lambda tx, d=draft: record(tx, owner, d))
    ]


def opened(place: Location, look: Callable[[Database], Any]) -> Any:
    database = connect(place)
    try:
        return look(database)
    finally:
        database.close()


def without_ids(document: Any, ids: Sequence[str]) -> Any:
    """Return a document with the ids of its sessions replaced by their order."""
    text = json.dumps(document)
    for number, session_id in enumerate(ids):
        text = text.replace(session_id, f"session {number}")
    return json.loads(text)


def whole(database: Database, ids: Sequence[str]) -> Any:
    return without_ids(exported(database, ids[0]), ids)


@pytest.fixture
def empty(sqlite_location: Location) -> Location:
    """A database with people in it and nothing else, closed."""
    opened(sqlite_location, make_org)
    return sqlite_location


def copies(place: Location, folder: Path) -> Callable[[int], Location]:
    """Return how to get a fresh copy of a closed database."""

    def copy(number: int) -> Location:
        target = folder / f"{number}" / "steno.db"
        target.parent.mkdir()
        shutil.copy(place.path, target)
        return Location(f"sqlite:///{target}")

    return copy


def test_an_import_that_is_killed_leaves_all_or_nothing(empty: Location, tmp_path: Path) -> None:
    copy = copies(empty, tmp_path)
    work = partial(take_in, log=SAMPLES)
    ids: list[str] = []
    reference = copy(0)
    total = statements(reference, lambda database: ids.extend(work(database)))
    expected = opened(reference, lambda database: whole(database, ids))
    for number in spread(total):
        place = copy(number)
        assert killed(place, number, work)
        assert opened(place, check) == []
        again = opened(place, work)
        assert opened(place, lambda database, i=again: whole(database, i)) == expected
        assert opened(place, check) == []
        shutil.rmtree(place.path.parent)


def test_an_import_that_had_been_acknowledged_survives_the_death_of_the_next(
    empty: Location, tmp_path: Path
) -> None:
    (log,) = SAMPLES.rglob("41ab*.jsonl")
    lines = log.read_bytes().splitlines(keepends=True)
    grown = tmp_path / log.name
    grown.write_bytes(b"".join(lines[: len(lines) // 2]))
    work = partial(take_in, log=grown)
    ids = opened(empty, work)
    before = opened(empty, lambda database: whole(database, ids))
    copy = copies(empty, tmp_path)
    grown.write_bytes(b"".join(lines))
    total = statements(copy(0), work)
    for number in spread(total):
        place = copy(number)
        assert killed(place, number, work)
        assert opened(place, lambda database: whole(database, ids)) == before
        assert opened(place, check) == []
        shutil.rmtree(place.path.parent)


@pytest.fixture
def filled(empty: Location) -> tuple[Location, World]:
    """A database with a world in it, closed."""

    def fill(database: Database) -> World:
        with database.read() as tx:
            owner = access.local(tx)
        world = database.write(lambda tx: engine_rows.add(tx, owner, rows.build(tx, owner)))
        database.write(lambda tx: tx.run("UPDATE originals SET compressed = NULL"))
        world.marks.pop("originals.compressed")
        return world

    return empty, opened(empty, fill)


def test_a_prune_that_is_killed_has_pruned_whole_candidates_and_goes_on(
    filled: tuple[Location, World], tmp_path: Path
) -> None:
    place, world = filled
    copy = copies(place, tmp_path)
    gone = {name: mark for name, mark in world.marks.items() if rows.expires(name)}
    kept = {name: mark for name, mark in world.marks.items() if not rows.expires(name)}
    work = partial(prune, older_than_days=0)
    total = statements(copy(0), work)
    stages = set()
    for number in range(1, total + 1):
        place = copy(number)
        assert killed(place, number, work)
        assert opened(place, check) == []
        stages.add(opened(place, lambda database: _stage(database, gone)))
        assert opened(place, work).erased
        assert opened(place, check) == []
        database = connect(place)
        assert bytes_left.in_tables(database, kept) == set(kept)
        assert bytes_left.in_files(database, place, gone) == set()
        database.close()
        shutil.rmtree(place.path.parent)
    assert stages == {(False, False), (True, False), (True, True)}


def _stage(database: Database, gone: dict[str, str]) -> tuple[bool, bool]:
    """Return whether the run, and whether the direct reply has gone; each wholly or not at all."""
    left = bytes_left.in_tables(database, gone)
    direct = {name for name in gone if "#direct" in name}
    whole = ("sessions.", "media.", "tool_sets.")
    session = {n for n in gone if n.startswith(whole) or n.endswith("#loose")}
    run = set(gone) - direct - session
    assert left & run in (run, set())
    assert left & direct in (direct, set())
    with database.read() as tx:
        marked = tx.value("SELECT count(*) FROM runs WHERE details_pruned_at IS NOT NULL")
        reply = tx.value("SELECT count(*) FROM variants WHERE details_pruned_at IS NOT NULL")
    assert (marked, reply) == (not left & run, not left & direct)
    return bool(marked), bool(reply)
