"""The command line: `steno`. One table of commands; errors become one line and an exit status."""

import os
import sqlite3
import sys
from collections.abc import Callable
from typing import Annotated

import typer

import stenograph
from stenograph.cli import db, exports, imports, keys, output, retention, secrets, worker
from stenograph.cli.run import chat
from stenograph.cli.run import run as run_command
from stenograph.cli.serve import serve
from stenograph.cli.tour import tour
from stenograph.errors import StenographError
from stenograph.settings import Settings

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="The full record of what agents said, thought and did.",
)
app.command()(serve)
app.command()(run_command)
app.command()(chat)
app.command()(tour)
app.command("import")(imports.import_logs)
app.command()(exports.export)
app.command()(exports.validate)
app.command()(retention.prune)
app.command()(retention.retention)
app.add_typer(keys.keys, name="keys")
app.add_typer(keys.people, name="people")
app.add_typer(secrets.app, name="secrets")
app.add_typer(worker.app, name="worker")
db.app.command()(retention.check)
app.add_typer(db.app, name="db")


def _show_version(wanted: bool) -> None:
    if wanted:
        output.line(stenograph.__version__)
        raise typer.Exit


@app.callback()
def top(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Say it.")
    ] = False,
) -> None:
    """Take what holds for every command."""


def run(start: Callable[[Settings, Callable[[str, bool], None]], None]) -> None:
    """Run the command line; `start` serves until it is told to stop."""
    try:
        app(obj=start)
    except StenographError as error:
        output.fail(error.message)
    except (OSError, sqlite3.Error) as error:
        output.fail(str(error))
    except Exception as error:
        # psycopg is not imported for its errors' sake: not everyone has a PostgreSQL.
        known = type(error).__module__.startswith("psycopg")
        output.fail(str(error) if known else f"unexpected {type(error).__name__}: {error}")
        if not known and os.environ.get("STENO_LOG_LEVEL") == "debug":
            raise
    sys.exit(1)
