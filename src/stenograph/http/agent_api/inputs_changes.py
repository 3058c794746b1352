"""What waits in a conversation's queue is edited, deleted, and put in another order."""

from msgspec import UNSET

from stenograph.conversations import access, input_changes, input_row
from stenograph.conversations.input_changes import Draft
from stenograph.conversations.input_row import Input
from stenograph.engine import questions
from stenograph.http.agent_api import inputs_wire, wire_inputs
from stenograph.http.agent_api.common import C, mask
from stenograph.http.agent_api.inputs import model_problem
from stenograph.http.context import Ctx
from stenograph.http.route import Route, delete, patch, post
from stenograph.sessions import conversing
from stenograph.storage.database import Tx

_I = C + "/inputs/{input}"
_IMMUTABLE = "`kernel_input_immutable`, `stale_object` if it was changed or has become a turn"


@patch(
    _I,
    id="editInput",
    tag="Inputs",
    body=wire_inputs.InputChangeBody,
    answer=wire_inputs.InputAnswer,
    errors={
        409: f"{_IMMUTABLE}, `conversation_archived`, `workspace_not_active`, `stale_context`,"
        " `stale_timeline`, `steering_target_changed`, `steering_held`.",
        422: "`validation_failed`, `unsupported_reasoning_effort`, `answerer_not_eligible`,"
        " `invalid_steps`.",
    },
)
async def edit_input(
    ctx: Ctx, workspace: str, conversation: str, input: str
) -> wire_inputs.InputAnswer:
    """Edit an input that waits; what is absent stays.

    One that is blocked stands in line again. `attachments` are all it is to have: name those it
    keeps by `public_id`.
    """

    def seen(tx: Tx) -> None:
        found = access.find(tx, ctx.caller, workspace, conversation)
        input_row.find(tx, found, input)
        access.require_full(found)

    await ctx.read(seen)
    new = ctx.body(wire_inputs.InputChangeBody).input
    problem = await model_problem(ctx, new)

    def act(tx: Tx) -> wire_inputs.InputAnswer:
        found = access.find(tx, ctx.caller, workspace, conversation)

        def change(was: Input) -> Draft:
            asked = inputs_wire.wishes(new, was.wishes)
            if problem is not None:
                raise problem
            questions.require_tighter(tx, found, asked)
            text = was.text if new.text is UNSET else new.text
            if new.text is UNSET and new.entries is not UNSET and new.entries is not None:
                text = None
            role = was.role if new.role is UNSET else new.role
            attached = None if new.attachments is UNSET else inputs_wire.files(new)
            return Draft(role, text or None, asked, attached)

        input_changes.edit(tx, found, input, change, expected=new.expected_lock_version)
        conversing.catch_up(tx, found.id)
        return inputs_wire.one(tx, found, input, mask(ctx, tx, [found.id]))

    return await ctx.write(act)


@delete(
    _I,
    id="deleteInput",
    tag="Inputs",
    errors={409: f"{_IMMUTABLE}, `workspace_not_active`."},
)
async def delete_input(ctx: Ctx, workspace: str, conversation: str, input: str) -> None:
    """Take an input that waits out of the queue; one that steers a turn will not any more."""

    def act(tx: Tx) -> None:
        found = access.find(tx, ctx.caller, workspace, conversation)
        input_changes.delete(tx, found, input)
        conversing.catch_up(tx, found.id)

    await ctx.write(act)


@post(
    C + "/inputs/reorder",
    id="reorderInputs",
    tag="Inputs",
    body=wire_inputs.InputOrderBody,
    answer=wire_inputs.Inputs,
    errors={409: "`queue_changed`, `conversation_archived`, `workspace_not_active`."},
)
async def reorder_inputs(ctx: Ctx, workspace: str, conversation: str) -> wire_inputs.Inputs:
    """Put what waits for a turn of its own in another order.

    Name exactly the inputs that people and agents put in and that steer nothing, blocked and
    scheduled ones included. What comes later stands behind them.
    """

    def act(tx: Tx) -> wire_inputs.Inputs:
        found = access.find(tx, ctx.caller, workspace, conversation)
        access.require_full(found)
        named = ctx.body(wire_inputs.InputOrderBody).inputs
        input_changes.reorder(tx, found, named)
        conversing.catch_up(tx, found.id)
        return inputs_wire.everything(tx, found, mask(ctx, tx, [found.id]))

    return await ctx.write(act)


routes: list[Route] = [edit_input, delete_input, reorder_inputs]
