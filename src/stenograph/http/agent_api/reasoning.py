"""Stored reasoning (seeds/stored-conversation-reasoning.md)."""

from stenograph.conversations import access
from stenograph.http.agent_api import wire_turns
from stenograph.http.agent_api.common import BEFORE, STRICT_PAGE, Mask, V, backward, mask, model
from stenograph.http.agent_api.variants import EXPIRED
from stenograph.http.context import Ctx
from stenograph.http.route import Route, get
from stenograph.runs import candidate, reasoning
from stenograph.storage.database import Tx


def _item(found: reasoning.Item, cover: Mask) -> wire_turns.ReasoningItem:
    return wire_turns.ReasoningItem(
        task_key=found.task_key,
        model=model(found.model, cover),
        available=found.text is not None,
        text=cover.text(found.text),
    )


@get(
    V + "/reasoning",
    id="getVariantReasoning",
    tag="Variants",
    query=[BEFORE, STRICT_PAGE],
    answer=wire_turns.Reasoning,
    errors={410: EXPIRED},
)
async def get_reasoning(
    ctx: Ctx, workspace: str, conversation: str, turn: str, variant: str
) -> wire_turns.Reasoning:
    """Read the displayable reasoning retained for one candidate answer.

    Of a run, each item is a visible model task's selected call, branch tasks included, the newest
    page first and each page in order of creation. A call that left nothing to display has
    `available: false` and no `text`. A direct reply has at most one item, without `task_key`; a
    message has none. Once execution details have been collected: 410 `execution_details_pruned`.
    """

    def look(tx: Tx) -> wire_turns.Reasoning:
        found = access.find(tx, ctx.caller, workspace, conversation)
        chosen = candidate.find(tx, found, turn, variant)
        candidate.require_details(chosen)
        before = BEFORE.read(ctx.query) or 0
        limit = STRICT_PAGE.read(ctx.query)
        page = reasoning.page(tx, chosen, before=before, limit=limit)
        cover = mask(ctx, tx, [found.id])
        return wire_turns.Reasoning(
            items=[_item(one, cover) for one in page.items],
            pagination=backward(page.next_before),
        )

    return await ctx.read(look)


routes: list[Route] = [get_reasoning]
