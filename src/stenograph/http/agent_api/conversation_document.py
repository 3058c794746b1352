"""How a conversation is written, in short and in full."""

from typing import Any

import msgspec

from stenograph import clock
from stenograph.conversations import conversation as conversations
from stenograph.conversations.access import Conversation
from stenograph.conversations.conversation import Document
from stenograph.conversations.input import LIMIT
from stenograph.conversations.runner import Runner
from stenograph.conversations.usage import Context, Usage
from stenograph.engine.models.catalog import PROVIDERS, ModelId
from stenograph.engine.models.windows import window
from stenograph.http import paging
from stenograph.http.agent_api import wire
from stenograph.http.agent_api.common import Mask, cost, mask, moment
from stenograph.http.context import Ctx
from stenograph.storage.database import Tx


def line(found: Document, cover: Mask) -> dict[str, Any]:
    """Write the members that lists have."""
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
    return wire.ConversationAnswer(
        conversation=wire.Conversation(
            **line(facts, cover),
            metadata=cover.json(msgspec.json.decode(facts.metadata)),
            memory_context=None,
            input_queue=wire.InputQueue(limit=LIMIT, held=around.held),
            latest_event_cursor=paging.event_cursor(facts.next_sequence - 1),
            context=None if around.context is None else _context(around.context, cover),
            usage_summary=usage(around.usage),
            default_runner=None if around.runner is None else runner(around.runner, cover),
            access=wire.Access(
                default=facts.access_default,
                entries=[
                    wire.AccessEntry(
                        user_public_id=one.public_id, handle=one.handle, level=one.level
                    )
                    for one in around.entries
                ],
            ),
        )
    )


def _context(last: Context, cover: Mask) -> wire.Context:
    named = [name for name in (last.provider_id, last.model_ref) if name]
    used = last.prompt_tokens + last.completion_tokens
    size = _window(last)
    return wire.Context(
        used_tokens=used,
        input_tokens=last.prompt_tokens,
        output_tokens=last.completion_tokens,
        cache_read_tokens=last.cached_tokens,
        window_tokens=size,
        used_percent=None if size is None else round(100 * used / size, 1),
        as_of_model=cover.text("/".join(named) or None),
    )


def _window(last: Context) -> int | None:
    """Return how much the model takes; None for one of a provider that nobody knows here."""
    if last.provider_id is None or last.provider_id not in PROVIDERS or not last.model_ref:
        return None
    return window(ModelId(last.provider_id, last.model_ref))


def runner(found: Runner, cover: Mask) -> wire.DefaultRunner:
    """Write a default runner."""
    return wire.DefaultRunner(executor_public_id=found.public_id, name=cover.text(found.name) or "")


def usage(found: Usage) -> wire.UsageSummary:
    """Write what model calls took together."""
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
