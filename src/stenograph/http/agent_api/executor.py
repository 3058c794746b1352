"""What workers ask: to enroll, for calls to make, for more time, to have what came of them kept."""

import asyncio
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

from litestar import Request

from stenograph import clock
from stenograph.devices import device, dispatch, ticket
from stenograph.devices.device import Device
from stenograph.devices.dispatch import LEASE, Wish
from stenograph.engine.toolbox import ToolOutcome
from stenograph.engine.toolboxes import leases, progress
from stenograph.engine.toolboxes.leases import Claimed
from stenograph.events import live
from stenograph.events.waiting import Waiter
from stenograph.http.agent_api import wire_executor as wire
from stenograph.http.context import Ctx
from stenograph.http.route import Route, post
from stenograph.sessions import secret
from stenograph.storage.database import Tx

_LEASE_SECONDS = LEASE // clock.SECOND
#: Seconds between two looks for what another process has queued.
_POLL = 2.0
_STALE = "`stale_claim`: the claim is not this worker's, or not any more; or `not_eligible`."


@post(
    "/executor/enrollments",
    id="enrollWorker",
    tag="Enrollment",
    plane="open",
    requests=60,
    body=wire.EnrollmentBody,
    status=201,
    answer=wire.EnrollmentAnswer,
    errors={
        409: "`ticket_used`.",
        422: "`ticket_expired`, `install_mismatch`, `verifier_mismatch`, `roots_mismatch`.",
    },
)
async def enroll(ctx: Ctx) -> wire.EnrollmentAnswer:
    """Enroll a worker with a ticket.

    It takes no credential: the ticket, which counts once, and the verifier of its challenge
    (RFC 7636, S256) are enough. If the answer was lost, the same request is answered with a new
    secret until the device has called for the first time.
    """
    body = ctx.body(wire.EnrollmentBody).enrollment
    enrolled = await ctx.write(lambda tx: ticket.use(tx, body))
    made = enrolled.device
    roots = [
        wire.EnrolledRoot(
            root.public_id,
            root.grant.path_fingerprint,
            root.grant.permissions,
            root.grant.execution_mode,
        )
        for root in made.roots
    ]
    told = wire.EnrolledDevice(
        made.public_id, enrolled.organization, made.name, made.lifecycle, made.machine, roots
    )
    return wire.EnrollmentAnswer(told, enrolled.secret)


@post(
    "/executor/claims",
    id="claimCall",
    tag="Executor",
    plane="executor",
    body=wire.ClaimBody,
    answer=wire.ClaimAnswer,
    errors={409: "`not_eligible`: no worker's secret, or a worker of another protocol."},
)
async def claim_call(ctx: Ctx) -> wire.ClaimAnswer:
    """Claim the next call that is to be made.

    Waits up to `wait_ms` for one; calls are given out in the order in which they were made, each to
    one worker. It is the worker's for 30 seconds, and as long as it extends its lease. With
    `released`, which is answered at once, it is told which of its sessions need it no more.
    """
    worker = await ctx.write(lambda tx: device.seen(tx, ctx.caller))
    sent = ctx.body(wire.ClaimBody).claim
    wish = Wish(tuple(dict.fromkeys(sent.sessions)), sent.free)
    loop = asyncio.get_running_loop()
    deadline = loop.time() + sent.wait_ms / 1000
    # Registered before the look, so that what is queued in between wakes it.
    with (
        Waiter(dispatch.workers_of(worker.organization_id), _POLL) as waiter,
        _hanging_up(ctx.request) as gone,
    ):
        while not await _is_done(gone):
            found, released = await _look(ctx, worker, wish)
            if found is not None or released or loop.time() >= deadline:
                return wire.ClaimAnswer(None if found is None else _claim(found), released)
            await waiter.wait(deadline - loop.time())
    return wire.ClaimAnswer(None, [])  # to nobody


async def _look(ctx: Ctx, worker: Device, wish: Wish) -> tuple[Claimed | None, list[str]]:
    def look(tx: Tx) -> tuple[bool, list[str]]:
        is_any = bool(dispatch.due(tx)) or dispatch.is_any(tx, worker, wish)
        return is_any, dispatch.released(tx, worker, wish)

    def act(tx: Tx) -> Claimed | None:
        if dispatch.due(tx):
            leases.expire(tx)
        return leases.claim(tx, ctx.sealer, worker, wish)

    is_any, released = await ctx.read(look)
    return await ctx.write(act) if is_any else None, released


