"""Calls of a session that wait for a person, and what people decided."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from stenograph.clock import iso
from stenograph.http.context import Ctx
from stenograph.http.masking import mask_text, masked
from stenograph.http.route import Route, get, post
from stenograph.http.v3 import lists, wire
from stenograph.http.v3.lists import AFTER, FIRST
from stenograph.runs import approval
from stenograph.runs.approval import NOTE
from stenograph.sessions import secret, session
from stenograph.storage.database import Tx


class Approval(msgspec.Struct):
    """A call that somebody was asked about; `status` is how the call stands."""

    task_key: str
    run_id: str
    name: str
    arguments: Any
    waits: bool
    status: str
    decision: Literal["approve", "deny"] | None
    decided_by: str | None
    note: str | None
    requested_at: wire.Time
    decided_at: wire.Time | None


class ApprovalPage(msgspec.Struct):
    """A page of approvals, the newest first."""

    items: list[Approval]
    has_next_page: bool
    end_cursor: str | None


class DecisionBody(msgspec.Struct):
    """What a person decides; the agent reads the note of a denial."""

    decision: Literal["approve", "deny"]
    note: Annotated[str, Meta(max_length=NOTE)] | None = None


def _wire(found: approval.Approval) -> Approval:
    return Approval(
        task_key=found.key,
        run_id=found.run,
        name=found.name,
        arguments=None if found.input is None else msgspec.json.decode(found.input),
        waits=found.waits,
        status=found.status,
        decision=found.decision,
        decided_by=found.decider,
        note=found.note,
        requested_at=iso(found.requested_at),
        decided_at=None if found.decided_at is None else iso(found.decided_at),
    )


@get(
    "/organizations/{orgId}/sessions/{sessionId}/approvals",
    id="listSessionApprovals",
    tag="Sessions",
    scope="sessions:read",
    query=[FIRST, AFTER],
    answer=ApprovalPage,
)
async def list_session_approvals(ctx: Ctx, session_id: str) -> ApprovalPage:
    """List a Session's approvals.

    The calls of its agent that somebody was asked about, the newest first; those with `waits` are
    to be decided. The session's `status` stays `running` while they wait. Cursor-paginated: pass
    `end_cursor` as `after`.
    """

    def look(tx: Tx) -> tuple[ApprovalPage, tuple[str, ...]]:
        found = session.find(tx, ctx.caller, session_id)
        first, after = FIRST.read(ctx.query), lists.read_cursor(ctx.query, "desc")
        asked = approval.of_session(tx, found.id, after, first + 1)
        kept = asked[:first]
        end = lists.cursor("desc", kept[-1].task_id) if kept else AFTER.read(ctx.query)
        page = ApprovalPage([_wire(one) for one in kept], len(asked) > first, end)
        return page, secret.values(tx, ctx.sealer, found.id)

    return masked(*await ctx.read(look))


@post(
    "/organizations/{orgId}/sessions/{sessionId}/approvals/{taskKey}",
    id="decideSessionApproval",
    tag="Sessions",
    scope="run",
    body=DecisionBody,
    answer=Approval,
    errors={409: "The call waits no more, or somebody decided otherwise before (`not_eligible`)."},
)
async def decide_session_approval(ctx: Ctx, session_id: str, task_key: str) -> Approval:
    """Decide about a call.

    `approve` lets the newest call with this key be made, `deny` ends it, and the agent goes on
    with the note. The first decision counts; the same one again is accepted and changes nothing.
    Only people decide, never an agent.
    """

    def act(tx: Tx) -> tuple[Approval, tuple[str, ...]]:
        found = session.find(tx, ctx.caller, session_id)
        session.require_control(ctx.caller, found)
        body = ctx.body(DecisionBody)
        secrets = secret.values(tx, ctx.sealer, found.id)
        note = None if body.note is None else mask_text(body.note, secrets)
        made = approval.decide_in_session(tx, ctx.caller, found.id, task_key, body.decision, note)
        return _wire(made), secrets

    return masked(*await ctx.write(act))


routes: list[Route] = [list_session_approvals, decide_session_approval]
