"""What happened in a conversation."""

from typing import Any

from litestar import Response

from stenograph.accounts.access import Caller
from stenograph.conversations import access, events
from stenograph.http import paging, sse
from stenograph.http.agent_api import following, wire
from stenograph.http.agent_api.common import C
from stenograph.http.agent_api.following import ITEMS, Items
from stenograph.http.context import Ctx
from stenograph.http.parameters import Choice, Cursor, Integer
from stenograph.http.route import EventStream, Route, get
from stenograph.storage.database import Tx

AFTER = Cursor(
    name="after",
    decode=paging.parse_event_cursor,
    blank=True,
    about="The cursor of the last event you handled.",
)
LIMIT = Integer(
    name="limit", default=100, low=1, high=200, lenient=True, about="How many a page holds."
)
KINDS: Choice[Items] = Choice(
    name="items",
    options=ITEMS,
    default="events",
    about="What is followed: the journal, its `lifecycle`, the `transcript` as it is written, or"
    " the `progress` of runs and tasks.",
)


@get(
    C + "/events",
    id="listConversationEvents",
    tag="Events",
    query=[AFTER, LIMIT],
    answer=wire.Events,
)
async def list_events(ctx: Ctx, workspace: str, conversation: str) -> wire.Events:
    """List the events behind a cursor, oldest first.

    An empty page whose `watermark` is ahead of you means that events have expired: rebuild from
    the current state.
    """

    def look(tx: Tx) -> wire.Events:
        found = access.find(tx, ctx.caller, workspace, conversation)
        after = AFTER.read(ctx.query) or 0
        page = events.page(tx, found, after, LIMIT.read(ctx.query))
        return wire.Events(
            events=[following.as_event(found.public_id, one) for one in page],
            pagination=wire.EventPagination(
                next_after=paging.event_cursor(page[-1].sequence) if page else None,
                watermark=events.watermark(found),
            ),
        )

    return await ctx.read(look)


@get(
    C + "/events/stream",
    id="streamConversationEvents",
    tag="Events",
    query=[KINDS, AFTER],
    answer=EventStream,
)
async def stream_events(ctx: Ctx, workspace: str, conversation: str) -> Response[Any]:
    """Follow a conversation.

    Server-sent events (`text/event-stream`), without end until a `conversation_ended` is the newest
    event, your access or your key ends, or the server asks you to come back by closing.

    `events` and `lifecycle` begin behind `after`, or with the first event, and go on with what
    comes, each event once and in order; `id` is its cursor, and a client that comes back with
    `Last-Event-ID` misses nothing. When you have all there is, an event `watermark` says how far
    that goes: events below it that you did not get have expired.

    `transcript` and `progress` begin with what comes, or behind `after`. Of a transcript
    `text_delta`, `reasoning_delta`, `tool_call_started`, `tool_call_arguments_delta` and
    `stream_reset` (what was heard of this round counts no more) are told once and not kept;
    `round`, `call` and `turn` say what is settled. Of progress the frames `turn`, `run` and `task`
    say how these stand. While a call is made, `tool_output` has the end of what it has written so
    far, and how many `characters` that is in all, and `tool_progress` has, of an MCP server's tool,
    `progress`, and `total` and `message` if the server names them: told and not kept. A reader that
    falls behind gets a last event `error` with the code `slow_reader`.
    """
    door = sse.door(ctx, "member")

    def begin(tx: Tx, caller: Caller) -> following.Begun:
        access.find(tx, caller, workspace, conversation)
        query = sse.last_event_id(ctx, AFTER.name)
        items, after = KINDS.read(query), AFTER.read(query)
        if after is None and items in ("events", "lifecycle"):
            after = 0
        return following.begin(tx, caller, workspace, conversation, items, after)

    begun = await door.read(begin)
    return sse.stream(ctx, following.followed(door, ctx.sealer, begun, greets=True))


routes: list[Route] = [list_events, stream_events]
