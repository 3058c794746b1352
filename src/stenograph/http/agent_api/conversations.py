"""Conversations: listing, making and reading them."""

from typing import Any

import msgspec

from stenograph import clock
from stenograph.conversations import access
from stenograph.conversations import conversation as conversations
from stenograph.conversations.access import Conversation
from stenograph.conversations.conversation import KEYS, Document, Entry, OrderBy, Usage, Which
from stenograph.conversations.input import LIMIT
from stenograph.errors import RefusedError
from stenograph.http import idempotency, paging
from stenograph.http.agent_api import wire
from stenograph.http.agent_api.common import (
    AFTER,
    ORDER,
    PAGE,
    C,
    Mask,
    cost,
    key_after,
    mask,
    moment,
    next_page,
)
from stenograph.http.context import Ctx
from stenograph.http.parameters import Choice, Flag
from stenograph.http.route import Answer, Route, get, post
from stenograph.sessions import conversing
from stenograph.storage.database import Tx

SIDE = Flag(name="side", about="Only side conversations.")
ORDER_BY: Choice[OrderBy] = Choice(
    name="order_by",
    options=("public_id", "last_activity_at"),
    default="public_id",
    about="By creation, or by when something last happened.",
)


def _line(found: Document, cover: Mask) -> dict[str, Any]:
    parent = None
    if found.parent is not None:
        parent = wire.Parent(
            public_id=found.parent,
            spawn_node_key=found.spawn_key,
            label=cover.text(found.label),
        )
    return {
        "public_id": found.public_id,
        "title": cover.text(found.title),
        "answering_user_public_id": found.answerer,
        "archived_at": moment(found.archived_at),
        "billing_subject": cover.text(found.billing_subject),
        "parent": parent,
        "forked_from_turn_public_id": found.forked_from_turn,
        "forked_from_variant_public_id": found.forked_from_variant,
        "source_conversation_public_id": found.source,
        "side": bool(found.side),
        "active_turn_public_id": found.active_turn,
        "context_revision": found.context_revision,
        "last_activity_at": clock.iso_seconds(found.last_activity_at),
        "created_at": clock.iso_seconds(found.created_at),
        "updated_at": clock.iso_seconds(found.updated_at),
    }


def document(ctx: Ctx, tx: Tx, found: Conversation) -> wire.ConversationAnswer:
    """Write a conversation in full."""
    facts = conversations.document(tx, found)
    around = conversations.surroundings(tx, found)
    cover = mask(ctx, tx, [found.id])
    context = None
    if around.context is not None:
        last = around.context
        named = [name for name in (last.provider_id, last.model_ref) if name]
        context = wire.Context(
            used_tokens=last.prompt_tokens + last.completion_tokens,
            input_tokens=last.prompt_tokens,
            output_tokens=last.completion_tokens,
            cache_read_tokens=last.cached_tokens,
            window_tokens=None,
            used_percent=None,
            as_of_model=cover.text("/".join(named) or None),
        )
    return wire.ConversationAnswer(
        conversation=wire.Conversation(
            **_line(facts, cover),
            metadata=cover.json(msgspec.json.decode(facts.metadata)),
            memory_context=None,
            input_queue=wire.InputQueue(limit=LIMIT, held=False),
            latest_event_cursor=paging.event_cursor(facts.next_sequence - 1),
            context=context,
            usage_summary=_usage(around.usage),
            default_runner=None,
            access=wire.Access(
                default=facts.access_default,
                entries=[
                    wire.AccessEntry(user_public_id=who, handle=handle, level=level)
                    for who, handle, level in around.entries
                ],
            ),
        )
    )


def _usage(found: Usage) -> wire.UsageSummary:
    prompt, cached = found.prompt_tokens, found.cached_tokens
    return wire.UsageSummary(
        request_count=found.requests,
        input_tokens=prompt,
        cache_read_tokens=cached,
        uncached_input_tokens=max(prompt - cached, 0),
        cache_creation_tokens=found.cache_write_tokens,
        cache_hit_rate=round(cached / prompt, 4) if prompt else None,
        output_tokens=found.completion_tokens,
        reasoning_tokens=found.reasoning_tokens,
        total_tokens=prompt + found.completion_tokens,
        cost_amount=cost(found.cost_usd),
        cost_complete=not found.uncosted,
        cost_unit="usd",
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
            conversations=[wire.ConversationLine(**_line(one, cover)) for one in found[:limit]],
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
                access_default=named.default,
                entries=[_entry(entry) for entry in named.entries],
            )
            conversing.begin(tx, ctx.caller, made.id)
            return made.public_id, document(ctx, tx, made)

        def again(public_id: str) -> wire.ConversationAnswer:
            return document(ctx, tx, access.find(tx, ctx.caller, workspace, public_id))

        return idempotency.once(tx, sent, make, again)

    return await ctx.write(act)


def _check(new: wire.NewConversation) -> None:
    """Refuse what this server has nothing for."""
    if new.default_runner_executor_public_id is not None:
        raise RefusedError("There is no such runner", code="runner_not_eligible")
    if new.memory_context is not None:
        raise RefusedError("This server keeps no memory documents; leave memory_context out")


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


routes: list[Route] = [
    list_conversations,
    list_archived,
    list_children,
    create_conversation,
    get_conversation,
]
