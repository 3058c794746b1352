"""A Reason: a long-running agent that a person keeps, with one conversation (reason-api.md 2).

Its owner reads and drives it, the people it is shared with read it; to everyone else, owners and
admins of the organization included, it is not there. The same goes for its sessions, in both API
families.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from stenograph.accounts import principal
from stenograph.accounts.access import Caller
from stenograph.clock import now
from stenograph.errors import ConflictError, ForbiddenError, InvalidInputError, NotFoundError
from stenograph.ids import new_id
from stenograph.sessions import store_reasons as store
from stenograph.storage.database import Row, Tx


@dataclass(frozen=True, slots=True)
class Reason:
    """`conversation_id` and `session_public_id` are None until its first message opens it.

    `shared_with` are public ids. Times are in microseconds.
    """

    id: int
    public_id: str
    owner_id: int
    owner_public_id: str
    name: str
    instructions: str
    default_model: str | None
    repositories: list[str]
    is_main: bool
    conversation_id: int | None
    session_public_id: str | None
    shared_with: list[str]
    created_at: int
    updated_at: int


@dataclass(frozen=True, slots=True)
class Profile:
    """What a person says of a Reason."""

    name: str
    instructions: str = ""
    default_model: str | None = None
    repositories: Sequence[str] = ()
    is_main: bool = False


def create(tx: Tx, caller: Caller, profile: Profile) -> Reason:
    """Make a Reason of the caller's; `ConflictError` (`main_reason_exists`) for a second main."""
    if profile.is_main:
        _no_other_main(tx, caller)
    at, public_id = now(), new_id()
    tx.insert(
        "reasons",
        public_id=public_id,
        organization_id=caller.organization_id,
        owner_id=caller.principal_id,
        created_at=at,
        updated_at=at,
        **_columns(profile),
    )
    return find(tx, caller, public_id)


def find(tx: Tx, caller: Caller, public_id: str) -> Reason:
    """Return a Reason; `NotFoundError` (`reason_not_found`) if the caller may not see it."""
    row = store.find(tx, caller.organization_id, caller.principal_id, public_id)
    if row is None:
        raise NotFoundError("There is no such Reason", code="reason_not_found")
    return _reasons(tx, [row])[0]


def listed(tx: Tx, caller: Caller, *, after: int, limit: int) -> list[Reason]:
    """List the caller's Reasons and those shared with them, oldest first; `after` is a row id."""
    return _reasons(tx, store.listed(tx, caller.organization_id, caller.principal_id, after, limit))


def update(tx: Tx, caller: Caller, public_id: str, profile: Profile) -> Reason:
    """Set what a person says of a Reason of theirs."""
    found = require_own(caller, find(tx, caller, public_id))
    if profile.is_main and not found.is_main:
        _no_other_main(tx, caller)
    store.update(tx, found.id, updated_at=now(), **_columns(profile))
    return find(tx, caller, public_id)


def share(tx: Tx, caller: Caller, public_id: str, people: Sequence[str]) -> Reason:
    """Share a Reason with exactly these people, by public id or handle, for reading.

    Raises `InvalidInputError` (`principal_not_found`) for one who is not in the organization.
    """
    found = require_own(caller, find(tx, caller, public_id))
    ids = {_person(tx, caller, name) for name in people} - {caller.principal_id}
    store.replace_shares(tx, found.id, sorted(ids))
    return find(tx, caller, public_id)


def require_own(caller: Caller, found: Reason) -> Reason:
    """Check that a Reason the caller sees is theirs; `ForbiddenError` (`forbidden`) if not."""
    if found.owner_id != caller.principal_id:
        raise ForbiddenError("Only the Reason's owner may do this", code="forbidden")
    return found


def _person(tx: Tx, caller: Caller, name: str) -> int:
    try:
        found = principal.find(tx, caller, name)
    except NotFoundError:
        found = None
    if found is None or found.deactivated_at is not None:
        raise InvalidInputError(
            "There is no such person in the organization", code="principal_not_found"
        )
    return found.id


def _no_other_main(tx: Tx, caller: Caller) -> None:
    if store.has_main(tx, caller.principal_id):
        raise ConflictError("There is a main Reason already", code="main_reason_exists")


def _columns(profile: Profile) -> dict[str, Any]:
    return {
        "name": profile.name,
        "instructions": profile.instructions,
        "default_model": profile.default_model,
        "repositories": msgspec.json.encode(profile.repositories).decode(),
        "is_main": int(profile.is_main),
    }


def _reasons(tx: Tx, rows: Sequence[Row]) -> list[Reason]:
    people: dict[int, list[str]] = {row[0]: [] for row in rows}
    if rows:
        for reason_id, public_id in store.shares(tx, people):
            people[reason_id].append(public_id)
    return [_reason(row, people[row[0]]) for row in rows]


def _reason(row: Row, shared_with: list[str]) -> Reason:
    (row_id, public_id, owner_id, owner, name, instructions, model, repositories, is_main,
     conversation_id, session, created_at, updated_at) = row  # fmt: skip
    return Reason(
        id=row_id,
        public_id=public_id,
        owner_id=owner_id,
        owner_public_id=owner,
        name=name,
        instructions=instructions,
        default_model=model,
        repositories=msgspec.json.decode(repositories),
        is_main=bool(is_main),
        conversation_id=conversation_id,
        session_public_id=session,
        shared_with=shared_with,
        created_at=created_at,
        updated_at=updated_at,
    )
