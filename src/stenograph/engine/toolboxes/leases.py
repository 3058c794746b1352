"""Calls of a run in the hands of workers: given out, taken, settled, lost.

Each is one transaction over both: the dispatch, which says who has the call, and the record, which
says what came of it. The conversation is held in each.
"""

import hashlib
from dataclasses import dataclass
from typing import Any

import msgspec

from stenograph.conversations import store as conversations
from stenograph.devices import device, dispatch, target
from stenograph.devices.device import Device
from stenograph.devices.dispatch import Dispatch, Wish
from stenograph.engine import budget, calls, history, store
from stenograph.engine.results import Secrets, no_secrets
from stenograph.engine.toolbox import ToolOutcome, ToolStatus
from stenograph.engine.tools.toolbox import TOOLS
from stenograph.engine.work import hold
from stenograph.runs import store as runs
from stenograph.runs import task as tasks
from stenograph.runs.run import Run
from stenograph.runs.task import Status
from stenograph.sessions import secret
from stenograph.storage.database import Tx
from stenograph.storage.sealing import Sealer

#: What may be done twice; whatever a lost worker did of another tool is not known.
_REPEATABLE = frozenset(tool.name for tool in TOOLS if tool.repeatable)

LOST = (
    "The worker stopped answering while it made this call, and nobody knows whether it took effect:"
    " look at what is there before you call it again."
)
GONE = (
    "The worker that had this session's files is gone, and this call was not done. What was on that"
    " worker is out of reach"
)
_ANOTHER = "; the next call goes to another worker, which starts without it."
_NO_OTHER = ", and no other worker serves this session."


@dataclass(frozen=True, slots=True)
class Claimed:
    """A call that a worker has taken, with all that it needs.

    `root` and `workspace_path` say where, `environment` the session's secrets by name,
    `timeout_ms` what is left of the turn's time (None: no limit). `resumed`: it was given out
    before, and may have been begun.
    """

    dispatch: Dispatch
    claim_id: str
    root: str
    workspace_path: str | None
    arguments: dict[str, Any]
    environment: dict[str, str]
    timeout_ms: int | None

    @property
    def resumed(self) -> bool:
        return self.dispatch.claims > 1


@dataclass(frozen=True, slots=True)
class Settled:
    """How a call stands after its settlement; `canceled`: it had its end before."""

    status: Status
    canceled: bool


def offer(tx: Tx, candidate: str, key: str) -> bool:
    """Offer a call to workers, once, however often this is called; False: it has its end, or the
    conversation has no place where workers could work."""
    work = hold(tx, candidate)
    if work is None or work.run is None or work.settled:
        return False
    task = tasks.find(tx, work.run, key)
    where = target.of(tx, work.conversation.id)
    if task.status in tasks.TERMINAL or where is None:
        return False
    found = dispatch.add(tx, work.organization_id, work.conversation.id, task.id, where)
    status: Status = "running" if found.status == "claimed" else "dispatched"
    if task.status != status:
        tasks.start(tx, work.run, task, status)
    return True


def claim(tx: Tx, sealer: Sealer, worker: Device, wish: Wish) -> Claimed | None:
    """Take the next call for a worker; None: there is none, or the worker was removed."""
    present = device.by_id(tx, worker.id)
    taken = None if present is None else dispatch.claim(tx, present, wish)
    if present is None or taken is None:
        return None
    found, claim_id = taken
    work = hold(tx, found.candidate)
    where = target.of(tx, found.conversation_id)
    assert work is not None
    assert work.run is not None
    assert where is not None
    tasks.start(tx, work.run, tasks.find(tx, work.run, found.task_key))
    left = budget.seconds_left(work, budget.read(work.options))
    return Claimed(
        dispatch=found,
        claim_id=claim_id,
        root=next(root.public_id for root in present.roots if root.id == where.root_id),
        workspace_path=where.workspace_path,
        arguments=msgspec.json.decode(store.call_details(tx, found.task_id)[0]),
        environment=secret.environment(tx, sealer, found.conversation_id),
        timeout_ms=None if left is None else max(0, int(left * 1000)),
    )


