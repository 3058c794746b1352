"""Deciding about a call of a run that waits for a person."""

from typing import Annotated, Literal

from msgspec import Meta

from stenograph.conversations import access
from stenograph.http.agent_api.common import Mask, mask, moment
from stenograph.http.agent_api.runs import R
from stenograph.http.agent_api.wire import Shape
from stenograph.http.context import Ctx
from stenograph.http.route import Route, post
from stenograph.runs import approval
from stenograph.runs import run as runs
from stenograph.runs.approval import NOTE
from stenograph.runs.task import public_status
from stenograph.storage.database import Tx


class Decision(Shape, kw_only=True):
    """What a person decides; the agent reads the note of a denial."""

    decision: Literal["approve", "deny"]
    note: Annotated[str, Meta(max_length=NOTE)] | None = None


class DecisionBody(Shape, kw_only=True):
    """A decision."""

    approval: Decision


class Approval(Shape, kw_only=True):
    """A call that somebody was asked about; `status` is how its task stands."""

    task_key: str
    run_public_id: str
    name: str | None
    status: str
    decision: str | None = None
    decided_by_user_public_id: str | None = None
    note: str | None = None
    requested_at: str | None
    decided_at: str | None = None


class ApprovalAnswer(Shape, kw_only=True):
    """One approval."""

    approval: Approval


def _write(found: approval.Approval, cover: Mask) -> Approval:
    return Approval(
        task_key=found.key,
        run_public_id=found.run,
        name=cover.text(found.name),
        status=public_status(found.status),
        decision=found.decision,
        decided_by_user_public_id=found.decider,
        note=cover.text(found.note),
        requested_at=moment(found.requested_at),
        decided_at=moment(found.decided_at),
    )


@post(
    R + "/tasks/{task_key}/approval",
    id="decideRunTask",
    tag="Runs",
    body=DecisionBody,
    answer=ApprovalAnswer,
    errors={409: "`not_eligible`: the call waits no more, or somebody decided otherwise before."},
)
async def decide(ctx: Ctx, workspace: str, run: str, task_key: str) -> ApprovalAnswer:
    """Let a call be made, or deny it.

    The run's `attention` names the calls that wait. The first decision counts; the same one again
    is accepted and changes nothing. An agent may not decide.
    """

    def act(tx: Tx) -> ApprovalAnswer:
        conversation, found = runs.find(tx, ctx.caller, workspace, run)
        access.require_full(conversation)
        runs.require_details(found)
        new = ctx.body(DecisionBody).approval
        cover = mask(ctx, tx, [conversation.id])
        made = approval.decide(
            tx, ctx.caller, conversation, found, task_key, new.decision, cover.text(new.note)
        )
        return ApprovalAnswer(approval=_write(made, cover))

    return await ctx.write(act)


routes: list[Route] = [decide]
