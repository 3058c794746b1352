"""Machines: named queues that workers serve, and that sessions wait in for a free one."""

from dataclasses import dataclass

from stenograph.accounts.access import Caller
from stenograph.clock import now
from stenograph.devices import store, store_targets
from stenograph.devices.device import ONLINE
from stenograph.storage.database import Tx


@dataclass(frozen=True, slots=True)
class Machine:
    """A queue: of its workers that are there, how many have a session; the sessions that wait."""

    name: str
    online: int
    busy: int
    waiting: int


def listed(tx: Tx, caller: Caller) -> list[Machine]:
    """List the organization's machines by name; two queries, however many there are."""
    workers = {
        name: (int(online), int(busy))
        for name, online, busy in store.workers(tx, caller.organization_id, now() - ONLINE)
    }
    waiting: dict[str, int] = dict(store_targets.waiting_sessions(tx, caller.organization_id))
    return [
        Machine(name, *workers.get(name, (0, 0)), waiting.get(name, 0))
        for name in sorted(workers.keys() | waiting.keys())
    ]
