"""Migrations: an empty database becomes today's, once, and its schema is complete."""

import re
import subprocess
import sys

import pytest

from stenograph.storage import location, migrate, prepare
from stenograph.storage.migrate import SchemaError


@pytest.fixture(params=["sqlite", "postgres"])
def empty(request, tmp_path):
    """Where a database without any schema is, on either engine."""
    if request.param == "sqlite":
        return location.locate(tmp_path / "data", None)
    return request.getfixturevalue("empty_postgres")()


def schema(place):
    """Every column of every table, and every index."""
    opened = location.connect(place)
    with opened.read() as tx:
        if place.is_postgres:
            columns = tx.rows(
                "SELECT table_name, column_name, is_nullable FROM information_schema.columns"
                " WHERE table_schema = 'public'"
            )
            indexes = tx.rows("SELECT indexname FROM pg_indexes WHERE schemaname = 'public'")
        else:
            columns = tx.rows(
                "SELECT m.name, c.name, CASE WHEN c.\"notnull\" = 1 OR c.pk > 0 THEN 'NO'"
                " ELSE 'YES' END FROM sqlite_master m, pragma_table_info(m.name) c"
                " WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%'"
            )
            indexes = tx.rows("SELECT name FROM sqlite_master WHERE type = 'index'")
    opened.close()
    named = {name for (name,) in indexes if not re.search(r"_(key|pkey|pkc)$|autoindex", name)}
    # The full-text index of SQLite has helpers of its own.
    return {c for c in columns if not re.search(r"search|alembic", c[0])}, named


def test_an_empty_database_becomes_todays(empty):
    opened = prepare.ready(empty)
    assert migrate.current(opened) == migrate.head()
    opened.close()
    again = prepare.ready(empty)
    assert migrate.current(again) == migrate.head()
    again.close()


def test_both_engines_have_the_same_tables_columns_and_indexes(tmp_path, empty_postgres):
    places = [location.locate(tmp_path, None), empty_postgres()]
    for place in places:
        prepare.ready(place).close()
    sqlite, postgres = map(schema, places)
    assert sqlite[0] == postgres[0]
    assert {n for n in sqlite[1] if "search" not in n} == {
        n for n in postgres[1] if "search" not in n
    }


START = """
import sys
from stenograph.storage import location, prepare

sys.stdin.read()
prepare.ready(location.Location(sys.argv[1])).close()
"""


def test_processes_that_start_together_migrate_once(empty):
    command = [sys.executable, "-c", START, empty.url]
    starting = [subprocess.Popen(command, stdin=subprocess.PIPE) for _ in range(3)]
    for process in starting:
        process.stdin.close()
    assert [process.wait() for process in starting] == [0, 0, 0]
    opened = location.connect(empty)
    assert migrate.current(opened) == migrate.head()
    opened.close()


def set_revision(place, revision):
    opened = location.connect(place)
    opened.write(lambda tx: tx.run("UPDATE alembic_version SET version_num = :r", r=revision))
    opened.close()


def test_a_database_of_a_newer_version_is_left_alone(database_location):
    set_revision(database_location, "9999")
    with pytest.raises(SchemaError, match="newer version"):
        prepare.ready(database_location)
    set_revision(database_location, migrate.head())


def test_postgres_that_is_behind_waits_for_the_command(postgres_location):
    set_revision(postgres_location, "0000")
    try:
        with pytest.raises(SchemaError, match="steno db upgrade"):
            prepare.ready(postgres_location)
    finally:
        set_revision(postgres_location, migrate.head())


def test_only_known_places_are_databases(tmp_path):
    assert location.locate(tmp_path, None).path == tmp_path / "steno.db"
    assert location.locate(tmp_path, "sqlite:////x/y.db").path.as_posix() == "/x/y.db"
    assert location.locate(tmp_path, "postgres://h/d").is_postgres
    with pytest.raises(Exception, match="must start with"):
        location.locate(tmp_path, "mysql://h/d")
