"""How full a conversation's context is, and having it summed up."""

import asyncio
from typing import Annotated, Any

from msgspec import Meta, field

from stenograph.conversations import access
from stenograph.engine import context, history
from stenograph.engine.choice import Rules
from stenograph.engine.compaction import Wish
from stenograph.engine.models.catalog import parse_endpoints
from stenograph.http.agent_api.common import C, Mask, mask
from stenograph.http.agent_api.wire import Shape
from stenograph.http.context import Ctx
from stenograph.http.route import Route, post
from stenograph.runs.task import public_status
from stenograph.settings import Settings
from stenograph.storage.database import Tx

_Model = Annotated[str, Meta(min_length=1, max_length=200)]


class Compaction(Shape, kw_only=True):
    """Who is to sum up; without a model, the one that answers."""

    model: _Model | None = None
    reasoning_enabled: bool | None = None
    reasoning_effort: Annotated[str, Meta(max_length=40)] | None = None


class CompactionBody(Shape, kw_only=True):
    """Asks for a summary."""

    compaction: Compaction = field(default_factory=Compaction)


class CompactionTurn(Shape, kw_only=True):
    """The turn that will be the summary, or within which it will be made."""

    public_id: str
    position: int
    kind: str
    status: str


class CompactionTask(Shape, kw_only=True):
    """The round after which it will be made."""

    key: str
    status: str


class CompactionAnswer(Shape, kw_only=True):
    """What will be done: a turn of its own; or within the running one, `summary_task_key`."""

    turn: CompactionTurn
    task: CompactionTask | None = None
    summary_task_key: str | None = None


class Sizing(Shape, kw_only=True):
    """What is to be sized: the conversation, with an input of this `text`, for this model."""

    model: _Model | None = None
    text: Annotated[str, Meta(max_length=1_000_000)] | None = None
    render: bool = False


class SizingBody(Shape, kw_only=True):
    """Asks for an estimate."""

    context_estimate: Sizing = field(default_factory=Sizing)


class EstimateModel(Shape, kw_only=True):
    """The model that the estimate is for."""

    provider_id: str
    model_ref: str


class Estimate(Shape, kw_only=True):
    """Tokens, estimated where nobody has counted them; tools are not in it.

    `parts`: by what they are: `system`, `summary`, `turn` (earlier turns), `prompt`, `round`,
    `steer`. At `compacts_at_tokens` a run sums up before it goes on.
    """

    model: EstimateModel
    input_tokens: int
    window_tokens: int
    used_percent: float
    compacts_at_tokens: int
    parts: dict[str, int]
    entries: list[Any] | None = None


class EstimateAnswer(Shape, kw_only=True):
    """One estimate."""

    context_estimate: Estimate


def endpoints(settings: Settings) -> dict[str, str]:
    """Return the settings' own model servers by name."""
    return parse_endpoints(settings.endpoints)


@post(
    C + "/compaction",
    id="compactConversation",
    tag="Conversations",
    body=CompactionBody,
    status=202,
    answer=CompactionAnswer,
    errors={
        409: "`already_compacted`, `compaction_disabled`, `conversation_busy`, `task_not_queued`,"
        " `conversation_archived` or `workspace_not_active`.",
        422: "`unsupported_reasoning_effort`.",
    },
)
async def compact(ctx: Ctx, workspace: str, conversation: str) -> CompactionAnswer:
    """Have a conversation summed up.

    What was said stays in the record; models are told the summary in its place from then on. While
    nothing is answered, a turn of the kind `compaction_summary` is made; while a turn runs, it sums
    up before its next round, if there is one.
    """
    await ctx.read(
        lambda tx: access.require_full(access.find(tx, ctx.caller, workspace, conversation))
    )
    new = ctx.body(CompactionBody).compaction
    wish = Wish(new.model, new.reasoning_enabled, new.reasoning_effort)
    await asyncio.to_thread(context.check, wish, endpoints(ctx.settings))

    def act(tx: Tx) -> CompactionAnswer:
        found = access.find(tx, ctx.caller, workspace, conversation)
        return _answer(context.compact(tx, ctx.caller, found, wish))

    return await ctx.write(act)


def _answer(made: context.Compacting) -> CompactionAnswer:
    task = made.task
    return CompactionAnswer(
        turn=CompactionTurn(
            public_id=made.turn.public_id,
            position=made.turn.position,
            kind=made.turn.kind,
            status=made.turn.status,
        ),
        task=None if task is None else CompactionTask(
            key=task.key, status=public_status(task.status)
        ),
        summary_task_key=made.summary_key,
    )  # fmt: skip


@post(
    C + "/context_estimate",
    id="estimateContext",
    tag="Conversations",
    body=SizingBody,
    answer=EstimateAnswer,
)
async def estimate(ctx: Ctx, workspace: str, conversation: str) -> EstimateAnswer:
    """Estimate how full a conversation's context is.

    Nothing is written and no model is asked. With `render` the messages are shown that a model
    would be told.
    """
    rules = Rules(model=ctx.settings.model, endpoints=tuple(endpoints(ctx.settings)))

    def look(tx: Tx) -> EstimateAnswer:
        found = access.find(tx, ctx.caller, workspace, conversation)
        new = ctx.body(SizingBody).context_estimate
        made = context.estimate(tx, found, rules, new.model, new.text)
        cover = mask(ctx, tx, [found.id])
        return EstimateAnswer(context_estimate=_estimate(made, cover, render=new.render))

    return await ctx.read(look)


def _estimate(made: context.Estimate, cover: Mask, *, render: bool) -> Estimate:
    return Estimate(
        model=EstimateModel(provider_id=made.model.provider_id, model_ref=made.model.model_ref),
        input_tokens=made.total,
        window_tokens=made.window,
        used_percent=round(100 * made.total / made.window, 1),
        compacts_at_tokens=made.compacts_at,
        parts=dict(made.parts),
        entries=cover.json(history.entries(made.messages)) if render else None,
    )


routes: list[Route] = [compact, estimate]
