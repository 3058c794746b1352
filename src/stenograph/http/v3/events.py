"""A session's events, as they happen."""

import asyncio
from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from litestar import Response
from msgspec import UNSET, Meta, UnsetType

from stenograph.accounts.access import Caller
from stenograph.clock import iso
from stenograph.events.live import Frame, Topic
from stenograph.events.waiting import Waiter
from stenograph.http import sse
from stenograph.http.context import Ctx
from stenograph.http.following import Looked, Sent, edge, follow
from stenograph.http.masking import excerpt, margin, masked
from stenograph.http.parameters import Flag, Integer
from stenograph.http.route import EventStream, Route, get
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
_TRANSCRIPT = Flag(
    name="transcript", about="What a model says is told while it says it, and not only when it has."
)
#: Items that one look of a stream reads.
_STREAMED = 100


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
    items = _page(tx, ctx.caller, found.id, after, limit, secrets)
    if not (items or last or found.status != "running"):
        return None
    (written,), _ = shown(ctx, tx, [found])
    next_seq = items[-1].seq if items else after
    return masked(SessionEvents(written, _events(items, secrets), next_seq), secrets)


@get(
    "/organizations/{orgId}/sessions/{sessionId}/events/stream",
    id="streamSessionEvents",
    tag="Sessions",
    scope="sessions:read",
    query=[_AFTER, _TRANSCRIPT],
    answer=EventStream,
)
async def stream_session_events(ctx: Ctx, session_id: str) -> Response[Any]:
    """Follow a Session's events.

    Server-sent events (`text/event-stream`): the items of `listSessionEvents`, each once and in
    order, `id` being its `seq`; a client that comes back with `Last-Event-ID` misses nothing. When
    the session ends, a last event `session` holds it as it stands.

    With `transcript=1`, what a model says is also told while it says it, without `seq`, and not
    kept: `text_delta`, `reasoning_delta`, `tool_call_started`, `tool_call_arguments_delta`, and
    `stream_reset` when what was heard of this round counts no more. And how far a call is:
    `tool_output` has the end of what a command or a script has written so far, and how many
    `characters` that is in all; `tool_progress` has, of an MCP server's tool, `progress`, and
    `total` and `message` if the server names them. A reader that falls behind gets a last event
    `error` with the code `slow_reader`.
    """
    door = sse.door(ctx, "api")

    def begin(tx: Tx, caller: Caller) -> tuple[int, int, bool]:
        found = session.find(tx, caller, session_id)
        query = sse.last_event_id(ctx, _AFTER.name)
        return found.id, _AFTER.read(query), _TRANSCRIPT.read(query)

    conversation_id, after, tells = await door.read(begin)

    def look(tx: Tx, caller: Caller, after: int, upto: int | None) -> Looked:
        return _followed(ctx, tx, caller, session_id, after, upto)

    topics: tuple[Topic, ...] = ("transcript", "progress") if tells else ()
    return sse.stream(ctx, follow(door, conversation_id, look, after, topics, _told))


def _followed(
    ctx: Ctx, tx: Tx, caller: Caller, session_id: str, after: int, upto: int | None
) -> Looked:
    found = session.find(tx, caller, session_id)
    secrets = secret.values(tx, ctx.sealer, found.id)
    end, is_all = edge(tx, found.id, upto)
    page = _page(tx, caller, found.id, after, _STREAMED, secrets)
    items = masked(_events([it for it in page if it.seq <= end], secrets), secrets)
    sent = [Sent(it.type, it, str(it.seq)) for it in items]
    if len(items) == _STREAMED:
        return Looked(sent, items[-1].seq, more=True)
    over = found.status != "running" and is_all
    if over:
        (written,), _ = shown(ctx, tx, [found])
        sent.append(Sent("session", masked(written, secrets)))
    return Looked(sent, max(after, end), more=False, over=over)


def _told(frame: Frame) -> Sent:
    data = dict(frame.data)
    named = {"turn_id": data.pop("turn_public_id"), "task_key": data.pop("task_key", None)}
    for name in ("variant_public_id", "run_public_id"):
        data.pop(name, None)
    return Sent(frame.type, {"type": frame.type, "data": named | data})


def _page(
    tx: Tx, caller: Caller, session_id: int, after: int, limit: int, secrets: tuple[str, ...]
) -> list[Activity]:
    longest = PREVIEW + margin(secrets)
    diagnostic = "sessions:debug" in caller.scopes and caller.is_admin
    return activity.page(tx, session_id, after, limit, diagnostic=diagnostic, longest=longest)


def _events(items: Sequence[Activity], secrets: tuple[str, ...]) -> list[SessionEvent]:
    """Write items, with results cut; what else holds a secret is for the caller to mask."""
    _cut_results(items, secrets)
    return [_event(item) for item in items]


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


routes: list[Route] = [list_session_events, stream_session_events]
