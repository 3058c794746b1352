"""The options that commands share, and the way to the database."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from stenograph import settings as settings_module
from stenograph.accounts import access, first_start
from stenograph.accounts.access import Caller
from stenograph.settings import Settings
from stenograph.storage import location, prepare
from stenograph.storage.database import Database
from stenograph.storage.sealing import Sealer, sealer

Data = Annotated[
    Path | None,
    typer.Option("--data", help="The data folder [STENO_DATA; ~/.stenograph].", show_default=False),
]
DatabaseUrl = Annotated[
    str | None,
    typer.Option(
        "--database",
        help="The database, sqlite:///… or postgresql://… [STENO_DATABASE_URL; in the data folder]",
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


@dataclass(frozen=True, slots=True)
class Place:
    """What a command works on: the settings, the open database, the owner as caller."""

    settings: Settings
    location: location.Location
    database: Database
    caller: Caller

    @property
    def sealer(self) -> Sealer:
        """The sealer of this data folder."""
        return sealer(self.settings.data, self.settings.key)


def read_settings(data: Path | None, database: str | None, **options: Any) -> Settings:
    """Read the environment; options given on the command line win."""
    return settings_module.from_environment(os.environ, data=data, database=database, **options)


@contextmanager
def opened(data: Path | None, database: str | None) -> Iterator[Place]:
    """Open the database at today's schema, after its first start if it never had one."""
    settings = read_settings(data, database)
    place = location.locate(settings.data, settings.database)
    connected = prepare.ready(place)
    try:
        first_start.ensure(connected, settings.data, settings.organization)
        with connected.read() as tx:
            caller = access.local(tx, settings.organization)
        yield Place(settings, place, connected, caller)
    finally:
        connected.close()
