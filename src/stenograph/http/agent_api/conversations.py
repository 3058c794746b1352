"""Conversations: listing, making, reading and naming them."""

from collections.abc import Sequence

from stenograph.conversations import access
from stenograph.conversations import conversation as conversations
from stenograph.conversations.access_list import Entry
from stenograph.conversations.conversation import KEYS, OrderBy, Which
from stenograph.errors import RefusedError
from stenograph.http import idempotency
from stenograph.http.agent_api import wire
from stenograph.http.agent_api.common import (
    AFTER,
    ORDER,
    PAGE,
    C,
    key_after,
    mask,
    next_page,
)
from stenograph.http.agent_api.conversation_document import document, line
from stenograph.http.context import Ctx
from stenograph.http.parameters import Choice, Flag
from stenograph.http.route import Answer, Route, get, patch, post
from stenograph.sessions import conversing
from stenograph.storage.database import Tx

SIDE = Flag(name="side", about="Only side conversations.")
ORDER_BY: Choice[OrderBy] = Choice(
    name="order_by",
    options=("public_id", "last_activity_at"),
    default="public_id",
    about="By creation, or by when something last happened.",
)


async def _listed(
    ctx: Ctx, workspace: str, which: Which, parent: str | None = None
) -> wire.Conversations:
    """Read a page of one of the lists."""

    def look(tx: Tx) -> wire.Conversations:
        home = access.find_workspace(tx, ctx.caller, workspace)
        above = None if parent is None else access.find(tx, ctx.caller, workspace, parent)
        kind: Which = "sides" if which == "working" and SIDE.read(ctx.query) else which
        by = ORDER_BY.read(ctx.query)
        limit, order = PAGE.read(ctx.query), ORDER.read(ctx.query)
        found = conversations.page(
            tx,
            ctx.caller,
            home,
            kind,
            parent=above,
            order_by=by,
            descending=order == "desc",
            after=key_after(ctx, order, KEYS[by]),
            limit=limit + 1,
        )
        last = found[limit - 1].key(by) if len(found) > limit else None
        cover = mask(ctx, tx, [one.id for one in found])
        return wire.Conversations(
            conversations=[wire.ConversationLine(**line(one, cover)) for one in found[:limit]],
            pagination=next_page(order, KEYS[by], last),
        )

    return await ctx.read(look)


@get(
    "/workspaces/{workspace}/conversations",
    id="listConversations",
    tag="Conversations",
    query=[PAGE, AFTER, ORDER, ORDER_BY, SIDE],
    answer=wire.Conversations,
)
async def list_conversations(ctx: Ctx, workspace: str) -> wire.Conversations:
    """List the conversations of a workspace: those at the top that are not archived."""
    return await _listed(ctx, workspace, "working")


@get(
    "/workspaces/{workspace}/conversations/archived",
    id="listArchivedConversations",
    tag="Conversations",
    query=[PAGE, AFTER, ORDER, ORDER_BY],
    answer=wire.Conversations,
)
async def list_archived(ctx: Ctx, workspace: str) -> wire.Conversations:
    """List the archived conversations of a workspace."""
    return await _listed(ctx, workspace, "archived")


@get(
    C + "/children",
    id="listConversationChildren",
    tag="Conversations",
    query=[PAGE, AFTER, ORDER, ORDER_BY],
    answer=wire.Conversations,
)
async def list_children(ctx: Ctx, workspace: str, conversation: str) -> wire.Conversations:
    """List the conversations of subagents that a conversation started."""
    return await _listed(ctx, workspace, "children", conversation)


@post(
    "/workspaces/{workspace}/conversations",
    id="createConversation",
    tag="Conversations",
    body=wire.ConversationBody,
    idempotency="required",
    answer=wire.ConversationAnswer,
    status=201,
    errors={
        409: "`workspace_not_active`, `entry_limit_reached`, or the key was used before.",
        422: "`answerer_not_eligible`, `runner_not_eligible`, `principal_not_eligible` or"
        " `validation_failed`.",
    },
)
async def create_conversation(ctx: Ctx, workspace: str) -> Answer:
    """Make a conversation. You have full access to it, as has who answers in it."""

    def act(tx: Tx) -> Answer:
        home = access.find_workspace(tx, ctx.caller, workspace)
        sent = idempotency.key(ctx)
        new = ctx.body(wire.ConversationBody).conversation

        def make() -> tuple[str, wire.ConversationAnswer]:
            _check(new)
            named = new.access or wire.NewAccess()
            made = conversations.create(
                tx,
                ctx.caller,
                home,
                title=new.title,
                metadata=new.metadata,
                billing_subject=new.billing_subject,
                answerer=new.answering_user_public_id,
                default_runner=new.default_runner_executor_public_id,
                access_default=named.default,
                entries=entries(named.entries),
            )
            conversing.begin(tx, ctx.caller, made.id)
            return made.public_id, document(ctx, tx, made)

        def again(public_id: str) -> wire.ConversationAnswer:
            return document(ctx, tx, access.find(tx, ctx.caller, workspace, public_id))

        return idempotency.once(tx, sent, make, again)

    return await ctx.write(act)


def _check(new: wire.NewConversation) -> None:
    """Refuse what this server has nothing for."""
    if new.memory_context is not None:
        raise RefusedError("This server keeps no memory documents; leave memory_context out")


def entries(new: Sequence[wire.NewEntry]) -> list[Entry]:
    """Read named access. Raises `RefusedError` (`principal_not_eligible`) if one names nobody."""
    return [_entry(one) for one in new]


def _entry(new: wire.NewEntry) -> Entry:
    who = new.user_public_id or new.handle
    if not who:
        raise RefusedError(
            "An access entry names someone by user_public_id or handle",
            code="principal_not_eligible",
        )
    return Entry(who, new.level)


@get(C, id="getConversation", tag="Conversations", answer=wire.ConversationAnswer)
async def get_conversation(ctx: Ctx, workspace: str, conversation: str) -> wire.ConversationAnswer:
    """Read a conversation with its usage, access and newest event."""
    return await ctx.read(
        lambda tx: document(ctx, tx, access.find(tx, ctx.caller, workspace, conversation))
    )


@patch(
    C,
    id="updateConversation",
    tag="Conversations",
    body=wire.ConversationChangeBody,
    answer=wire.ConversationAnswer,
    errors={
        409: "`conversation_archived` or `workspace_not_active`.",
        422: "`validation_failed`.",
    },
)
async def update_conversation(
    ctx: Ctx, workspace: str, conversation: str
) -> wire.ConversationAnswer:
    """Set the title, or all of the metadata; what you leave out stays as it is."""

    def act(tx: Tx) -> wire.ConversationAnswer:
        found = access.find(tx, ctx.caller, workspace, conversation)
        access.require_full(found)
        new = ctx.body(wire.ConversationChangeBody).conversation
        conversations.update(tx, found, title=new.title, metadata=new.metadata)
        return document(ctx, tx, found)

    return await ctx.write(act)


routes: list[Route] = [
    list_conversations,
    list_archived,
    list_children,
    create_conversation,
    get_conversation,
    update_conversation,
]
