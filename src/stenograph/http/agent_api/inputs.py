"""The input queue of a conversation."""

from typing import Literal

from stenograph import clock
from stenograph.conversations import access
from stenograph.conversations import input as inputs
from stenograph.conversations.input import Expected, Input, Wishes
from stenograph.conversations.limits import refused
from stenograph.engine import start
from stenograph.http import idempotency
from stenograph.http.agent_api import wire, wire_turns
from stenograph.http.agent_api.common import INCLUDE_HIDDEN, C, Mask, mask, speaker
from stenograph.http.context import Ctx
from stenograph.http.route import Answer, Route, get, post
from stenograph.sessions import conversing
from stenograph.storage.database import Tx

#: What only an input that a model answers may say.
_FOR_MODELS = ("model", "tool_names", "approval_mode")
#: What no input of this server may say.
_UNKNOWN = (
    "answering_user_public_id", "entries", "attachments", "configuration",
    "expected_steering_run_public_id", "deliver_at", "deliver_in", "instructions", "inline",
    "history", "reasoning_replay", "variables", "steps",
)  # fmt: skip


def _accepted(found: Input) -> Literal["pending", "steering", "blocked"]:
    """Return the state in which an input waits, or waited before a turn took it."""
    if found.state == "consumed":
        return "pending" if found.turn_id is not None else "steering"
    return found.state


def _row(found: Input, place: int, cover: Mask) -> wire_turns.Input:
    """Write an input as it was accepted; `place` counts from 1."""
    return wire_turns.Input(
        public_id=found.public_id,
        queue_position=place,
        state=_accepted(found),
        kind=found.kind,
        role=found.role,
        delivery_mode=found.wishes.delivery_mode,
        context_mode="assembled",
        context_options={"visible_in_context": found.wishes.visible_in_context},
        tool_names=None if found.wishes.tool_names is None else list(found.wishes.tool_names),
        approval_mode=found.wishes.approval_mode,
        text=cover.text(found.text),
        lock_version=found.lock_version,
        created_at=clock.iso_seconds(found.created_at),
        origin=found.origin,
        answering_user_public_id=found.answerer,
        speaker=speaker(found.speaker),
    )


@get(C + "/inputs", id="listInputs", tag="Inputs", answer=wire_turns.Inputs)
async def list_inputs(ctx: Ctx, workspace: str, conversation: str) -> wire_turns.Inputs:
    """List what waits: the system's own rows first, then in order of arrival."""

    def look(tx: Tx) -> wire_turns.Inputs:
        found = access.find(tx, ctx.caller, workspace, conversation)
        cover = mask(ctx, tx, [found.id])
        waiting = inputs.queue(tx, found)
        return wire_turns.Inputs(
            inputs=[_row(one, place, cover) for place, one in enumerate(waiting, 1)],
            input_queue=wire.InputQueue(limit=inputs.LIMIT, held=False),
        )

    return await ctx.read(look)


@post(
    C + "/inputs",
    id="createInput",
    tag="Inputs",
    body=wire_turns.InputBody,
    idempotency="required",
    answer=wire_turns.InputAnswer,
    status=202,
    errors={
        409: "`conversation_archived`, `workspace_not_active`, `input_queue_full`,"
        " `stale_context`, `stale_timeline`, or the key was used before.",
        422: "`validation_failed`.",
    },
)
async def create_input(ctx: Ctx, workspace: str, conversation: str) -> Answer:
    """Put an input into the queue.

    It becomes a turn at once, unless another turn is being answered: then it waits its time. A
    `message` stands as it is, a `direct_reply` is answered by a model; with a `delivery_mode` of
    `steer` it goes into the running turn. See what it became with `getInputMaterialization`.
    """

    def act(tx: Tx) -> Answer:
        found = access.find(tx, ctx.caller, workspace, conversation)
        access.require_full(found)
        sent = idempotency.key(ctx)
        new = ctx.body(wire_turns.InputBody).input
        cover = mask(ctx, tx, [found.id])

        def make() -> tuple[str, wire_turns.InputAnswer]:
            wishes = _wishes(new)
            if new.kind == "direct_reply":
                start.require_here(tx, found)
            made = inputs.accept(
                tx,
                ctx.caller,
                found,
                kind=new.kind,
                role=new.role,
                text=new.text or "",
                wishes=wishes,
                expected=Expected(new.expected_context_revision, new.expected_tail_turn_public_id),
            )
            conversing.catch_up(tx, found.id)
            return made.public_id, wire_turns.InputAnswer(input=_row(made, 1, cover))

        def again(public_id: str) -> wire_turns.InputAnswer:
            return wire_turns.InputAnswer(input=_row(inputs.find(tx, found, public_id), 1, cover))

        return idempotency.once(tx, sent, make, again, status=202)

    return await ctx.write(act)


def _wishes(new: wire_turns.NewInput) -> Wishes:
    given = [name for name in _UNKNOWN if getattr(new, name) is not None]
    if new.context_mode != "assembled":
        given.append("context_mode")
    if new.kind == "message":
        given += [name for name in _FOR_MODELS if getattr(new, name) is not None]
        if new.delivery_mode != "queue":
            given.append("delivery_mode")
    if given:
        raise refused(f"A {new.kind} takes no {given[0]}")
    wish = new.model
    return Wishes(
        visible_in_context=new.visible_in_context,
        delivery_mode=new.delivery_mode,
        model=None if wish is None else wish.model,
        reasoning_enabled=None if wish is None else wish.reasoning_enabled,
        reasoning_effort=None if wish is None else wish.reasoning_effort,
        tool_names=None if new.tool_names is None else tuple(new.tool_names),
        approval_mode=new.approval_mode,
    )


@get(
    C + "/inputs/{input}/materialization",
    id="getInputMaterialization",
    tag="Inputs",
    query=[INCLUDE_HIDDEN],
    answer=wire_turns.MaterializationAnswer,
)
async def get_materialization(
    ctx: Ctx, workspace: str, conversation: str, input: str
) -> wire_turns.MaterializationAnswer:
    """Read which turn an input became; 404 while it waits."""

    def look(tx: Tx) -> wire_turns.MaterializationAnswer:
        found = access.find(tx, ctx.caller, workspace, conversation)
        inputs.find(tx, found, input)
        hidden = INCLUDE_HIDDEN.read(ctx.query)
        made = inputs.materialization(tx, found, input, hidden=hidden)
        return wire_turns.MaterializationAnswer(
            materialization=wire_turns.Materialization(
                input_public_id=made.input,
                turn_public_id=made.turn,
                variant_public_id=made.variant,
                run_public_id=made.run,
            )
        )

    return await ctx.read(look)


routes: list[Route] = [list_inputs, create_input, get_materialization]
