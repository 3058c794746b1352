"""Ephemeral workspaces: made for one run, handed over with a key, retired."""

import msgspec

from stenograph.clock import iso
from stenograph.http.context import Ctx
from stenograph.http.route import Answer, Route, post
from stenograph.http.v3 import wire
from stenograph.sessions import ephemeral


class NewEphemeralWorkspace(msgspec.Struct):
    """What one is made with; `reference` is the maker's own name for it, which makes it once."""

    reference: str
    ttl_minutes: int
    rcus: int | None = None


class EphemeralWorkspace(msgspec.Struct):
    """A workspace; `api_key` is null once its session has begun."""

    organization_id: str
    parent_organization_id: str
    reference: str
    api_key: str | None
    expires_at: wire.Time


class RetiredWorkspace(msgspec.Struct):
    """A workspace that is over."""

    organization_id: str
    retired_at: wire.Time


@post(
    "/organizations/{orgId}/ephemeral-workspaces",
    id="createEphemeralWorkspace",
    tag="Organizations",
    scope="org:write",
    body=NewEphemeralWorkspace,
    status=201,
    answer=EphemeralWorkspace,
    also={200: EphemeralWorkspace},
    errors={
        409: "`ephemeral_workspace_reference_conflict`, `ephemeral_workspace_retired` or"
        " `ephemeral_workspace_limit_reached`."
    },
)
async def create_ephemeral_workspace(ctx: Ctx) -> Answer:
    """Create an ephemeral workspace.

    A child organization that lives up to 720 minutes and admits one ephemeral session, driven with
    the key that is answered. The same request again answers the same workspace, with 200. Owners
    and admins only.
    """
    body = ctx.body(NewEphemeralWorkspace)
    made, is_new = await ctx.write(
        lambda tx: ephemeral.create(
            tx, ctx.caller, ctx.sealer, body.reference, body.ttl_minutes, body.rcus
        )
    )
    answer = EphemeralWorkspace(
        made.organization_public_id,
        made.parent_public_id,
        made.reference,
        made.api_key,
        iso(made.expires_at),
    )
    return Answer(answer, 201 if is_new else 200)


@post(
    "/organizations/{orgId}/ephemeral-workspaces/{childOrgId}/retire",
    id="retireEphemeralWorkspace",
    tag="Organizations",
    scope="org:write",
    answer=RetiredWorkspace,
)
async def retire_ephemeral_workspace(ctx: Ctx, child_org_id: str) -> RetiredWorkspace:
    """Retire an ephemeral workspace.

    Its key is revoked and its session cancelled. What was recorded stays.
    """
    at = await ctx.write(lambda tx: ephemeral.retire(tx, ctx.caller, child_org_id))
    return RetiredWorkspace(child_org_id, iso(at))


routes: list[Route] = [create_ephemeral_workspace, retire_ephemeral_workspace]
