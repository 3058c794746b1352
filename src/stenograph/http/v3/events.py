"""A session's events, as they happen."""

import asyncio
from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from stenograph.clock import iso
from stenograph.events.waiting import Waiter
from stenograph.http.context import Ctx
from stenograph.http.masking import excerpt, margin, masked
from stenograph.http.parameters import Integer
from stenograph.http.route import Route, get
from stenograph.http.v3 import wire
from stenograph.http.v3.sessions import shown
from stenograph.sessions import activity, secret, session
from stenograph.sessions.activity import Activity
from stenograph.storage.database import Tx

#: Characters of a tool's result that an event holds; the trajectory has it whole.
PREVIEW = 4_000

_AFTER = Integer(
    name="after_seq", default=-1, low=-1, about="Only events behind this `seq`; -1: from the start."
)
_LIMIT = Integer(name="limit", default=100, low=1, high=500, about="How many events come at once.")
_WAIT = Integer(
    name="wait_ms",
    default=0,
    high=20_000,
    about="How long to wait for an event if there is none: it answers as soon as something is"
    " committed or the session ends.",
)


class SessionEvent(msgspec.Struct):
    """Something that happened in a session."""

    seq: int
    type: Annotated[
        str,
        Meta(
            description="`message`, `assistant`, `tool`, `status`; with sessions:debug also the"
            " words of the journal."
        ),
    ]
    data: dict[str, Any]
    created_at: wire.Time
    text: str | UnsetType = UNSET


class SessionEvents(msgspec.Struct):
    """Events in order, and the session as it stands."""

    session: wire.Session
    items: list[SessionEvent]
    next_seq: Annotated[
        int,
        Meta(description="The last `seq` here, or the `after_seq` that was sent; poll with it."),
    ]


@get(
    "/organizations/{orgId}/sessions/{sessionId}/events",
    id="listSessionEvents",
    tag="Sessions",
    scope="sessions:read",
    query=[_AFTER, _LIMIT, _WAIT],
    answer=SessionEvents,
)
async def list_session_events(ctx: Ctx, session_id: str) -> SessionEvents:
    """List a Session's events.

    What was said, thought and done, in the order in which it was committed, with assistant text,
    reasoning and tool activity. A tool's result is cut after 4,000 characters. With
    `sessions:debug`, which only owners and admins hold, also diagnostic kinds, status text and raw
    metadata. What retention deleted is gone from an event, which stays.
    """
    found = await ctx.read(lambda tx: session.find(tx, ctx.caller, session_id))
    after, limit = _AFTER.read(ctx.query), _LIMIT.read(ctx.query)
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _WAIT.read(ctx.query) / 1000
    # Registered before the look, so that what is committed in between wakes it.
    with Waiter(found.id) as waiter:
        while True:
            last = loop.time() >= deadline
            answer = await ctx.read(lambda tx: _look(ctx, tx, session_id, after, limit, last))  # noqa: B023
            if answer is not None:
                return answer
            await waiter.wait(deadline - loop.time())


def _look(
    ctx: Ctx, tx: Tx, session_id: str, after: int, limit: int, last: bool
) -> SessionEvents | None:
    """Return the answer; None while there is nothing to tell and more may come."""
    found = session.find(tx, ctx.caller, session_id)
    secrets = secret.values(tx, ctx.sealer, found.id)
    longest = PREVIEW + margin(secrets)
    diagnostic = "sessions:debug" in ctx.caller.scopes and ctx.caller.is_admin
    items = activity.page(tx, found.id, after, limit, diagnostic=diagnostic, longest=longest)
    if not (items or last or found.status != "running"):
        return None
    (written,), _ = shown(ctx, tx, [found])
    _cut_results(items, secrets)
    next_seq = items[-1].seq if items else after
    return masked(SessionEvents(written, [_event(item) for item in items], next_seq), secrets)


def _cut_results(items: Sequence[Activity], secrets: tuple[str, ...]) -> None:
    """Mask results and cut them, in this order: half a secret is in no list of secrets."""
    tools = [item.data for item in items if item.data.get("result_length") is not None]
    results = masked([data["result"] for data in tools], secrets)
    for data, result in zip(tools, results, strict=True):
        length = data["result_length"]
        data["result"] = excerpt(result, PREVIEW, length, secrets)
        data["result_truncated"] = length > PREVIEW
    for item in items:
        item.data.pop("result_length", None)


def _event(item: Activity) -> SessionEvent:
    text = UNSET if item.text is None else item.text
    return SessionEvent(item.seq, item.type, item.data, iso(item.occurred_at), text)


routes: list[Route] = [list_session_events]
