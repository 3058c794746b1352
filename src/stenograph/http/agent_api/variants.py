"""The candidates of a turn: the deck, what was sent for one, which one is shown."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stenograph.conversations import access, attachment
from stenograph.conversations import turn as turns
from stenograph.conversations import variant as variants
from stenograph.conversations.access import Conversation
from stenograph.conversations.attachment import Attachment
from stenograph.conversations.turn import Turn
from stenograph.conversations.variant import NO_MODEL, Variant
from stenograph.engine import deck
from stenograph.http.agent_api import wire_turns
from stenograph.http.agent_api.common import Mask, T, V, file, mask, model, moment
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


@dataclass(frozen=True, slots=True)
class Around:
    """What is written with candidates, by the candidate's row id: runs and files."""

    runs: Mapping[int, Summary]
    files: Mapping[int, Sequence[Attachment]]


def around(tx: Tx, found: Sequence[Variant], cover: Mask) -> Around:
    """Load what is written with candidates: two queries, however many."""
    ids = [one.id for one in found]
    return Around(summary.of(tx, found, cover.cut), attachment.of_variants(tx, ids))


def write(
    found: Variant, known: Around, cover: Mask, *, active: bool | None = None
) -> wire_turns.Variant:
    """Write a candidate; the model of a run is that of its newest mainline round."""
    run = known.runs.get(found.id)
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
        attachments=[file(one, cover) for one in known.files.get(found.id, ())] or None,
        origin_variant_public_id=found.origin,
        details_pruned_at=moment(pruned_at),
        active=active,
    )


def one(
    ctx: Ctx, tx: Tx, conversation: Conversation, turn: Turn, found: Variant
) -> wire_turns.VariantAnswer:
    """Write one candidate of a turn, and whether the turn shows it."""
    cover = mask(ctx, tx, [conversation.id])
    active = turn.active_variant_id == found.id
    known = around(tx, [found], cover)
    return wire_turns.VariantAnswer(variant=write(found, known, cover, active=active))


@get(T + "/variants", id="listVariants", tag="Variants", answer=wire_turns.Deck)
async def list_variants(ctx: Ctx, workspace: str, conversation: str, turn: str) -> wire_turns.Deck:
    """List the candidates of a turn, hidden or not, that are not concealed."""

    def look(tx: Tx) -> wire_turns.Deck:
        found = access.find(tx, ctx.caller, workspace, conversation)
        named = turns.find(tx, found, turn)
        listed = variants.deck(tx, named)
        cover = mask(ctx, tx, [found.id])
        known = around(tx, listed, cover)
        return wire_turns.Deck(
            variants=[
                write(it, known, cover, active=it.id == named.active_variant_id) for it in listed
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
    errors={
        409: "`variant_active`: the turn shows this candidate; `run_live`: it is under way; or"
        " `workspace_not_active`."
    },
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
        return one(ctx, tx, found, *changed)

    return await ctx.write(act)


@post(
    V + "/activation",
    id="activateVariant",
    tag="Variants",
    answer=wire_turns.VariantAnswer,
    errors={
        409: "`variant_not_active`: the candidate is not settled yet; `conversation_archived` or"
        " `workspace_not_active`."
    },
)
async def activate(
    ctx: Ctx, workspace: str, conversation: str, turn: str, variant: str
) -> wire_turns.VariantAnswer:
    """Let the turn show this candidate; what the replaced one had under way ends for good."""

    def act(tx: Tx) -> wire_turns.VariantAnswer:
        found = access.find(tx, ctx.caller, workspace, conversation)
        chosen = deck.activate(tx, found, turn, variant)
        return one(ctx, tx, found, chosen.turn, chosen.variant)

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
