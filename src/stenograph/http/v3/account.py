"""Who a key belongs to: `getSelf`."""

import msgspec

from stenograph.accounts import scopes
from stenograph.http.context import Ctx
from stenograph.http.route import ANY_KEY, Route, get


class Self(msgspec.Struct):
    """The organization, person and scopes of a key; `role` is null for an agent's key."""

    org_id: str
    org_slug: str
    org_name: str
    user_id: str
    kind: str
    role: str | None
    scopes: list[str]


@get("/self", id="getSelf", tag="Account", scope=ANY_KEY, answer=Self)
async def get_self(ctx: Ctx) -> Self:
    """Verify a key and resolve the organization it belongs to.

    Any valid key may call this, whatever its scopes.
    """
    caller = ctx.caller
    return Self(
        org_id=caller.organization_public_id,
        org_slug=caller.organization_slug,
        org_name=caller.organization_name,
        user_id=caller.principal_public_id,
        kind=caller.kind,
        role=caller.role,
        scopes=scopes.listed(caller.scopes),
    )


routes: list[Route] = [get_self]
