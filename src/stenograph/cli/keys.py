"""`steno keys …` and `steno people …`: who may call, and with which credentials."""

from typing import Annotated, Any

import typer

from stenograph.accounts import credential, principal
from stenograph.accounts.credential import Credential
from stenograph.accounts.principal import Principal
from stenograph.cli import options, output
from stenograph.clock import iso

keys = typer.Typer(no_args_is_help=True, help="Keys of both API families.")
people = typer.Typer(no_args_is_help=True, help="People and agents of the organization.")


@keys.command("create")
def create_key(
    plane: Annotated[
        str, typer.Option(help="api (v3), member or executor (Agent API).", show_default=False)
    ],
    scopes: Annotated[
        str | None,
        typer.Option(help="Scopes of a v3 key, with commas between.", show_default=False),
    ] = None,
    holder: Annotated[
        str | None,
        typer.Option("--principal", help="Whose key: a handle or id.", show_default="the owner"),
    ] = None,
    name: Annotated[str, typer.Option(help="What it is for.")] = "",
    expires_days: Annotated[
        int | None, typer.Option(help="How many days it is valid.", show_default="for good")
    ] = None,
    data: options.Data = None,
    database: options.DatabaseUrl = None,
    json: options.Json = False,
) -> None:
    """Make a key and print its secret, which is stored nowhere."""
    wanted = None if scopes is None else [s.strip() for s in scopes.split(",") if s.strip()]
    with options.opened(data, database) as place:
        made, secret = place.database.write(
            lambda tx: credential.create(
                tx,
                place.caller,
                plane,
                holder=holder,
                wanted=wanted,
                name=name,
                expires_days=expires_days,
            )
        )
    if json:
        output.emit({**_key(made), "secret": secret})
    else:
        output.line(secret)


@keys.command("list")
def list_keys(
    data: options.Data = None, database: options.DatabaseUrl = None, json: options.Json = False
) -> None:
    """List the keys, without their secrets."""
    with options.opened(data, database) as place, place.database.read() as tx:
        found = [_key(c) for c in credential.listed(tx, place.caller)]
    if json:
        output.emit({"keys": found})
    else:
        columns = ("public_id", "plane", "principal", "name", "hint", "expires_at", "revoked_at")
        output.table(columns, found)


@keys.command("revoke")
def revoke_key(
    public_id: Annotated[str, typer.Argument(metavar="ID", help="The key's public id.")],
    data: options.Data = None,
    database: options.DatabaseUrl = None,
    json: options.Json = False,
) -> None:
    """Revoke a key, at once and for good."""
    with options.opened(data, database) as place:
        place.database.write(lambda tx: credential.revoke(tx, place.caller, public_id))
    if json:
        output.emit({"public_id": public_id, "revoked": True})
    else:
        output.line(f"Revoked {public_id}")


@people.command("add")
def add_person(
    handle: Annotated[str, typer.Argument(help="How they are called, without @.")],
    role: Annotated[
        str, typer.Option(help="owner, admin, member, or agent for an agent profile.")
    ] = "member",
    name: Annotated[str | None, typer.Option(help="The name shown.", show_default=False)] = None,
    data: options.Data = None,
    database: options.DatabaseUrl = None,
    json: options.Json = False,
) -> None:
    """Add a person or an agent profile."""
    with options.opened(data, database) as place:
        made = place.database.write(
            lambda tx: principal.add(
                tx, place.caller, handle, role=None if role == "agent" else role, name=name
            )
        )
    if json:
        output.emit(_person(made))
    else:
        output.line(f"Added {made.handle} ({made.public_id})")


@people.command("list")
def list_people(
    data: options.Data = None, database: options.DatabaseUrl = None, json: options.Json = False
) -> None:
    """List people and agent profiles."""
    with options.opened(data, database) as place, place.database.read() as tx:
        found = [_person(p) for p in principal.everyone(tx, place.caller)]
    if json:
        output.emit({"people": found})
    else:
        output.table(("public_id", "handle", "kind", "role", "display_name"), found)


def _key(key: Credential) -> dict[str, Any]:
    return {
        "public_id": key.public_id,
        "plane": key.plane,
        "principal": key.holder_handle,
        "name": key.name,
        "hint": key.hint + "…",
        "scopes": list(key.scopes),
        "created_at": iso(key.created_at),
        "expires_at": None if key.expires_at is None else iso(key.expires_at),
        "revoked_at": None if key.revoked_at is None else iso(key.revoked_at),
    }


def _person(person: Principal) -> dict[str, Any]:
    return {
        "public_id": person.public_id,
        "handle": person.handle,
        "kind": person.kind,
        "role": person.role,
        "display_name": person.display_name,
    }
