"""An organization's own keys for models: set, replaced, deleted and named; never read back."""

from typing import Annotated

import msgspec
from msgspec import Meta

from stenograph.accounts import provider_credential
from stenograph.accounts.provider_credential import Private, ProviderCredential
from stenograph.clock import iso
from stenograph.engine.choice import endpoints_of
from stenograph.engine.keys import credentials_of
from stenograph.engine.models.catalog import PROVIDERS, ModelId
from stenograph.engine.models.credentials import suffice
from stenograph.errors import InvalidInputError, NotFoundError
from stenograph.http.context import Ctx
from stenograph.http.route import Route, delete, get, put
from stenograph.http.v3 import wire


class Credential(msgspec.Struct):
    """What is told of a key for a provider: which secrets it consists of, not what they are."""

    provider: str
    base_url: str | None
    aws_region: str | None
    secrets: Annotated[list[str], Meta(description="The members that are set: `api_key`, …")]
    created_at: wire.Time
    updated_at: wire.Time


class CredentialList(msgspec.Struct):
    """All keys of the organization's own, by provider."""

    items: list[Credential]


class CredentialBody(msgspec.Struct):
    """A key for a provider, whole: what is left out is not kept from before."""

    api_key: str | None = None
    base_url: Annotated[
        str | None, Meta(description="In place of the provider's own; used with this key only.")
    ] = None
    aws_access_key_id: str | None = None
    aws_secret_access_key: str | None = None
    aws_session_token: str | None = None
    aws_region: str | None = None


def _wire(found: ProviderCredential) -> Credential:
    return Credential(
        provider=found.provider_id,
        base_url=found.base_url,
        aws_region=found.aws_region,
        secrets=list(found.given),
        created_at=iso(found.created_at),
        updated_at=iso(found.updated_at),
    )


@get(
    "/organizations/{orgId}/provider-credentials",
    id="listProviderCredentials",
    tag="Provider credentials",
    scope="org:read",
    answer=CredentialList,
)
async def list_provider_credentials(ctx: Ctx) -> CredentialList:
    """List the organization's own keys for models.

    Providers, names and times; values are never read back.
    """
    found = await ctx.read(lambda tx: provider_credential.listed(tx, ctx.caller, ctx.sealer))
    return CredentialList([_wire(one) for one in found])


@put(
    "/organizations/{orgId}/provider-credentials/{provider}",
    id="putProviderCredential",
    tag="Provider credentials",
    scope="org:write",
    body=CredentialBody,
    answer=Credential,
)
async def put_provider_credential(ctx: Ctx, provider: str) -> Credential:
    """Set the organization's own key for a provider.

    Owners and admins only. It is encrypted at rest, and used for models named
    `byok:provider:model`, and for others where the server has no key of its own.
    """
    endpoints = endpoints_of(ctx.settings)
    if provider == "dev" or (provider not in PROVIDERS and provider not in endpoints):
        raise NotFoundError("There is no such provider", code="provider_not_found")
    provider_credential.require_admin(ctx.caller)
    private = Private(**msgspec.structs.asdict(ctx.body(CredentialBody)))
    if not suffice(ModelId(provider, "any").provider, credentials_of(private, provider, endpoints)):
        raise InvalidInputError(
            "This provider needs an `api_key`, or on AWS an access key and its secret",
            code="invalid_provider_credential",
        )
    if private == Private():
        raise InvalidInputError("There is nothing to keep", code="invalid_provider_credential")
    return _wire(
        await ctx.write(
            lambda tx: provider_credential.put(tx, ctx.caller, ctx.sealer, provider, private)
        )
    )


@delete(
    "/organizations/{orgId}/provider-credentials/{provider}",
    id="deleteProviderCredential",
    tag="Provider credentials",
    scope="org:write",
    answer=wire.Deleted,
)
async def delete_provider_credential(ctx: Ctx, provider: str) -> wire.Deleted:
    """Delete the organization's own key for a provider.

    Owners and admins only.
    """
    await ctx.write(lambda tx: provider_credential.delete(tx, ctx.caller, provider))
    return wire.Deleted(provider)


routes: list[Route] = [
    list_provider_credentials,
    put_provider_credential,
    delete_provider_credential,
]
