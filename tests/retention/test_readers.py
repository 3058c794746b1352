"""Readers of old snapshots on PostgreSQL see what was deleted: it cannot be taken from the files
under their eyes."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from people import make_org
from retention import bytes_left, rows
from stenograph.retention.prune import prune
from stenograph.storage.database import Database
from stenograph.storage.location import Location, connect


@pytest.fixture
def database(postgres_location: Location) -> Iterator[Database]:
    opened = connect(postgres_location)
    yield opened
    opened.close()


@pytest.fixture
def gone(database: Database) -> dict[str, str]:
    """What expires in a world, by its places."""
    org = make_org(database)
    world = database.write(lambda tx: rows.build(tx, org.owner))
    return {name: mark for name, mark in world.marks.items() if rows.expires(name)}


def test_one_that_stays_is_named_and_holds_nobody_up(
    database: Database,
    postgres_location: Location,
    gone: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("stenograph.storage.postgres_scrub._PATIENCE", 0.2)
    with database.read() as reader:
        seen = reader.rows("SELECT name, error FROM tasks ORDER BY id")
        assert not prune(database, 0).erased
        # Nobody waits behind a lock that waits for the reader.
        assert bytes_left.in_tables(database, gone) == set()
        assert reader.rows("SELECT name, error FROM tasks ORDER BY id") == seen != []
    assert prune(database, 0).erased
    assert bytes_left.in_files(database, postgres_location, gone) == set()


def test_one_that_goes_is_waited_for(
    database: Database, postgres_location: Location, gone: dict[str, str]
) -> None:
    both = threading.Event()

    def tell(done: int) -> None:
        if done == 2:
            both.set()

    with ThreadPoolExecutor(1) as thread:
        with database.read() as reader:
            reader.value("SELECT count(*) FROM runs")
            done = thread.submit(prune, database, 0, progress=tell)
            assert both.wait(30)
        assert done.result().erased
    assert bytes_left.in_files(database, postgres_location, gone) == set()