def settle(
    tx: Tx,
    worker: Device,
    claim_id: str,
    outcome: ToolOutcome,
    secrets: Secrets = no_secrets,
) -> Settled:
    """Write what came of a call (`calls.settle`); the same again is accepted, and changes nothing.

    Of a call that has its end already, the output is dropped. Raises `ConflictError`
    (`stale_claim`).
    """
    candidate = dispatch.held(tx, worker, claim_id).candidate
    work = hold(tx, candidate)
    found = dispatch.held(tx, worker, claim_id)  # as it stands now that nobody changes it
    digest = _digest(outcome)
    if found.settlement_digest is not None:
        if found.settlement_digest != digest:
            raise dispatch.stale()
    elif found.status not in ("claimed", "canceled"):
        raise dispatch.stale()
    elif found.status == "canceled" or found.task_ended or work is None or work.settled:
        dispatch.settle(tx, found, "canceled", digest)
    else:
        calls.settle(tx, candidate, found.task_key, outcome, secrets)
        dispatch.settle(tx, found, outcome.status, digest)
    settled = dispatch.held(tx, worker, claim_id)
    return Settled(settled.task_status, settled.status == "canceled")


def _digest(outcome: ToolOutcome) -> bytes:
    sent = (outcome.status, outcome.output, outcome.preview)
    return hashlib.sha256(msgspec.json.encode(sent)).digest()


def is_due(tx: Tx) -> bool:
    """Tell whether `expire` has anything to do."""
    return bool(dispatch.due(tx) or target.releasable(tx) or device.abandoned(tx))


def expire(tx: Tx) -> None:
    """Give up what will not come: leases that nobody extends, workers that are gone.

    A call that may be repeated is offered again, up to `dispatch.MOST_CLAIMS` times in all; any
    other is `uncertain`. A session of a machine whose worker is gone goes to another, unless the
    lost one did something for it: then its agent is told first, by a call that fails.
    """
    device.retire(tx)
    for conversation_id in dispatch.due(tx):
        conversations.lock(tx, conversation_id)
        dispatch.close(tx, conversation_id)
        for lost in dispatch.expired(tx, conversation_id):
            _give_up(tx, lost)
        stranded = dispatch.stranded(tx, conversation_id)
        worked = {it.device_id for it in stranded if dispatch.has_worked(tx, it)}
        for waiting in stranded:
            _move_on(tx, waiting, has_worked=waiting.device_id in worked)
    target.release(tx)


def _move_on(tx: Tx, waiting: Dispatch, *, has_worked: bool) -> None:
    if waiting.machine is not None and not has_worked:
        dispatch.offer_to_all(tx, waiting)
        return
    dispatch.leave(tx, waiting)
    rest = _NO_OTHER if waiting.machine is None else _ANOTHER
    _end(tx, waiting, ToolOutcome("failed", GONE + rest))


def _give_up(tx: Tx, lost: Dispatch) -> None:
    if lost.name in _REPEATABLE and lost.claims < dispatch.MOST_CLAIMS:
        dispatch.offer_again(tx, lost)
        work = hold(tx, lost.candidate)
        if work is not None and work.run is not None:
            tasks.start(tx, work.run, tasks.find(tx, work.run, lost.task_key), "dispatched")
    else:
        _end(tx, lost, ToolOutcome("uncertain", LOST))


def _end(tx: Tx, found: Dispatch, outcome: ToolOutcome) -> None:
    calls.settle(tx, found.candidate, found.task_key, outcome)
    dispatch.settle(tx, found, outcome.status)


def outcome(tx: Tx, run: Run, key: str) -> ToolOutcome | None:
    """Return what came of a call; None: it has no end yet."""
    task = tasks.find(tx, run, key)
    if task.status not in tasks.TERMINAL:
        return None
    status: ToolStatus = "failed"  # of a call that was canceled nobody asks for more
    if task.status in ("completed", "timed_out", "uncertain"):
        status = task.status
    _, output = runs.task_details(tx, task.id)
    rest = history.read_rest(store.call_details(tx, task.id)[1])
    return ToolOutcome(status, output or "", rest.preview)
