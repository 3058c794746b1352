"""`steno serve`."""

from collections.abc import Callable
from typing import Annotated

import typer

from stenograph.cli import options, output
from stenograph.settings import Settings


def serve(
    context: typer.Context,
    data: options.Data = None,
    database: options.DatabaseUrl = None,
    host: Annotated[
        str | None, typer.Option(help="The address [STENO_HOST; 127.0.0.1].", show_default=False)
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=65535,
            help="The port [STENO_PORT; 8642]; 0 takes a free one.",
            show_default=False,
        ),
    ] = None,
    json: options.Json = False,
) -> None:
    """Serve both APIs until SIGTERM or SIGINT.

    The first start makes an organization, its owner and a key of each family, and writes the
    keys to `keys.json` in the data folder. With --json, or port 0, one line of JSON on standard
    output says where the server listens, once it answers.
    """
    settings = options.read_settings(data, database, host=host, port=port)
    as_json = json or settings.port == 0

    def announce(url: str, keys_made: bool) -> None:
        keys = str(settings.data / "keys.json")
        if as_json:
            output.emit({"url": url, "keys": keys, "first_start": keys_made})
            return
        output.line(f"Listening on {url} (documentation: {url}/docs)")
        if keys_made:
            output.line(f"Keys of the first start are in {keys}")

    run: Callable[[Settings, Callable[[str, bool], None]], None] = context.obj
    run(settings, announce)
