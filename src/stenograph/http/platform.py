"""What administrators set for their organization: how long execution detail is kept."""

from stenograph.errors import ForbiddenError
from stenograph.http.agent_api.wire import Shape
from stenograph.http.context import Ctx
from stenograph.http.route import Route, get, patch
from stenograph.retention import policy


class Account(Shape, kw_only=True):
    """An organization's policy; null: details stay."""

    execution_details_retention_days: int | None


class AccountBody(Shape, kw_only=True):
    """The policy, beneath the root that the family's bodies have."""

    account: Account


_ERRORS = {403: "`administrator_required`: only an owner or admin, and with the key's scope."}


@get(
    "/admin/account/retention",
    id="getRetention",
    tag="Retention",
    plane="platform",
    answer=AccountBody,
    errors=_ERRORS,
)
async def get_retention(ctx: Ctx) -> AccountBody:
    """Read after how many days execution details go."""
    _require(ctx, "org:read")
    days = await ctx.read(lambda tx: policy.retention_days(tx, ctx.caller))
    return AccountBody(account=Account(execution_details_retention_days=days))


@patch(
    "/admin/account/retention",
    id="setRetention",
    tag="Retention",
    plane="platform",
    body=AccountBody,
    answer=AccountBody,
    errors=_ERRORS | {422: "`validation_failed`: not a number of days from 1 to 36500, or null."},
)
async def set_retention(ctx: Ctx) -> AccountBody:
    """Set after how many days execution details go; null keeps them.

    A longer time, or none, brings nothing back.
    """
    _require(ctx, "org:write")
    days = ctx.body(AccountBody).account.execution_details_retention_days
    kept = await ctx.write(lambda tx: policy.set_retention_days(tx, ctx.caller, days))
    return AccountBody(account=Account(execution_details_retention_days=kept))


def _require(ctx: Ctx, scope: str) -> None:
    if scope not in ctx.caller.scopes:
        raise ForbiddenError(f"The key lacks {scope}", code="administrator_required")


routes: list[Route] = [get_retention, set_retention]
