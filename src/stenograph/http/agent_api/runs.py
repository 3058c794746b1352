"""Runs: at a glance, round by round, task by task."""

from collections.abc import Sequence
from typing import Any

import msgspec

from stenograph import clock
from stenograph.conversations import runner
from stenograph.http.agent_api import wire_runs, wire_turns
from stenograph.http.agent_api.common import (
    BEFORE,
    STRICT_PAGE,
    Mask,
    backward,
    cost,
    mask,
    model,
    moment,
)
from stenograph.http.agent_api.conversation_document import runner as write_runner
from stenograph.http.agent_api.variants import EXPIRED, effects, write_request
from stenograph.http.context import Ctx
from stenograph.http.parameters import Text
from stenograph.http.route import Route, get
from stenograph.runs import approval, candidate, overview, transcript
from stenograph.runs import run as runs
from stenograph.runs import task as tasks
from stenograph.runs.overview import TaskLine
from stenograph.runs.run import Run
from stenograph.runs.task import Task
from stenograph.runs.transcript import CallLine, RoundLine, Tokens
from stenograph.storage.database import Tx
from stenograph.trajectories.atif.reading import is_deep

R = "/workspaces/{workspace}/runs/{run}"
PREFIX = Text(name="prefix", about="The key of a call, to read the branch beneath it.")


def _line(found: TaskLine | CallLine | Task, cover: Mask) -> dict[str, Any]:
    return {
        "task_key": found.key,
        "kind": found.kind,
        "status": tasks.public_status(found.status),
        "visibility": found.visibility,
        "name": cover.text(found.name),
        "started_at": moment(found.started_at),
        "completed_at": moment(found.completed_at),
    }


def _usage(found: Tokens | None) -> wire_runs.TaskUsage | None:
    if found is None:
        return None
    return wire_runs.TaskUsage(
        input_tokens=found.prompt,
        output_tokens=found.completion,
        cache_read_tokens=found.cached,
        reasoning_tokens=found.reasoning,
        cost_amount=None if found.cost_usd is None else cost(found.cost_usd),
    )


@get(R, id="getRun", tag="Runs", answer=wire_runs.RunAnswer)
async def get_run(ctx: Ctx, workspace: str, run: str) -> wire_runs.RunAnswer:
    """Read a run at a glance: how it stands, and its newest 200 tasks that are not hidden."""

    def look(tx: Tx) -> wire_runs.RunAnswer:
        conversation, found = runs.find(tx, ctx.caller, workspace, run)
        cover = mask(ctx, tx, [conversation.id])
        return wire_runs.RunAnswer(run=write(tx, found, cover))

    return await ctx.read(look)


def write(tx: Tx, found: Run, cover: Mask) -> wire_runs.Run:
    """Write a run at a glance."""
    about, waiting = overview.of(tx, found), approval.waiting(tx, found)
    by_default = runner.of(tx, found.conversation_id)
    reason = cover.text(found.failure_reason)
    statuses: dict[str, int] = {}
    for status, count in about.counts.items():
        statuses[tasks.public_status(status)] = count
    return wire_runs.Run(
        public_id=found.public_id,
        status=found.status,
        approval_mode=found.approval_mode,
        details_pruned_at=moment(found.details_pruned_at),
        failure_reason=reason,
        turn=wire_runs.RunTurn(
            public_id=about.turn,
            position=about.position,
            kind=about.turn_kind,
            status=about.turn_status,
            variant_public_id=about.variant,
        ),
        deliverable_task_key=about.deliverable,
        tasks=[
            wire_runs.TaskLine(**_line(one, cover), mainline=bool(one.mainline))
            for one in about.tasks
        ],
        task_progress=wire_runs.TaskProgress(
            total=sum(statuses.values()),
            settled=sum(n for status, n in about.counts.items() if status in tasks.TERMINAL),
            statuses=statuses,
        ),
        started_at=moment(found.started_at),
        paused_at=moment(found.paused_at),
        completed_at=moment(found.completed_at),
        attention=_attention(found, waiting, reason),
        runner_effects=effects(pruned=found.details_pruned_at is not None),
        prompt_mechanism=None,
        default_runner=None if by_default is None else write_runner(by_default, cover),
        created_at=clock.iso_seconds(found.created_at),
        updated_at=clock.iso_seconds(found.updated_at),
    )


def _attention(
    found: Run, waiting: Sequence[str], reason: str | None
) -> wire_runs.Attention | None:
    if waiting:
        return wire_runs.Attention(reason="approval", task_keys=list(waiting))
    return wire_runs.Attention(reason=reason) if found.status == "needs_attention" else None


