"""Open a database and see to it that its schema is today's.

SQLite is brought up to date whenever it is behind, for its file belongs to this machine. So is an
empty PostgreSQL database; one that is merely behind may be in use by other processes of the older
version, and waits for `steno db upgrade`.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager

from stenograph.storage import location, migrate
from stenograph.storage.database import Database
from stenograph.storage.location import Location
from stenograph.storage.migrate import SchemaError

#: Any number, the same in every process: who holds it on the server upgrades alone.
_ADVISORY_LOCK = 0x7374656E6F


def ready(place: Location) -> Database:
    """Open the database, at today's schema. Raises `SchemaError`."""
    database = location.connect(place)
    try:
        found = migrate.current(database)
        if found != migrate.head():
            if place.is_postgres and found is not None:
                _refuse(found)
            upgrade(place, database)
    except BaseException:
        database.close()
        raise
    return database


def upgrade(place: Location, database: Database) -> str | None:
    """Bring the schema up to date, alone among processes; returns the revision found before."""
    with _alone(place):
        found = migrate.current(database)
        if found is not None and found > migrate.head():
            _refuse(found)
        if found != migrate.head():
            migrate.upgrade(place)
    return found


def _refuse(found: str) -> None:
    if found > migrate.head():
        raise SchemaError(
            f"The database is at schema {found}, of a newer version of Stenograph than this one"
        )
    raise SchemaError(
        f"The database is at schema {found}, this version needs {migrate.head()}:"
        " run `steno db upgrade`"
    )


@contextmanager
def _alone(place: Location) -> Iterator[None]:
    """Hold a lock that every process which upgrades this database takes."""
    if place.is_postgres:
        import psycopg

        with psycopg.connect(place.url, autocommit=True) as connection:
            connection.execute("SELECT pg_advisory_lock(%s)", [_ADVISORY_LOCK])
            yield
        return
    # A file of its own, for a lock on the database file may meet SQLite's.
    held = os.open(f"{place.path}.lock", os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
    finally:
        os.close(held)
