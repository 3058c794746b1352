"""Bring a database to today's schema, with Alembic; the numbered steps lie in `migrations/`."""

from pathlib import Path

from stenograph.errors import StenographError
from stenograph.storage.database import Database
from stenograph.storage.location import Location

_FOLDER = Path(__file__).parent / "migrations"


class SchemaError(StenographError):
    """The database's schema is not the one this version of Stenograph knows."""

    code = "schema_outdated"


def head() -> str:
    """Return the revision this code was written for."""
    names = sorted((_FOLDER / "versions").glob("m[0-9]*_*.py"))
    return names[-1].name[1:5]


def current(database: Database) -> str | None:
    """Return the revision the database is at; None for an empty one."""
    with database.read() as tx:
        if tx.dialect == "sqlite":
            found = tx.value("SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'")
        else:
            found = tx.value("SELECT to_regclass('alembic_version')::text")
        return tx.value("SELECT version_num FROM alembic_version") if found else None


def upgrade(location: Location) -> None:
    """Run every migration that the database has not seen, each in its own transaction."""
    # Imported here: Alembic and SQLAlchemy cost a third of a second and 30 MB, and a database
    # that is at today's revision needs neither.
    from alembic.config import Config
    from alembic.runtime.environment import EnvironmentContext
    from alembic.script import ScriptDirectory
    from sqlalchemy import create_engine, pool

    config = Config()
    config.set_main_option("script_location", str(_FOLDER))
    config.set_main_option("path_separator", "newline")
    script = ScriptDirectory.from_config(config)

    def revisions(revision: object, _: object) -> object:
        return script._upgrade_revs("head", revision)  # type: ignore[arg-type]

    engine = create_engine(location.sqlalchemy_url, poolclass=pool.NullPool)
    with engine.connect() as connection, EnvironmentContext(config, script, fn=revisions) as env:
        env.configure(connection=connection, transaction_per_migration=True)
        with env.begin_transaction():
            env.run_migrations()
    engine.dispose()
