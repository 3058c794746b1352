"""The input queue of a conversation: what waits, what is put in, what has become of it."""

import asyncio

from stenograph.conversations import access, input_row
from stenograph.conversations import input as inputs
from stenograph.conversations.wishes import Wishes
from stenograph.engine import questions, start
from stenograph.engine.choice import endpoints_of
from stenograph.errors import StenographError
from stenograph.http import idempotency
from stenograph.http.agent_api import inputs_wire, wire_inputs
from stenograph.http.agent_api.common import INCLUDE_HIDDEN, C, mask
from stenograph.http.context import Ctx
from stenograph.http.route import Answer, Route, get, post
from stenograph.sessions import conversing
from stenograph.storage.database import Tx


@get(C + "/inputs", id="listInputs", tag="Inputs", answer=wire_inputs.Inputs)
async def list_inputs(ctx: Ctx, workspace: str, conversation: str) -> wire_inputs.Inputs:
    """List what waits: the system's own inputs first, then in the order in which turns will come.

    A scheduled input has its place and is passed over until it is due. Last is what steers the
    running turn.
    """

    def look(tx: Tx) -> wire_inputs.Inputs:
        found = access.find(tx, ctx.caller, workspace, conversation)
        return inputs_wire.everything(tx, found, mask(ctx, tx, [found.id]))

    return await ctx.read(look)


@post(
    C + "/inputs",
    id="createInput",
    tag="Inputs",
    body=wire_inputs.InputBody,
    idempotency="required",
    answer=wire_inputs.InputAnswer,
    status=202,
    errors={
        409: "`conversation_archived`, `workspace_not_active`, `input_queue_full`,"
        " `stale_context`, `stale_timeline`, `steering_target_changed`, `steering_held`,"
        " `session_target_unavailable`, or the key was used before.",
        422: "`validation_failed`, `unsupported_reasoning_effort`, `answerer_not_eligible`,"
        " `invalid_steps`.",
    },
)
async def create_input(ctx: Ctx, workspace: str, conversation: str) -> Answer:
    """Put an input into the queue.

    It becomes a turn at once, unless another turn is being answered or it is scheduled: then it
    waits its time. A `message` stands as it is, a `direct_reply` is answered by a model. With the
    `delivery_mode` `steer` it goes into the running turn before its model is asked again, with
    `steer_now` the model's answer under way is given up for it; if the turn ends before, it becomes
    a turn of its own. One that cannot become a turn when its time comes is `blocked`, and those
    behind it wait. See what it became with `getInputMaterialization`.
    """

    def seen(tx: Tx) -> None:
        access.require_full(access.find(tx, ctx.caller, workspace, conversation))

    await ctx.read(seen)
    sent = idempotency.key(ctx)
    new = ctx.body(wire_inputs.InputBody).input
    problem = await model_problem(ctx, new)

    def act(tx: Tx) -> Answer:
        found = access.find(tx, ctx.caller, workspace, conversation)
        access.require_full(found)
        cover = mask(ctx, tx, [found.id])

        def make() -> tuple[str, wire_inputs.InputAnswer]:
            asked = inputs_wire.wishes(new)
            if problem is not None:
                raise problem
            if new.kind == "direct_reply":
                start.require_here(tx, found)
                questions.require_tighter(tx, found, asked)
            made = inputs.accept(
                tx,
                ctx.caller,
                found,
                kind=new.kind,
                role=new.role or "user",
                text=new.text or None,
                wishes=asked,
                files=inputs_wire.files(new),
            )
            conversing.catch_up(tx, found.id)
            return made.public_id, inputs_wire.one(tx, found, made.public_id, cover)

        return idempotency.once(
            tx, sent, make, lambda it: inputs_wire.one(tx, found, it, cover), status=202
        )

    return await ctx.write(act)


async def model_problem(ctx: Ctx, new: wire_inputs.InputFields) -> StenographError | None:
    """Return what is wrong with the model that is wanted. Looking it up may take a second, the
    first time, which is not spent in a transaction."""
    if not new.model:
        return None
    wish = new.model
    asked = Wishes(
        model=wish.model,
        reasoning_enabled=wish.reasoning_enabled,
        reasoning_effort=wish.reasoning_effort,
    )
    try:
        await asyncio.to_thread(questions.check_model, asked, endpoints_of(ctx.settings))
    except StenographError as error:
        return error
    return None


@get(
    C + "/inputs/{input}/materialization",
    id="getInputMaterialization",
    tag="Inputs",
    query=[INCLUDE_HIDDEN],
    answer=wire_inputs.MaterializationAnswer,
)
async def get_materialization(
    ctx: Ctx, workspace: str, conversation: str, input: str
) -> wire_inputs.MaterializationAnswer:
    """Read which turn an input became; 404 while it waits, and if it steered another turn."""

    def look(tx: Tx) -> wire_inputs.MaterializationAnswer:
        found = access.find(tx, ctx.caller, workspace, conversation)
        input_row.find(tx, found, input)
        hidden = INCLUDE_HIDDEN.read(ctx.query)
        made = inputs.materialization(tx, found, input, hidden=hidden)
        return wire_inputs.MaterializationAnswer(
            materialization=wire_inputs.Materialization(
                input_public_id=made.input,
                turn_public_id=made.turn,
                variant_public_id=made.variant,
                run_public_id=made.run,
            )
        )

    return await ctx.read(look)


routes: list[Route] = [list_inputs, create_input, get_materialization]
