"""Secrets: set, replaced, deleted and named; never read back."""

from typing import Annotated

import msgspec
from msgspec import Meta

from stenograph.clock import iso
from stenograph.http.context import Ctx
from stenograph.http.route import Route, delete, get, post, put
from stenograph.http.v3 import wire
from stenograph.sessions import secret


class Secret(msgspec.Struct):
    """What is told of a secret."""

    id: str
    name: str
    created_at: wire.Time
    updated_at: wire.Time


class SecretList(msgspec.Struct):
    """All secrets of the organization, by name."""

    items: list[Secret]


_Value = Annotated[
    str, Meta(description="4 characters to 65,536 bytes; every reading of a run masks it.")
]


class NewSecret(msgspec.Struct):
    """A secret by the name that an environment variable may have."""

    name: str
    value: _Value


class SecretValue(msgspec.Struct):
    """Another value."""

    value: _Value


def _wire(found: secret.Secret) -> Secret:
    return Secret(found.public_id, found.name, iso(found.created_at), iso(found.updated_at))


@get(
    "/organizations/{orgId}/secrets",
    id="listSecrets",
    tag="Secrets",
    scope="secrets:read",
    answer=SecretList,
)
async def list_secrets(ctx: Ctx) -> SecretList:
    """List secrets.

    Names and times; values are never read back.
    """
    found = await ctx.read(lambda tx: secret.listed(tx, ctx.caller))
    return SecretList([_wire(one) for one in found])


@post(
    "/organizations/{orgId}/secrets",
    id="createSecret",
    tag="Secrets",
    scope="secrets:write",
    body=NewSecret,
    status=201,
    answer=Secret,
    errors={409: "There is a secret of that name (`secret_exists`)."},
)
async def create_secret(ctx: Ctx) -> Secret:
    """Create a secret.

    It is encrypted at rest, and injected into the sessions that name it.
    """
    body = ctx.body(NewSecret)
    return _wire(
        await ctx.write(lambda tx: secret.create(tx, ctx.caller, ctx.sealer, body.name, body.value))
    )


@put(
    "/organizations/{orgId}/secrets/{name}",
    id="replaceSecret",
    tag="Secrets",
    scope="secrets:write",
    body=SecretValue,
    answer=Secret,
)
async def replace_secret(ctx: Ctx, name: str) -> Secret:
    """Replace a secret's value.

    Sessions that were given the old value keep it, and it stays masked in their readings.
    """
    await ctx.read(lambda tx: secret.find(tx, ctx.caller, name))
    value = ctx.body(SecretValue).value
    return _wire(
        await ctx.write(lambda tx: secret.replace(tx, ctx.caller, ctx.sealer, name, value))
    )


@delete(
    "/organizations/{orgId}/secrets/{name}",
    id="deleteSecret",
    tag="Secrets",
    scope="secrets:write",
    answer=wire.Deleted,
)
async def delete_secret(ctx: Ctx, name: str) -> wire.Deleted:
    """Delete a secret.

    It stays masked in the readings of sessions that were given it.
    """
    await ctx.write(lambda tx: secret.delete(tx, ctx.caller, name))
    return wire.Deleted(name)


routes: list[Route] = [list_secrets, create_secret, replace_secret, delete_secret]