@contextmanager
def _hanging_up(request: Request[Any, Any, Any]) -> Iterator["asyncio.Future[Any]"]:
    """A future that is done once the caller is gone, who then is to be given no call.

    Its body was read: all that can still come of a request is its end (ASGI, `http.disconnect`).
    """
    gone: asyncio.Future[Any] = asyncio.ensure_future(request.receive())
    try:
        yield gone
    finally:
        gone.cancel()


async def _is_done(gone: "asyncio.Future[Any]") -> bool:
    await asyncio.sleep(0)  # what has come meanwhile is seen now
    return gone.done()


def _claim(found: Claimed) -> wire.Claim:
    about = found.dispatch
    return wire.Claim(
        claim_id=found.claim_id,
        lease_seconds=_LEASE_SECONDS,
        run_public_id=about.run,
        task_key=about.task_key,
        session_id=about.session,
        root_id=found.root,
        workspace_path=found.workspace_path,
        tool=wire.Tool(about.name or "", found.arguments),
        environment=found.environment,
        timeout_ms=found.timeout_ms,
        resumed=found.resumed,
    )


@post(
    "/executor/claims/{claim}/lease",
    id="extendLease",
    tag="Claims",
    plane="executor",
    requests=600,
    answer=wire.LeaseAnswer,
    errors={409: _STALE},
)
async def extend_lease(ctx: Ctx, claim: str) -> wire.LeaseAnswer:
    """Extend the lease of a claim for another 30 seconds.

    If its turn ended meanwhile, `canceled` says so.
    """

    def act(tx: Tx) -> dispatch.Lease:
        return dispatch.extend(tx, device.seen(tx, ctx.caller), claim)

    found = await ctx.write(act)
    return wire.LeaseAnswer(
        wire.Lease(clock.iso_seconds(found.expires_at), _LEASE_SECONDS, found.canceled)
    )


@post(
    "/executor/claims/{claim}/progress",
    id="reportProgress",
    tag="Progress",
    plane="executor",
    requests=10_000,
    body=wire.ReportBody,
    answer=wire.ProgressAnswer,
    errors={409: _STALE},
)
async def report_progress(ctx: Ctx, claim: str) -> wire.ProgressAnswer:
    """Tell who watches what a claim's call has written so far.

    Send the end of the output, as often as it grows; it is told live, masked, and not kept.
    """
    sent = ctx.body(wire.ReportBody).progress
    report = progress.end_of(sent.text, sent.characters)
    conversation_id, frame = await ctx.read(
        lambda tx: progress.told(tx, ctx.sealer, device.calling(tx, ctx.caller), claim, report)
    )
    if frame is not None:
        live.publish(conversation_id, frame)
    return wire.ProgressAnswer(wire.Progress(live.is_watched(conversation_id, "progress")))


@post(
    "/executor/claims/{claim}/settlement",
    id="settleClaim",
    tag="Executor",
    plane="executor",
    body=wire.SettlementBody,
    answer=wire.SettlementAnswer,
    errors={409: _STALE},
)
async def settle_claim(ctx: Ctx, claim: str) -> wire.SettlementAnswer:
    """Settle a claim with what came of its call.

    The same again is accepted. Of a call that has its end already, as when its turn was cancelled,
    the output is dropped, and `canceled` says so.
    """
    sent = ctx.body(wire.SettlementBody).settlement
    outcome = ToolOutcome(sent.status, sent.output, sent.preview or None)

    def secrets(tx: Tx, conversation_id: int) -> Collection[str]:
        return secret.values(tx, ctx.sealer, conversation_id)

    def act(tx: Tx) -> leases.Settled:
        return leases.settle(tx, device.seen(tx, ctx.caller), claim, outcome, secrets)

    found = await ctx.write(act)
    return wire.SettlementAnswer(wire.Settlement(found.status, found.canceled))


routes: list[Route] = [enroll, claim_call, extend_lease, report_progress, settle_claim]
