"""The candidates of a turn: the deck, what was sent for one, which one is shown."""

from collections.abc import Mapping

from stenograph.conversations import access
from stenograph.conversations import turn as turns
from stenograph.conversations import variant as variants
from stenograph.conversations.access import Conversation
from stenograph.conversations.turn import Turn
from stenograph.conversations.variant import NO_MODEL, Variant
from stenograph.http.agent_api import wire_turns
from stenograph.http.agent_api.common import Mask, T, V, mask, model, moment
from stenograph.http.context import Ctx
from stenograph.http.route import Route, get, patch, post
from stenograph.runs import candidate, summary
from stenograph.runs.request import Request
from stenograph.runs.summary import Summary
from stenograph.runs.task import public_status
from stenograph.storage.database import Tx

_PRUNED = "execution_details_pruned"
EXPIRED = f"`{_PRUNED}`: execution details have been collected."


def effects(*, pruned: bool) -> wire_turns.RunnerEffects:
    """Write what runners changed outside: nothing, or nobody knows any more."""
    if pruned:
        return wire_turns.RunnerEffects(status="unavailable", runners=[], reason=_PRUNED)
    return wire_turns.RunnerEffects(status="untouched", runners=[])


def write(
    found: Variant, runs: Mapping[int, Summary], cover: Mask, *, active: bool | None = None
) -> wire_turns.Variant:
    """Write a candidate; the model of a run is that of its newest mainline round."""
    run = runs.get(found.id)
    pruned_at = found.details_pruned_at
    shown, rounds = found.model, None
    if run is not None:
        pruned_at = pruned_at or run.details_pruned_at
        shown = run.model or shown
        rounds = [
            wire_turns.Round(
                task_key=one.key,
                status=public_status(one.status),
                visibility=one.visibility,
                text_preview=cover.preview(one.text),
            )
            for one in run.rounds
        ]
    return wire_turns.Variant(
        public_id=found.public_id,
        source=found.source,
        status=found.status,
        model=None if shown == NO_MODEL else model(shown, cover),
        content_preview=cover.preview(found.content),
        content=cover.text(found.content),
        prompt_text=cover.text(found.prompt),
        run_public_id=None if run is None else run.run_public_id,
        rounds=rounds,
        runner_effects=effects(pruned=pruned_at is not None),
        memory_context=None,
        origin_variant_public_id=found.origin,
        details_pruned_at=moment(pruned_at),
        active=active,
    )


def _one(
    ctx: Ctx, tx: Tx, conversation: Conversation, turn: Turn, found: Variant
) -> wire_turns.VariantAnswer:
    cover = mask(ctx, tx, [conversation.id])
    runs = summary.of(tx, [found], cover.cut)
    active = turn.active_variant_id == found.id
    return wire_turns.VariantAnswer(variant=write(found, runs, cover, active=active))


@get(T + "/variants", id="listVariants", tag="Variants", answer=wire_turns.Deck)
async def list_variants(ctx: Ctx, workspace: str, conversation: str, turn: str) -> wire_turns.Deck:
    """List the candidates of a turn, hidden or not, that are not concealed."""

    def look(tx: Tx) -> wire_turns.Deck:
        found = access.find(tx, ctx.caller, workspace, conversation)
        named = turns.find(tx, found, turn)
        deck = variants.deck(tx, named)
        cover = mask(ctx, tx, [found.id])
        runs = summary.of(tx, deck, cover.cut)
        return wire_turns.Deck(
            variants=[
                write(one, runs, cover, active=one.id == named.active_variant_id) for one in deck
            ],
            turn=wire_turns.TurnName(public_id=named.public_id, inherited=named.inherited),
        )

    return await ctx.read(look)


@patch(
    V,
    id="setVariantViewState",
    tag="Variants",
    body=wire_turns.VariantBody,
    answer=wire_turns.VariantAnswer,
    errors={409: "`variant_active`: the turn shows this candidate."},
)
async def set_view_state(
    ctx: Ctx, workspace: str, conversation: str, turn: str, variant: str
) -> wire_turns.VariantAnswer:
    """Conceal a candidate, or bring it back; for everyone who sees the turn."""

    def act(tx: Tx) -> wire_turns.VariantAnswer:
        found = access.find(tx, ctx.caller, workspace, conversation)
        variants.find_own(tx, found, turn, variant)
        concealed = ctx.body(wire_turns.VariantBody).variant.concealed
        changed = variants.set_view_state(tx, found, turn, variant, concealed=concealed)
        return _one(ctx, tx, found, *changed)

    return await ctx.write(act)


@post(
    V + "/activation",
    id="activateVariant",
    tag="Variants",
    answer=wire_turns.VariantAnswer,
    errors={409: "`variant_not_active`: the candidate is not settled yet."},
)
async def activate(
    ctx: Ctx, workspace: str, conversation: str, turn: str, variant: str
) -> wire_turns.VariantAnswer:
    """Let the turn show this candidate; what the replaced one had under way ends for good."""

    def act(tx: Tx) -> wire_turns.VariantAnswer:
        found = access.find(tx, ctx.caller, workspace, conversation)
        chosen = candidate.activate(tx, found, turn, variant)
        return _one(ctx, tx, found, chosen.turn, chosen.variant)

    return await ctx.write(act)


def write_request(found: Request, cover: Mask) -> wire_turns.RequestAnswer:
    """Write what was sent to a model."""
    return wire_turns.RequestAnswer(
        request=wire_turns.Request(
            entries=cover.json(found.entries),
            request_options=cover.json(found.request_options),
        )
    )


@get(
    V + "/request",
    id="getVariantRequest",
    tag="Variants",
    answer=wire_turns.RequestAnswer,
    errors={410: EXPIRED},
)
async def get_request(
    ctx: Ctx, workspace: str, conversation: str, turn: str, variant: str
) -> wire_turns.RequestAnswer:
    """Read what was sent to the model for a candidate; of a run, its first round's request."""

    def look(tx: Tx) -> wire_turns.RequestAnswer:
        found = access.find(tx, ctx.caller, workspace, conversation)
        chosen = candidate.find(tx, found, turn, variant)
        return write_request(candidate.request(tx, chosen), mask(ctx, tx, [found.id]))

    return await ctx.read(look)


routes: list[Route] = [list_variants, set_view_state, activate, get_request]
