"""The default runner of a conversation: the device whose tools its agents use."""

from dataclasses import dataclass

from stenograph.accounts.access import Caller
from stenograph.clock import now
from stenograph.conversations import access, store, store_runners
from stenograph.conversations.access import Conversation
from stenograph.errors import ConflictError, NotFoundError, RefusedError
from stenograph.events.journal import Event, append
from stenograph.storage.database import Tx


@dataclass(frozen=True, slots=True)
class Runner:
    """A device of the organization; `removed`: it serves nobody any more."""

    id: int
    public_id: str
    name: str
    removed: bool


def find(tx: Tx, caller: Caller, executor: str) -> Runner | None:
    """Return a device of the caller's organization by its public id."""
    row = store_runners.find(tx, caller.organization_id, executor)
    return None if row is None else Runner(row[0], row[1], row[2], row[3] is not None)


def of(tx: Tx, conversation_id: int) -> Runner | None:
    """Return the default runner of a conversation; None: it has none."""
    row = store_runners.of(tx, conversation_id)
    return None if row is None else Runner(row[0], row[1], row[2], row[3] is not None)


def require(tx: Tx, caller: Caller, executor: str) -> int:
    """Return the row id of a device that a new conversation may have.

    Raises `RefusedError` (`runner_not_eligible`).
    """
    found = find(tx, caller, executor)
    if found is None or found.removed:
        raise RefusedError("There is no such runner, or not any more", code="runner_not_eligible")
    return found.id


def set_default(tx: Tx, caller: Caller, conversation: Conversation, executor: str | None) -> None:
    """Choose the device whose tools are used from the next turn on; None: no device.

    Raises `ForbiddenError`; `NotFoundError` (`runner_not_found`); `ConflictError`
    (`runner_not_eligible` for a device that was removed, `conversation_archived`,
    `workspace_not_active`).
    """
    access.require_full(conversation)
    found = None if executor is None else find(tx, caller, executor)
    if executor is not None and found is None:
        raise NotFoundError("There is no such runner", code="runner_not_found")
    held = access.hold(tx, conversation)
    access.require_open(held)
    if found is not None and found.removed:
        raise ConflictError("The runner was removed", code="runner_not_eligible")
    before = of(tx, held.id)
    if (before and before.id) == (found and found.id):
        return
    store.update(tx, held.id, default_runner_id=found and found.id, updated_at=now())
    payload = {"executor_public_id": found and found.public_id}
    append(tx, held.id, Event("default_runner_changed", payload=payload))
