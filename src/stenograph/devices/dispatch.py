"""Dispatches: tool calls that wait for a worker, or that one has taken on a lease.

`queued` → `claimed` → the status that the call ended with; `canceled` if its turn ended first. A
lease that is not extended is lost: what becomes of the call then, `engine.toolboxes.leases` says.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from stenograph.clock import SECOND, now
from stenograph.conversations import store as conversations
from stenograph.devices import store_dispatches as store
from stenograph.devices import store_targets
from stenograph.devices import target as targets
from stenograph.devices.device import Device
from stenograph.devices.target import Target
from stenograph.errors import ConflictError
from stenograph.events import waiting
from stenograph.ids import new_id
from stenograph.runs import task as tasks
from stenograph.storage.database import Row, Tx

Status: TypeAlias = Literal[
    "queued", "claimed", "completed", "failed", "timed_out", "uncertain", "canceled"
]

#: How long a lease lasts, in microseconds; its worker extends it every 10 seconds.
LEASE = 30 * SECOND
#: How often a call is given out that may be repeated.
MOST_CLAIMS = 3
#: Microseconds after which a machine's sessions do not wait for their worker any more.
GONE = 60 * SECOND


@dataclass(frozen=True, slots=True)
class Dispatch:
    """A call given out. `id` and `*_id` are row ids, but for `public_id`; `machine` None: only the
    device it is for may take it. `candidate` is the public id of what is being answered."""

    id: int
    public_id: str
    organization_id: int
    conversation_id: int
    session: str
    candidate: str
    run: str
    task_id: int
    task_key: str
    name: str | None
    task_status: tasks.Status
    device_id: int | None
    machine: str | None
    status: Status
    claims: int
    settlement_digest: bytes | None

    @property
    def task_ended(self) -> bool:
        """Whether the call has its end."""
        return self.task_status in tasks.TERMINAL


@dataclass(frozen=True, slots=True)
class Wish:
    """What a worker says with a claim: which sessions (public ids) it serves, and how many more it
    may take."""

    sessions: tuple[str, ...] = ()
    free: int = 1


@dataclass(frozen=True, slots=True)
class Lease:
    """`canceled`: the call has its end, and the worker is to stop. Time in microseconds."""

    expires_at: int
    canceled: bool


def add(
    tx: Tx, organization_id: int, conversation_id: int, task_id: int, target: Target
) -> Dispatch:
    """Offer a call to who may take it, unless it was offered before; returns how it stands."""
    store.add(
        tx,
        public_id=new_id(),
        organization_id=organization_id,
        conversation_id=conversation_id,
        task_id=task_id,
        device_id=target.device_id,
        machine=target.machine,
        status="queued",
        created_at=now(),
    )
    _tell(tx, organization_id)
    row = store.of_task(tx, task_id)
    assert row is not None
    return Dispatch(*row)


def is_any(tx: Tx, worker: Device, wish: Wish) -> bool:
    """Tell whether there is a call that the worker may take."""
    return bool(_claimable(tx, worker, wish))


def released(tx: Tx, worker: Device, wish: Wish) -> list[str]:
    """Return those of the worker's sessions that are not its to serve any more."""
    served = store_targets.served(tx, worker.id, wish.sessions)
    return [session for session in wish.sessions if session not in served]


def claim(tx: Tx, worker: Device, wish: Wish) -> tuple[Dispatch, str] | None:
    """Take the oldest call that the worker may; returns it with the claim's id.

    A session of a machine is bound to the worker with its first call. None: there is no call.
    """
    for dispatch_id, conversation_id, machine in _claimable(tx, worker, wish):
        conversations.lock(tx, conversation_id)
        if machine is not None and not targets.bind(tx, conversation_id, worker):
            continue
        at, claim_id = now(), new_id()
        if store.take(
            tx, dispatch_id, worker.id, claim=claim_id, at=at, lease_expires_at=at + LEASE
        ):
            return held(tx, worker, claim_id), claim_id
    return None


def held(tx: Tx, worker: Device, claim_id: str) -> Dispatch:
    """Return what a worker claimed. Raises `ConflictError` (`stale_claim`) for any claim that is
    not the worker's, or not any more."""
    row = store.of_claim(tx, worker.id, claim_id)
    if row is None:
        raise stale()
    return Dispatch(*row)


def stale() -> ConflictError:
    """The error for a claim that counts no more; it tells nothing of others' claims."""
    return ConflictError("The claim is not this worker's any more", code="stale_claim")


def extend(tx: Tx, worker: Device, claim_id: str) -> Lease:
    """Let a claim last for another 30 seconds, unless its call has its end.

    Raises `ConflictError` (`stale_claim`).
    """
    found = held(tx, worker, claim_id)
    at = now()
    if found.status == "canceled" or (found.status == "claimed" and found.task_ended):
        return Lease(at, True)
    if found.status != "claimed":
        raise stale()
    store.extend(tx, found.id, at + LEASE)
    return Lease(at + LEASE, False)


def settle(tx: Tx, found: Dispatch, status: Status, digest: bytes | None = None) -> None:
    """End a dispatch; its conversation is held. `digest` is of what the worker sent."""
    store.settle(tx, found.id, status, digest, now())


def due(tx: Tx) -> list[int]:
    """Return the conversations with calls that wait for what will not come, ascending."""
    at = now()
    return store.due(tx, at=at, gone=at - GONE)


def close(tx: Tx, conversation_id: int) -> None:
    """End what is offered though its call has its end."""
    store.close(tx, conversation_id, now())


def expired(tx: Tx, conversation_id: int) -> list[Dispatch]:
    """Return the calls of a conversation whose worker let the lease end."""
    return [Dispatch(*row) for row in store.expired(tx, conversation_id, now())]


def stranded(tx: Tx, conversation_id: int) -> list[Dispatch]:
    """Return the calls of a conversation that wait for a device that is gone."""
    return [Dispatch(*row) for row in store.stranded(tx, conversation_id, now() - GONE)]


def offer_again(tx: Tx, found: Dispatch) -> None:
    """Offer a call anew to the device that had it."""
    store.queue_again(tx, found.id, found.device_id)
    _tell(tx, found.organization_id)


def has_worked(tx: Tx, found: Dispatch) -> bool:
    """Tell whether the device of a dispatch did anything for its session, as far as is known."""
    assert found.device_id is not None
    return store.has_worked(tx, found.conversation_id, found.device_id)


def offer_to_all(tx: Tx, found: Dispatch) -> None:
    """Offer a call to all workers of its machine, and let its session go from its own."""
    leave(tx, found)
    store.queue_again(tx, found.id, None)
    _tell(tx, found.organization_id)


def leave(tx: Tx, found: Dispatch) -> None:
    """Let the session of a dispatch go from the worker that had it, if a machine's."""
    store_targets.unbind(tx, (found.conversation_id,), found.device_id)


def workers_of(organization_id: int) -> tuple[str, int]:
    """Return the key under which workers of an organization wait for calls."""
    return ("workers", organization_id)


def _claimable(tx: Tx, worker: Device, wish: Wish) -> list[Row]:
    return store.claimable(
        tx,
        organization_id=worker.organization_id,
        device_id=worker.id,
        machine=worker.machine,
        session_ids=wish.sessions,
        free=wish.free,
    )


def _tell(tx: Tx, organization_id: int) -> None:
    tx.after_commit(lambda: waiting.announce(workers_of(organization_id)))
