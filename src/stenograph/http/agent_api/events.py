"""What happened in a conversation."""

from stenograph import clock
from stenograph.conversations import access, events
from stenograph.http import paging
from stenograph.http.agent_api import wire
from stenograph.http.agent_api.common import C
from stenograph.http.context import Ctx
from stenograph.http.parameters import Cursor, Integer
from stenograph.http.route import Route, get
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
        resource = wire.Resource(type="conversation", public_id=found.public_id)
        return wire.Events(
            events=[
                wire.Event(
                    public_id=one.public_id,
                    sequence=one.sequence,
                    cursor=paging.event_cursor(one.sequence),
                    type=one.type,
                    resource=resource,
                    occurred_at=clock.iso_seconds(one.occurred_at),
                    payload=one.payload,
                )
                for one in page
            ],
            pagination=wire.EventPagination(
                next_after=paging.event_cursor(page[-1].sequence) if page else None,
                watermark=events.watermark(found),
            ),
        )

    return await ctx.read(look)


routes: list[Route] = [list_events]
