"""`steno secrets …`: values that are masked in every reading of the runs that are given them."""

import sys
from typing import Annotated, Any

import typer

from stenograph.cli import options, output
from stenograph.clock import iso
from stenograph.errors import NotFoundError
from stenograph.sessions import secret
from stenograph.sessions.secret import Secret
from stenograph.storage.database import Tx

app = typer.Typer(no_args_is_help=True, help="Secrets of runs: set, named, never shown.")

_Name = Annotated[
    str, typer.Argument(metavar="NAME", help="As an environment variable may be called.")
]


@app.command("set")
def set_secret(
    name: _Name,
    data: options.Data = None,
    database: options.DatabaseUrl = None,
    json: options.Json = False,
) -> None:
    """Keep a secret, or give it another value.

    The value is asked for, or read from standard input whole, without its last line break; the
    command line would show it to everyone on the machine.
    """
    value = _value(name)

    def keep(tx: Tx) -> Secret:
        try:
            return secret.replace(tx, place.caller, place.sealer, name, value)
        except NotFoundError:
            return secret.create(tx, place.caller, place.sealer, name, value)

    with options.opened(data, database) as place:
        kept = place.database.write(keep)
    if json:
        output.emit(_wire(kept))
    else:
        output.line(f"Kept {kept.name}")


@app.command("list")
def list_secrets(
    data: options.Data = None, database: options.DatabaseUrl = None, json: options.Json = False
) -> None:
    """List the secrets by name, without their values."""
    with options.opened(data, database) as place, place.database.read() as tx:
        found = [_wire(one) for one in secret.listed(tx, place.caller)]
    if json:
        output.emit({"secrets": found})
    else:
        output.table(("name", "created_at", "updated_at"), found)


@app.command("delete")
def delete_secret(
    name: _Name,
    data: options.Data = None,
    database: options.DatabaseUrl = None,
    json: options.Json = False,
) -> None:
    """Delete a secret; runs that were given it still mask it."""
    with options.opened(data, database) as place:
        place.database.write(lambda tx: secret.delete(tx, place.caller, name))
    if json:
        output.emit({"name": name, "deleted": True})
    else:
        output.line(f"Deleted {name}")


def _value(name: str) -> str:
    if sys.stdin.isatty():
        value: str = typer.prompt(f"Value of {name}", hide_input=True)
        return value
    value = sys.stdin.read()
    return value.removesuffix("\n").removesuffix("\r")


def _wire(found: Secret) -> dict[str, Any]:
    return {
        "id": found.public_id,
        "name": found.name,
        "created_at": iso(found.created_at),
        "updated_at": iso(found.updated_at),
    }
