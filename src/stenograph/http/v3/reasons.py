"""Reasons: made, read, changed, shared and deleted by their owner, read by others."""

from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from stenograph.errors import InvalidInputError
from stenograph.http.context import Ctx
from stenograph.http.masking import masked
from stenograph.http.route import Route, delete, get, patch, post, put
from stenograph.http.v3 import lists, wire
from stenograph.http.v3.lists import AFTER, FIRST
from stenograph.http.v3.models import model
from stenograph.sessions import ending, reason, secret
from stenograph.sessions.reason import Profile
from stenograph.storage.database import Tx

Name = Annotated[str, Meta(min_length=1, max_length=200)]
Instructions = Annotated[str, Meta(max_length=100_000)]
Repositories = Annotated[
    list[Annotated[str, Meta(min_length=1, max_length=500)]], Meta(max_length=100)
]


class NewReason(msgspec.Struct):
    """What a Reason is made with."""

    name: Name
    instructions: Instructions = ""
    default_model: str | None = None
    repositories: Repositories = []
    is_main: bool = False


class ReasonChange(msgspec.Struct):
    """What is to be another; what is left out stays."""

    name: Name | UnsetType = UNSET
    instructions: Instructions | UnsetType = UNSET
    default_model: str | UnsetType | None = UNSET
    repositories: Repositories | UnsetType = UNSET
    is_main: bool | UnsetType = UNSET


class Shares(msgspec.Struct):
    """The whole list of people that may read the Reason, by id or handle."""

    people: Annotated[list[str], Meta(max_length=1000)]


_MAIN = {409: "There is a main Reason already (`main_reason_exists`)."}


@post(
    "/organizations/{orgId}/reasons",
    id="createReason",
    tag="Reasons",
    scope="run",
    body=NewReason,
    status=201,
    answer=wire.Reason,
    errors=_MAIN,
)
async def create_reason(ctx: Ctx) -> wire.Reason:
    """Create a Reason.

    It belongs to the person whose key this is; each has one main Reason at most.
    """
    body = ctx.body(NewReason)
    profile = Profile(
        _name(body.name),
        body.instructions,
        model(body.default_model),
        body.repositories,
        body.is_main,
    )
    return wire.as_reason(await ctx.write(lambda tx: reason.create(tx, ctx.caller, profile)))


@get(
    "/organizations/{orgId}/reasons",
    id="listReasons",
    tag="Reasons",
    scope="sessions:read",
    query=[FIRST, AFTER],
    answer=wire.ReasonPage,
)
async def list_reasons(ctx: Ctx) -> wire.ReasonPage:
    """List Reasons.

    The caller's own and those shared with them, the oldest first. Cursor-paginated: pass
    `end_cursor` as `after`.
    """
    first, after = FIRST.read(ctx.query), lists.read_cursor(ctx.query, "asc")

    def look(tx: Tx) -> tuple[wire.ReasonPage, tuple[str, ...]]:
        found = reason.listed(tx, ctx.caller, after=after or 0, limit=first + 1)
        kept = found[:first]
        end = lists.cursor("asc", kept[-1].id) if kept else AFTER.read(ctx.query)
        page = wire.ReasonPage([wire.as_reason(r) for r in kept], len(found) > first, end)
        return page, _secrets(ctx, tx, kept)

    return masked(*await ctx.read(look))


@get(
    "/organizations/{orgId}/reasons/{reasonId}",
    id="getReason",
    tag="Reasons",
    scope="sessions:read",
    answer=wire.Reason,
)
async def get_reason(ctx: Ctx, reason_id: str) -> wire.Reason:
    """Read a Reason.

    Readable by its owner and the people it is shared with.
    """

    def look(tx: Tx) -> tuple[wire.Reason, tuple[str, ...]]:
        found = reason.find(tx, ctx.caller, reason_id)
        return wire.as_reason(found), _secrets(ctx, tx, [found])

    return masked(*await ctx.read(look))


@patch(
    "/organizations/{orgId}/reasons/{reasonId}",
    id="updateReason",
    tag="Reasons",
    scope="run",
    body=ReasonChange,
    answer=wire.Reason,
    errors=_MAIN,
)
async def update_reason(ctx: Ctx, reason_id: str) -> wire.Reason:
    """Change a Reason.

    Only its owner may. What is left out of the body stays as it is.
    """

    def act(tx: Tx) -> tuple[wire.Reason, tuple[str, ...]]:
        known = reason.require_own(ctx.caller, reason.find(tx, ctx.caller, reason_id))
        body = ctx.body(ReasonChange)
        profile = Profile(
            name=known.name if body.name is UNSET else _name(body.name),
            instructions=known.instructions if body.instructions is UNSET else body.instructions,
            default_model=known.default_model
            if body.default_model is UNSET
            else model(body.default_model),
            repositories=known.repositories if body.repositories is UNSET else body.repositories,
            is_main=known.is_main if body.is_main is UNSET else body.is_main,
        )
        found = reason.update(tx, ctx.caller, reason_id, profile)
        return wire.as_reason(found), _secrets(ctx, tx, [found])

    return masked(*await ctx.write(act))


@delete(
    "/organizations/{orgId}/reasons/{reasonId}",
    id="deleteReason",
    tag="Reasons",
    scope="run",
    answer=wire.Deleted,
)
async def delete_reason(ctx: Ctx, reason_id: str) -> wire.Deleted:
    """Delete a Reason.

    Only its owner may. Its sessions go with it; those that run are cancelled.
    """
    await ctx.write(lambda tx: ending.delete_reason(tx, ctx.caller, reason_id))
    return wire.Deleted(reason_id)


@put(
    "/organizations/{orgId}/reasons/{reasonId}/shares",
    id="replaceReasonShares",
    tag="Reasons",
    scope="run",
    body=Shares,
    answer=wire.Reason,
)
async def replace_reason_shares(ctx: Ctx, reason_id: str) -> wire.Reason:
    """Say who may read a Reason.

    The whole list: who is not in it may not read the Reason any more. Only its owner may. Those it
    is shared with read its messages and sessions; they cannot send to it or change it.
    """

    def act(tx: Tx) -> tuple[wire.Reason, tuple[str, ...]]:
        reason.require_own(ctx.caller, reason.find(tx, ctx.caller, reason_id))
        found = reason.share(tx, ctx.caller, reason_id, ctx.body(Shares).people)
        return wire.as_reason(found), _secrets(ctx, tx, [found])

    return masked(*await ctx.write(act))


def _name(text: str) -> str:
    if not text.strip() or not text.isprintable():
        raise InvalidInputError("A name is one line that is not blank", code="invalid_name")
    return text.strip()


def _secrets(ctx: Ctx, tx: Tx, found: Sequence[reason.Reason]) -> tuple[str, ...]:
    ids = [r.conversation_id for r in found if r.conversation_id is not None]
    return secret.values_many(tx, ctx.sealer, ids)


routes: list[Route] = [
    create_reason,
    list_reasons,
    get_reason,
    update_reason,
    delete_reason,
    replace_reason_shares,
]
