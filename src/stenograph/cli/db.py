"""`steno db …`: the schema of the database."""

import typer

from stenograph.cli import options, output
from stenograph.storage import location, migrate, prepare

app = typer.Typer(no_args_is_help=True, help="The schema of the database.")


@app.command()
def upgrade(
    data: options.Data = None, database: options.DatabaseUrl = None, json: options.Json = False
) -> None:
    """Bring the database to this version's schema."""
    settings = options.read_settings(data, database)
    place = location.locate(settings.data, settings.database)
    connected = location.connect(place)
    try:
        before = prepare.upgrade(place, connected)
    finally:
        connected.close()
    now = migrate.head()
    if json:
        output.emit({"before": before, "schema": now})
    elif before == now:
        output.line(f"The database is at schema {now} already")
    else:
        output.line(f"Upgraded from {before or 'an empty database'} to schema {now}")
