"""Workspaces: who is in one, and making one."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import msgspec

from stenograph.accounts import principal
from stenograph.accounts import store as accounts
from stenograph.accounts.access import Caller
from stenograph.accounts.principal import Kind as PrincipalKind
from stenograph.clock import now
from stenograph.conversations import access, store
from stenograph.conversations.access import Workspace
from stenograph.conversations.limits import check_metadata, check_text
from stenograph.errors import NotFoundError, RefusedError
from stenograph.ids import new_id
from stenograph.storage.database import Tx

AccessMode: TypeAlias = Literal["private", "account_wide"]


@dataclass(frozen=True, slots=True)
class Person:
    """Someone in a workspace."""

    public_id: str
    handle: str
    kind: PrincipalKind
    display_name: str


@dataclass(frozen=True, slots=True)
class Details:
    """A workspace with the people who own and made it."""

    workspace: Workspace
    owner: Person
    creator: Person


def create(
    tx: Tx,
    caller: Caller,
    name: str,
    *,
    access_mode: AccessMode = "private",
    metadata: dict[str, Any] | None = None,
    members: Sequence[str] = (),
) -> Workspace:
    """Make a workspace that the caller owns and that `members` (handles or ids) belong to.

    `private`: its owner and members see it; `account_wide`: the whole organization. Raises
    `RefusedError` (`validation_failed`, `principal_not_eligible`).
    """
    check_text("name", name, longest=255, blank=False)
    at = now()
    public_id = new_id()
    workspace_id = tx.insert(
        "workspaces",
        public_id=public_id,
        organization_id=caller.organization_id,
        owner_id=caller.principal_id,
        creator_id=caller.principal_id,
        name=name,
        access_mode=access_mode,
        state="active",
        metadata=check_metadata(metadata),
        lock_version=0,
        created_at=at,
        updated_at=at,
    )
    for member in members:
        try:
            found = principal.find(tx, caller, member)
        except NotFoundError:
            raise RefusedError(
                "One of the members is no one here", code="principal_not_eligible"
            ) from None
        store.add_member(tx, workspace_id, found.id)
    return access.find_workspace(tx, caller, public_id)


def shared(tx: Tx, caller: Caller, name: str) -> int:
    """Return the workspace of this name that the whole organization sees, by its row id.

    It is made when first asked for, once.
    """
    found = store.shared_workspace(tx, caller.organization_id, name)
    if found is None:
        accounts.hold_organization(tx, caller.organization_id)
        found = store.shared_workspace(tx, caller.organization_id, name)
    return found or create(tx, caller, name, access_mode="account_wide").id


def page(
    tx: Tx, caller: Caller, *, after: int | None, limit: int, descending: bool
) -> list[Workspace]:
    """List up to `limit` workspaces the caller belongs to, behind the row id `after`."""
    rows = store.workspaces(
        tx,
        caller.organization_id,
        caller.principal_id,
        after=after,
        limit=limit,
        descending=descending,
    )
    return [Workspace(*row) for row in rows]


def details(tx: Tx, workspace: Workspace) -> Details:
    """Return a workspace with its owner and creator."""
    owner, creator = store.workspace_people(tx, workspace.id)
    return Details(workspace, Person(*owner), Person(*creator))


def principals(tx: Tx, workspace: Workspace) -> list[Person]:
    """List who belongs to a workspace, in order of joining the organization."""
    return [Person(*row) for row in store.members(tx, workspace.id)]


def metadata(workspace: Workspace) -> dict[str, Any]:
    """Return what the workspace's makers noted of it."""
    return msgspec.json.decode(workspace.metadata, type=dict[str, Any])
