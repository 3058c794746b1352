"""Finding what was said, and reading up on a conversation."""

import asyncio
from collections.abc import Callable, Collection

from stenograph import clock
from stenograph.conversations import access, history, search, search_index
from stenograph.conversations import conversation as conversations
from stenograph.conversations.access import Conversation
from stenograph.conversations.history import History
from stenograph.conversations.search import Archived, Key, Masking, Page
from stenograph.http import paging
from stenograph.http.agent_api import wire, wire_search
from stenograph.http.agent_api.common import C, mask
from stenograph.http.agent_api.turns import AFTER as AFTER_POSITION
from stenograph.http.agent_api.turns import BEFORE as BEFORE_POSITION
from stenograph.http.context import Ctx
from stenograph.http.parameters import Choice, Cursor, Flag, Integer, Text, invalid
from stenograph.http.route import Route, get
from stenograph.storage.database import Tx

QUERY = Text(
    name="query",
    max_bytes=1_024,
    required=True,
    about="Keywords, up to 1,024 bytes. A field matches that holds each of them, in any form.",
)
ARCHIVED: Choice[Archived] = Choice(
    name="archived",
    options=("exclude", "include", "only"),
    default="exclude",
    about="Whether archived conversations are looked at.",
)
AUXILIARY = Flag(name="include_auxiliary", about="Side conversations and subagents too.")
LIMIT = Integer(
    name="limit", default=20, low=1, high=50, lenient=True, about="How many a page holds."
)
AROUND = Text(name="around_turn_public_id", about="The turn to read around.")

_COLUMNS: dict[str, type] = {"turn": int, "conversation": str, "field": str}


def _key(text: str) -> Key | None:
    found = paging.parse_keyset_cursor(text, "desc", _COLUMNS)
    if found is None or not 0 <= found["turn"] < 2**61:
        return None
    return Key(-found["turn"], found["conversation"], found["field"])


def _cursor(key: Key | None) -> str | None:
    if key is None:
        return None
    return paging.keyset_cursor(
        "desc", turn=-key.turn, conversation=key.conversation, field=key.field
    )


AFTER = Cursor(name="after", decode=_key, about="`next_after` of the page before.")


def _masking(ctx: Ctx, tx: Tx) -> Masking:
    """Say how the secrets of conversations are masked in their texts."""

    def masking(conversation_ids: Collection[int]) -> Callable[[str], str] | None:
        redactor = mask(ctx, tx, list(conversation_ids)).redactor
        return None if redactor is None else redactor.text

    return masking


@get(
    "/workspaces/{workspace}/conversation_search",
    id="searchConversations",
    tag="Search",
    query=[QUERY, ARCHIVED, AUXILIARY, LIMIT, AFTER],
    answer=wire_search.Matches,
)
async def search_conversations(ctx: Ctx, workspace: str) -> wire_search.Matches:
    """Find turns by keywords in their prompt, answer or steers, and conversations by their title.

    English words match in every form (`running` finds `runs`), Chinese, Japanese, Korean and Thai
    where the characters stand together. Reasoning, tool output, candidates that are not shown and
    summaries are not searched. A turn that forks inherit is a match in each of them that you may
    read. A field's first 100,000 characters are searched.
    """

    def look(tx: Tx) -> wire_search.Matches:
        found = access.find_workspace(tx, ctx.caller, workspace)
        text = QUERY.read(ctx.query) or ""
        if not text.strip():
            raise invalid(QUERY.name)
        page = search.find(
            tx,
            ctx.caller,
            found,
            text,
            masking=_masking(ctx, tx),
            archived=ARCHIVED.read(ctx.query),
            auxiliary=AUXILIARY.read(ctx.query),
            limit=LIMIT.read(ctx.query),
            after=AFTER.read(ctx.query),
        )
        return _matches(page)

    def find() -> wire_search.Matches:
        with ctx.database.once() as tx:
            found = access.find_workspace(tx, ctx.caller, workspace)
        # What was written before this request is found by it.
        search_index.catch_up_for(ctx.database, found.id)
        with ctx.database.read() as tx:
            return look(tx)

    # In a thread on SQLite too: many common words can take a tenth of a second.
    return await asyncio.to_thread(find)


def _matches(page: Page) -> wire_search.Matches:
    return wire_search.Matches(
        matches=[
            wire_search.Match(
                conversation_public_id=match.conversation,
                title=match.title,
                turn_public_id=match.turn,
                variant_public_id=match.variant,
                position=match.position,
                field=match.field,
                inherited=match.inherited,
                excerpt=match.excerpt,
                truncated=match.truncated,
            )
            for match in page.matches
        ],
        pagination=wire.KeysetPagination(next_after=_cursor(page.next_after)),
    )


@get(
    C + "/history",
    id="readConversationHistory",
    tag="Search",
    query=[AROUND, BEFORE_POSITION, AFTER_POSITION, LIMIT],
    answer=wire_search.History,
)
async def read_history(ctx: Ctx, workspace: str, conversation: str) -> wire_search.History:
    """Read up on a conversation: its newest turns, those around a turn, or those beside a position.

    Give at most one of the three places. Texts are shortened; read a turn for the whole of it.
    Hidden turns and summaries are left out.
    """

    def look(tx: Tx) -> wire_search.History:
        found = access.find(tx, ctx.caller, workspace, conversation)
        places = (AROUND, BEFORE_POSITION, AFTER_POSITION)
        if sum(place.name in ctx.query for place in places) > 1:
            raise invalid([place.name for place in places if place.name in ctx.query][1])
        read = history.read(
            tx,
            found,
            masking=_masking(ctx, tx),
            around=AROUND.read(ctx.query),
            before=BEFORE_POSITION.find(ctx.query),
            after=AFTER_POSITION.find(ctx.query),
            limit=LIMIT.read(ctx.query),
        )
        return _history(ctx, tx, found, read)

    return await ctx.read(look)


def _history(ctx: Ctx, tx: Tx, conversation: Conversation, read: History) -> wire_search.History:
    cover = mask(ctx, tx, [conversation.id])
    entries = read.entries
    return wire_search.History(
        conversation=wire_search.HistoryConversation(
            public_id=conversation.public_id,
            title=cover.text(conversations.document(tx, conversation).title),
        ),
        turns=[
            wire_search.HistoryTurn(
                public_id=entry.turn.public_id,
                position=entry.turn.position,
                kind=entry.turn.kind,
                role=entry.turn.role,
                created_at=clock.iso_seconds(entry.turn.created_at),
                prompt=entry.prompt,
                steers=entry.steers,
                content=entry.content,
                truncated=entry.truncated,
            )
            for entry in entries
        ],
        pagination=wire_search.HistoryPagination(
            before_position=entries[0].turn.position if entries else None,
            after_position=entries[-1].turn.position if entries else None,
            has_older=read.has_older,
            has_newer=read.has_newer,
        ),
        truncated=read.truncated,
    )


routes: list[Route] = [search_conversations, read_history]
