"""Another answer to a turn, and the receipt of having asked for one."""

import asyncio
from dataclasses import replace

from stenograph.conversations import access
from stenograph.conversations import turn as turns
from stenograph.conversations import variant as variants
from stenograph.conversations.access import Conversation
from stenograph.conversations.turn import Turn
from stenograph.conversations.variant import Variant
from stenograph.conversations.wishes import Wishes
from stenograph.engine import questions, start
from stenograph.engine.start import Wish
from stenograph.errors import NotFoundError
from stenograph.http import idempotency
from stenograph.http.agent_api import wire_turns
from stenograph.http.agent_api.common import C, T, mask
from stenograph.http.agent_api.compaction import endpoints
from stenograph.http.agent_api.variants import around
from stenograph.http.agent_api.variants import write as write_variant
from stenograph.http.context import Ctx
from stenograph.http.parameters import Text
from stenograph.http.route import Answer, Route, get, post
from stenograph.storage.database import Tx

KEY = Text(
    name="idempotency_key",
    required=True,
    max_bytes=idempotency.LONGEST,
    about="The `Idempotency-Key` of the request that asked for another answer.",
)


def _write(
    ctx: Ctx, tx: Tx, conversation: Conversation, turn: Turn, made: Variant
) -> wire_turns.Regeneration:
    cover = mask(ctx, tx, [conversation.id])
    active = turn.active_variant_id == made.id
    return wire_turns.Regeneration(
        turn=wire_turns.RegeneratedTurn(public_id=turn.public_id, status=turn.status),
        variant=write_variant(made, around(tx, [made], cover), cover, active=active),
    )


def _made(ctx: Ctx, tx: Tx, conversation: Conversation, names: str) -> wire_turns.Regeneration:
    """Write what a receipt names: a turn and a candidate, by their public ids."""
    turn_id, _, variant_id = names.partition("/")
    turn = turns.find(tx, conversation, turn_id)
    return _write(ctx, tx, conversation, turn, variants.find(tx, turn, variant_id))


def _scope(conversation: Conversation) -> str:
    """What a key is for: all of a conversation, so that its receipt is found without the turn."""
    return f"regeneration {conversation.public_id}"


@post(
    T + "/regeneration",
    id="regenerateTurn",
    tag="Turns",
    body=wire_turns.RegenerationBody,
    idempotency="required",
    answer=wire_turns.Regeneration,
    status=202,
    errors={
        409: "`unsupported_turn_type`: no model answered this turn; `execution_details_pruned`;"
        " `run_live`: it is being answered; `conversation_busy`: another one is;"
        " `branch_required`: newer turns build on it; `session_target_unavailable`,"
        " `conversation_archived` or `workspace_not_active`; or the key was used before.",
        422: "`validation_failed` for a model that is not known here, or"
        " `unsupported_reasoning_effort`.",
    },
)
async def regenerate_turn(ctx: Ctx, workspace: str, conversation: str, turn: str) -> Answer:
    """Have the newest turn answered anew.

    The turn shows the answer it has until the new one is there. What its input asked for holds
    again, but for another `model` or `configuration`.
    """

    def check(tx: Tx) -> wire_turns.RegenerationWish:
        found = access.find(tx, ctx.caller, workspace, conversation)
        variants.require_own(found, turns.find(tx, found, turn))
        idempotency.key(ctx)
        return ctx.body(wire_turns.RegenerationBody).regeneration

    new = await ctx.read(check)
    asked = new.model
    wish = Wish() if asked is None else Wish(
        asked.model, asked.reasoning_enabled, asked.reasoning_effort
    )  # fmt: skip
    known = Wishes(
        model=wish.model,
        reasoning_enabled=wish.reasoning_enabled,
        reasoning_effort=wish.reasoning_effort,
    )
    await asyncio.to_thread(questions.check_model, known, endpoints(ctx.settings))

    def act(tx: Tx) -> Answer:
        found = access.find(tx, ctx.caller, workspace, conversation)
        variants.require_own(found, turns.find(tx, found, turn))
        sent = idempotency.key(ctx)
        assert sent is not None
        # The key counts for the conversation; that it was used for another turn, the digest tells.
        digest = idempotency.digest(turn.encode() + b"\n" + sent.digest)
        sent = replace(sent, scope=_scope(found), digest=digest)

        def make() -> tuple[str, wire_turns.Regeneration]:
            made = start.regenerate(tx, ctx.caller, found, turn, wish, new.configuration)
            written = _write(ctx, tx, found, made.turn, made.variant)
            return f"{made.turn.public_id}/{made.variant.public_id}", written

        def again(names: str) -> wire_turns.Regeneration:
            return _made(ctx, tx, found, names)

        return idempotency.once(tx, sent, make, again, status=202)

    return await ctx.write(act)


@get(
    C + "/regeneration_receipt",
    id="getRegenerationReceipt",
    tag="Turns",
    query=[KEY],
    answer=wire_turns.Regeneration,
)
async def get_receipt(ctx: Ctx, workspace: str, conversation: str) -> wire_turns.Regeneration:
    """Read what a request for another answer made, by its key; 404 if there was none in a day."""

    def look(tx: Tx) -> wire_turns.Regeneration:
        found = access.find(tx, ctx.caller, workspace, conversation)
        names = idempotency.kept(tx, ctx.caller, _scope(found), KEY.read(ctx.query) or "")
        if names is None:
            raise NotFoundError("Not found")
        return _made(ctx, tx, found, names)

    return await ctx.read(look)


routes: list[Route] = [regenerate_turn, get_receipt]
