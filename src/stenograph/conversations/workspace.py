"""Workspaces: who is in one, making one, and what becomes of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from stenograph.accounts import principal
from stenograph.accounts import store as accounts
from stenograph.accounts.access import Caller
from stenograph.accounts.principal import Kind as PrincipalKind
from stenograph.clock import now
from stenograph.conversations import access, store, store_workspaces
from stenograph.conversations.access import Workspace
from stenograph.conversations.limits import check_metadata, check_text
from stenograph.errors import ConflictError, ForbiddenError, NotFoundError, RefusedError
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
    _let_in(tx, caller, workspace_id, members)
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


# Changing one. Each change is its owner's, and says which version it means.


def update(
    tx: Tx,
    caller: Caller,
    workspace: Workspace,
    lock_version: int,
    *,
    name: str | UnsetType = UNSET,
    access_mode: AccessMode | UnsetType = UNSET,
    metadata: dict[str, Any] | UnsetType = UNSET,
    members: Sequence[str] | UnsetType = UNSET,
) -> Workspace:
    """Set what is given; `members` are all there are from now on, beside the owner.

    Raises `ForbiddenError` (`not_workspace_owner`), `ConflictError` (`stale_object`,
    `workspace_not_active`), or `RefusedError` (`validation_failed`, `principal_not_eligible`).
    """
    held = _hold(tx, caller, workspace, lock_version)
    if held.state != "active":
        raise ConflictError("The workspace is not active", code="workspace_not_active")
    sets: dict[str, object] = {}
    if name is not UNSET:
        check_text("name", name, longest=255, blank=False)
        sets["name"] = name
    if access_mode is not UNSET:
        sets["access_mode"] = access_mode
    if metadata is not UNSET:
        sets["metadata"] = check_metadata(metadata)
    if members is not UNSET:
        store_workspaces.clear_members(tx, held.id)
        _let_in(tx, caller, held.id, members)
    return _changed(tx, caller, held, **sets)


def archive(tx: Tx, caller: Caller, workspace: Workspace, lock_version: int) -> Workspace:
    """Close a workspace for anything new; it is read as before, and what runs goes on.

    One that is archived stays. Raises `ForbiddenError` or `ConflictError` (`stale_object`).
    """
    held = _hold(tx, caller, workspace, lock_version)
    if held.state == "archived":
        return held
    return _changed(tx, caller, held, state="archived", archived_at=now())


def restore(tx: Tx, caller: Caller, workspace: Workspace, lock_version: int) -> Workspace:
    """Open an archived workspace again; one that is active stays. Raises what `archive` does."""
    held = _hold(tx, caller, workspace, lock_version)
    if held.state == "active":
        return held
    return _changed(tx, caller, held, state="active", archived_at=None)


def delete(tx: Tx, caller: Caller, workspace: Workspace, lock_version: int) -> None:
    """Make a workspace and all its conversations tombstones.

    Raises `ForbiddenError`, also if it holds a conversation that the caller may not change, or
    `ConflictError`: `stale_object`, and `conversation_busy` while something in it works.
    """
    held = _hold(tx, caller, workspace, lock_version)
    if store_workspaces.holds_others(tx, held.id, caller.principal_id):
        raise ForbiddenError("It holds conversations that you may not change")
    if store_workspaces.is_live(tx, held.id):
        raise ConflictError("Something is under way here: cancel it", code="conversation_busy")
    at = now()
    _changed(tx, caller, held, state="tombstone")
    store_workspaces.bury(tx, held.id, at)


def _hold(tx: Tx, caller: Caller, workspace: Workspace, lock_version: int) -> Workspace:
    """Hold a workspace of the caller's until the transaction ends, and return it as it is now."""
    if not store_workspaces.hold(tx, workspace.id, caller.principal_id):
        raise ForbiddenError("Only the workspace's owner may do this", code="not_workspace_owner")
    held = access.find_workspace(tx, caller, workspace.public_id)
    if held.lock_version != lock_version:
        raise ConflictError(
            f"The workspace has changed: it is at version {held.lock_version}", code="stale_object"
        )
    return held


def _changed(tx: Tx, caller: Caller, held: Workspace, **columns: object) -> Workspace:
    store_workspaces.update(
        tx, held.id, lock_version=held.lock_version + 1, updated_at=now(), **columns
    )
    return access.find_workspace(tx, caller, held.public_id)


def _let_in(tx: Tx, caller: Caller, workspace_id: int, members: Sequence[str]) -> None:
    # Each once, so that there are no more to look up than people with their names.
    for member in dict.fromkeys(members):
        try:
            found = principal.find(tx, caller, member)
        except NotFoundError:
            raise RefusedError(
                "One of the members is no one here", code="principal_not_eligible"
            ) from None
        store.add_member(tx, workspace_id, found.id)
