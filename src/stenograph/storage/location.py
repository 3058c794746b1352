"""Where the database is: a file in the data folder, or a PostgreSQL URL."""

import os
from dataclasses import dataclass
from pathlib import Path

from stenograph.errors import InvalidInputError
from stenograph.storage.database import Database

_POSTGRES = ("postgresql://", "postgres://")


@dataclass(frozen=True, slots=True)
class Location:
    """`url` is `sqlite:///<path>` or `postgresql://…`."""

    url: str

    @property
    def sqlalchemy_url(self) -> str:
        """The same place as SQLAlchemy names it (for Alembic)."""
        if self.is_postgres:
            return "postgresql+psycopg://" + self.url.split("://", 1)[1]
        return self.url

    @property
    def is_postgres(self) -> bool:
        return self.url.startswith(_POSTGRES)

    @property
    def path(self) -> Path:
        """The file of a SQLite database."""
        return Path(self.url.removeprefix("sqlite:///"))


def locate(data: Path, url: str | None) -> Location:
    """Return the database that `url` names, or the file `steno.db` in the data folder."""
    if url is None:
        return Location(f"sqlite:///{data / 'steno.db'}")
    if url.startswith((*_POSTGRES, "sqlite:///")):
        return Location(url)
    raise InvalidInputError(
        "The database URL must start with sqlite:/// or postgresql://", code="invalid_database_url"
    )


def connect(location: Location) -> Database:
    """Open the database; its schema is not looked at."""
    if location.is_postgres:
        from stenograph.storage.postgres import PostgresDatabase

        return PostgresDatabase(location.url)
    from stenograph.storage.sqlite import SqliteDatabase

    location.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not location.path.exists():
        # Made here so that no moment exists in which others may read it.
        os.close(os.open(location.path, os.O_CREAT | os.O_WRONLY, 0o600))
    return SqliteDatabase(location.path)
