"""`steno db …`: the schema of the database, and its search index."""

import typer

from stenograph.cli import options, output
from stenograph.conversations import search_index
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


@app.command()
def reindex(data: options.Data = None, database: options.DatabaseUrl = None) -> None:
    """Compare the search index with the record, and write it anew."""
    with options.opened(data, database) as place:
        search_index.rebuild(place.database)
    output.line("Everything is indexed")