@get(
    R + "/transcript",
    id="getRunTranscript",
    tag="Runs",
    query=[BEFORE, STRICT_PAGE, PREFIX],
    answer=wire_runs.Transcript,
    errors={410: EXPIRED},
)
async def get_transcript(ctx: Ctx, workspace: str, run: str) -> wire_runs.Transcript:
    """Read the rounds of a run, the newest page first and each page in order of creation.

    Without `prefix` the mainline; with the key of a call, what lies beneath it: the rounds of its
    branch, or a script's calls, each like a round that says what came of it. Reasoning is read
    per candidate (`getVariantReasoning`).
    """

    def look(tx: Tx) -> wire_runs.Transcript:
        conversation, found = runs.find(tx, ctx.caller, workspace, run)
        runs.require_details(found)
        prefix = PREFIX.read(ctx.query)
        branch = tasks.find(tx, found, prefix) if prefix else None
        before = BEFORE.read(ctx.query) or 0
        limit = STRICT_PAGE.read(ctx.query)
        cover = mask(ctx, tx, [conversation.id])
        page = transcript.page(tx, found, branch=branch, before=before, limit=limit, size=cover.cut)
        return wire_runs.Transcript(
            rounds=[_round(one, cover) for one in page.rounds],
            pagination=backward(page.next_before),
        )

    return await ctx.read(look)


def _round(found: RoundLine, cover: Mask) -> wire_runs.TranscriptRound:
    return wire_runs.TranscriptRound(
        task_key=found.key,
        mainline=found.mainline,
        status=tasks.public_status(found.status),
        visibility=found.visibility,
        text_preview=cover.preview(found.text),
        text_bytes=found.text_bytes,
        usage=_usage(found.tokens),
        error=cover.text(found.error),
        compacted_before=found.compacted,
        pruned_before=found.pruned,
        started_at=moment(found.started_at),
        completed_at=moment(found.completed_at),
        calls=wire_runs.Calls(
            count=found.call_count,
            items=[_call(one, mainline=found.mainline, cover=cover) for one in found.calls],
        ),
        branches=list(found.branches),
    )


def _call(found: CallLine, *, mainline: bool, cover: Mask) -> wire_runs.CallLine:
    return wire_runs.CallLine(
        **_line(found, cover),
        mainline=mainline,
        tool_call_id=cover.text(found.tool_call_id),
        script_task_key=found.script,
        child_conversation_public_id=found.child,
        error=cover.text(found.error),
    )


@get(
    R + "/tasks/{task_key}",
    id="getRunTask",
    tag="Runs",
    answer=wire_runs.TaskAnswer,
    errors={410: EXPIRED},
)
async def get_task(ctx: Ctx, workspace: str, run: str, task_key: str) -> wire_runs.TaskAnswer:
    """Read a task with what it was given and what came of it, whole."""

    def look(tx: Tx) -> wire_runs.TaskAnswer:
        conversation, found = runs.find(tx, ctx.caller, workspace, run)
        runs.require_details(found)
        task = tasks.find(tx, found, task_key)
        detail = overview.detail(tx, task)
        cover = mask(ctx, tx, [conversation.id])
        return wire_runs.TaskAnswer(
            task=wire_runs.Task(
                **_line(task, cover),
                mainline=bool(task.mainline),
                tool_call_id=cover.text(task.tool_call_id),
                parent_task_key=detail.parent,
                round_task_key=detail.round,
                call_index=task.call_index,
                child_conversation_public_id=detail.child,
                model=None if detail.model is None else model(detail.model, cover),
                usage=_usage(detail.tokens),
                input=None if detail.input is None else cover.json(_json(detail.input)),
                output=cover.text(detail.output),
                error=cover.text(task.error),
            )
        )

    return await ctx.read(look)


def _json(text: str) -> Any:
    """Read arguments; a model may have written what is no JSON, or is nested too deep to be written
    again: that stays text."""
    try:
        return text if is_deep(text.encode()) else msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


@get(
    R + "/tasks/{task_key}/request",
    id="getRunTaskRequest",
    tag="Runs",
    answer=wire_turns.RequestAnswer,
    errors={410: EXPIRED},
)
async def get_task_request(
    ctx: Ctx, workspace: str, run: str, task_key: str
) -> wire_turns.RequestAnswer:
    """Read what was sent to the model in one round."""

    def look(tx: Tx) -> wire_turns.RequestAnswer:
        conversation, found = runs.find(tx, ctx.caller, workspace, run)
        runs.require_details(found)
        sealed = candidate.task_request(tx, tasks.find(tx, found, task_key))
        return write_request(sealed, mask(ctx, tx, [conversation.id]))

    return await ctx.read(look)


routes: list[Route] = [get_run, get_transcript, get_task, get_task_request]
