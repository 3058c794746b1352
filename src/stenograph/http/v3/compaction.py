"""Having a session's conversation summed up."""

import asyncio
from typing import Annotated

import msgspec
from msgspec import Meta

from stenograph.engine import context
from stenograph.engine.compaction import Wish
from stenograph.engine.models.catalog import parse_endpoints
from stenograph.http.context import Ctx
from stenograph.http.route import Route, post
from stenograph.http.v3.models import effort, model
from stenograph.runs.task import public_status
from stenograph.sessions import session
from stenograph.storage.database import Tx


class CompactionBody(msgspec.Struct):
    """Who is to sum up; without a model, the one that answers."""

    model: Annotated[str, Meta(max_length=200)] | None = None
    reasoning_effort: str | None = None


class Compaction(msgspec.Struct):
    """What will be done: `turn_kind` is `compaction_summary` for a turn of its own; else the turn
    that runs sums up after the round `task_key`."""

    turn_id: str
    turn_kind: str
    turn_status: str
    task_key: str | None
    task_status: str | None
    summary_task_key: str | None


@post(
    "/organizations/{orgId}/sessions/{sessionId}/compaction",
    id="compactSession",
    tag="Sessions",
    scope="run",
    body=CompactionBody,
    status=202,
    answer=Compaction,
    errors={
        409: "There is nothing to sum up, or it is being done (`already_compacted`); the session's"
        " policy forbids it (`compaction_disabled`); its turn has not begun (`task_not_queued`);"
        " its agent runs elsewhere (`session_target_unavailable`).",
        422: "The model takes no such effort (`unsupported_reasoning_effort`).",
    },
)
async def compact_session(ctx: Ctx, session_id: str) -> Compaction:
    """Sum up a Session's conversation.

    What was said stays in the record and in the trajectory; the agent is told the summary in its
    place from then on. While a turn runs, it sums up before its next model call, if there is one;
    otherwise at once, and the session is `running` meanwhile.
    """
    found = await ctx.read(lambda tx: session.find(tx, ctx.caller, session_id))
    session.require_control(ctx.caller, found)
    body = ctx.body(CompactionBody)
    wish = Wish(model(body.model), None, effort(body.reasoning_effort))
    endpoints = parse_endpoints(ctx.settings.endpoints)
    await asyncio.to_thread(context.check, wish, endpoints)

    def act(tx: Tx) -> Compaction:
        seen = session.find(tx, ctx.caller, session_id)
        session.require_control(ctx.caller, seen)
        made = context.compact(tx, ctx.caller, context.of_session(tx, seen.id), wish)
        return Compaction(
            turn_id=made.turn.public_id,
            turn_kind=made.turn.kind,
            turn_status=made.turn.status,
            task_key=None if made.task is None else made.task.key,
            task_status=None if made.task is None else public_status(made.task.status),
            summary_task_key=made.summary_key,
        )

    return await ctx.write(act)


routes: list[Route] = [compact_session]
