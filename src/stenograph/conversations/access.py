"""What a caller sees and may change (agent-api.md 1.3 and 2).

Lookup comes before authorization: what the caller may not see does not exist, what it sees and
may not change is forbidden.
"""

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from stenograph.accounts.access import Caller
from stenograph.conversations import store
from stenograph.errors import ConflictError, ForbiddenError, NotFoundError
from stenograph.storage.database import Tx

Level: TypeAlias = Literal["full", "read"]


@dataclass(frozen=True, slots=True)
class Workspace:
    """A container of conversations. Times are in microseconds, `metadata` is a JSON object."""

    id: int
    public_id: str
    name: str
    access_mode: str
    state: str
    metadata: str
    lock_version: int
    archived_at: int | None
    created_at: int
    updated_at: int


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation as one caller sees it; `level` is what that caller may do.

    A *fork* shows its ancestors' turns up to a boundary besides its own.
    """

    level: Level
    id: int
    public_id: str
    workspace_id: int
    workspace_state: str
    creator_id: int
    answerer_id: int | None
    is_fork: bool
    side: bool
    context_revision: int
    active_turn_id: int | None
    next_sequence: int
    archived_at: int | None


def find_workspace(tx: Tx, caller: Caller, public_id: str) -> Workspace:
    """Return a workspace the caller belongs to. Raises `NotFoundError`."""
    row = store.workspace(tx, caller.organization_id, caller.principal_id, public_id)
    if row is None:
        raise NotFoundError("Not found")
    return Workspace(*row)


def find(
    tx: Tx, caller: Caller, workspace_public_id: str, conversation_public_id: str
) -> Conversation:
    """Return a conversation of that workspace which the caller may read.

    Raises `NotFoundError`, the same whether the workspace or the conversation is unknown, deleted
    or closed to the caller.
    """
    row = store.conversation(
        tx,
        caller.organization_id,
        caller.principal_id,
        workspace_public_id,
        conversation_public_id,
    )
    if row is None:
        raise NotFoundError("Not found")
    return Conversation(*row)


def find_for_run(
    tx: Tx, caller: Caller, workspace_public_id: str, run_public_id: str
) -> tuple[int, Conversation]:
    """Return the row id of a run and the conversation that owns it; raises `NotFoundError`.

    A run whose candidate or turn is concealed is not there either.
    """
    row = store.conversation_of_run(
        tx, caller.organization_id, caller.principal_id, workspace_public_id, run_public_id
    )
    if row is None:
        raise NotFoundError("Not found")
    return row[0], Conversation(*row[1:])


def require_full(conversation: Conversation) -> None:
    """Raise `ForbiddenError` unless the caller may change the conversation."""
    if conversation.level != "full":
        raise ForbiddenError("You may read this conversation, not change it")


def hold(tx: Tx, conversation: Conversation) -> Conversation:
    """Hold a conversation until the transaction ends, and return it as it is now.

    Raises `NotFoundError` if it was deleted since it was found.
    """
    row = store.hold(tx, conversation.id)
    if row is None:
        raise NotFoundError("Not found")
    revision, active_turn_id, next_sequence, archived_at = row
    return replace(
        conversation,
        context_revision=revision,
        active_turn_id=active_turn_id,
        next_sequence=next_sequence,
        archived_at=archived_at,
    )


def require_workspace(conversation: Conversation) -> None:
    """Raise `ConflictError` unless things may be changed in the conversation's workspace."""
    if conversation.workspace_state != "active":
        raise ConflictError("The workspace is not active", code="workspace_not_active")


def require_open(conversation: Conversation) -> None:
    """Raise `ConflictError` unless the conversation takes new turns."""
    require_workspace(conversation)
    if conversation.archived_at is not None:
        raise ConflictError("The conversation is archived", code="conversation_archived")
