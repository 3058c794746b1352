"""People and agents in an organization."""

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

from stenograph.accounts import store
from stenograph.accounts.access import Caller
from stenograph.clock import now
from stenograph.errors import ConflictError, ForbiddenError, InvalidInputError, NotFoundError
from stenograph.ids import new_id
from stenograph.storage.database import Row, Tx

Kind: TypeAlias = Literal["human", "agent"]

ROLES = ("owner", "admin", "member")
_HANDLE = re.compile(r"[a-z0-9][a-z0-9._-]{0,38}")


@dataclass(frozen=True, slots=True)
class Principal:
    """An agent has no role. Times are in microseconds."""

    id: int
    public_id: str
    kind: Kind
    handle: str
    display_name: str
    role: str | None
    created_at: int
    deactivated_at: int | None


def add(
    tx: Tx, caller: Caller, handle: str, *, role: str | None = "member", name: str | None = None
) -> Principal:
    """Add a person (or, with `role` None, an agent profile) to the caller's organization.

    Only owners and admins may; an admin makes no owner. Raises `ForbiddenError`,
    `InvalidInputError`, or `ConflictError` when the handle is taken.
    """
    if not caller.is_admin or (role == "owner" and caller.role != "owner"):
        raise ForbiddenError("Only an owner or admin adds people", code="forbidden")
    if role is not None and role not in ROLES:
        raise InvalidInputError(f"The role must be one of {', '.join(ROLES)}", code="invalid_role")
    if _HANDLE.fullmatch(handle) is None:
        raise InvalidInputError(
            "A handle is 1 to 39 of a-z, 0-9, '.', '_' and '-', and starts with a letter or digit",
            code="invalid_handle",
        )
    if store.principal(tx, caller.organization_id, handle) is not None:
        raise ConflictError(f"The handle {handle!r} is taken", code="handle_taken")
    create(tx, caller.organization_id, handle, role=role, name=name or handle)
    return find(tx, caller, handle)


def create(tx: Tx, organization_id: int, handle: str, *, role: str | None, name: str) -> int:
    """Insert a principal and return its row id; for the first start, which has no caller."""
    return tx.insert(
        "principals",
        public_id=new_id(),
        organization_id=organization_id,
        kind="agent" if role is None else "human",
        handle=handle,
        display_name=name,
        role=role,
        created_at=now(),
    )


def find(tx: Tx, caller: Caller, name: str) -> Principal:
    """Find someone in the caller's organization by public id or handle (`@` may lead it)."""
    row = store.principal(tx, caller.organization_id, name.removeprefix("@"))
    if row is None:
        raise NotFoundError(f"There is no one called {name!r}", code="principal_not_found")
    return _principal(row)


def everyone(tx: Tx, caller: Caller) -> list[Principal]:
    """List the caller's organization, oldest first."""
    return [_principal(row) for row in store.principals(tx, caller.organization_id)]


def _principal(row: Row) -> Principal:
    return Principal(*row)
