"""Ephemeral workspaces: child organizations that live for hours and admit one session.

Whoever runs an agent on its own premises makes one for each run, hands its key over and retires
it; the reaper retires those whose time is up (reason-api.md 3).
"""

import hashlib
from dataclasses import dataclass

import msgspec

from stenograph.accounts import access, credential, organization, principal, scopes
from stenograph.accounts import store as accounts
from stenograph.accounts.access import Caller
from stenograph.clock import MINUTE, now
from stenograph.errors import ConflictError, ForbiddenError, InvalidInputError, NotFoundError
from stenograph.ids import new_id
from stenograph.sessions import ending, store_ephemeral
from stenograph.storage.database import Row, Tx
from stenograph.storage.sealing import Sealer

#: The longest time that one may live, in minutes.
LONGEST = 720
#: How many of one organization may live at once.
LIMIT = 100
#: What its key never holds: it drives one session, and changes nothing of the organization.
_WITHHELD = frozenset({"org:write", "network:write"})


@dataclass(frozen=True, slots=True)
class Workspace:
    """An ephemeral workspace; `api_key` is told until its session begins. Times in microseconds."""

    organization_public_id: str
    parent_public_id: str
    reference: str
    api_key: str | None
    expires_at: int
    retired_at: int | None


def create(
    tx: Tx, caller: Caller, sealer: Sealer, reference: str, minutes: int, rcus: int | None
) -> tuple[Workspace, bool]:
    """Make a child organization with a key, and tell whether it is new; the same request again
    answers the same one.

    Raises `ForbiddenError` for others than owners and admins; `InvalidInputError`
    (`invalid_reference`, `invalid_ttl`); `ConflictError` `ephemeral_workspace_…`:
    `reference_conflict` for another request by this reference, `retired`, `limit_reached`.
    """
    if not caller.is_admin:
        raise ForbiddenError("Only an owner or admin makes workspaces", code="forbidden")
    if not reference.strip() or len(reference) > 200 or not reference.isprintable():
        raise InvalidInputError("A reference is one line", code="invalid_reference")
    if not 1 <= minutes <= LONGEST:
        raise InvalidInputError(f"A workspace lives 1 to {LONGEST} minutes", code="invalid_ttl")
    accounts.hold_organization(tx, caller.organization_id)
    asked = hashlib.blake2b(msgspec.json.encode([minutes, rcus]), digest_size=16).digest()
    found = store_ephemeral.by_reference(tx, caller.organization_id, reference)
    if found is not None:
        return _again(caller, sealer, found, asked), False
    if store_ephemeral.count_live(tx, caller.organization_id) >= LIMIT:
        raise ConflictError(
            f"{LIMIT} workspaces live already: retire some",
            code="ephemeral_workspace_limit_reached",
        )
    child_id = organization.create(tx, f"e-{new_id()}", reference)
    assert child_id is not None
    at = now()
    expires_at = at + minutes * MINUTE
    owner_id = principal.create(tx, child_id, "owner", role="owner", name="Owner")
    granted = (scopes.default("owner") & scopes.held(caller.scopes, caller.role)) - _WITHHELD
    _, key = credential.insert(
        tx, child_id, owner_id, "api", granted, name=reference, expires_at=expires_at
    )
    store_ephemeral.add(
        tx,
        organization_id=child_id,
        parent_id=caller.organization_id,
        creator_id=caller.principal_id,
        reference=reference,
        digest=asked,
        ciphertext=sealer.seal(key, _context(child_id)),
        created_at=at,
        expires_at=expires_at,
    )
    made = store_ephemeral.by_reference(tx, caller.organization_id, reference)
    assert made is not None
    return _again(caller, sealer, made, asked), True


def _again(caller: Caller, sealer: Sealer, row: Row, asked: bytes) -> Workspace:
    child_id, public_id, reference, digest, ciphertext, expires_at, retired_at = row
    if bytes(digest) != asked:
        raise ConflictError(
            "The reference names a workspace that was asked for otherwise",
            code="ephemeral_workspace_reference_conflict",
        )
    if retired_at is not None:
        raise ConflictError("The workspace was retired", code="ephemeral_workspace_retired")
    key = None if ciphertext is None else sealer.open(bytes(ciphertext), _context(child_id))
    return Workspace(
        public_id, caller.organization_public_id, reference, key, expires_at, retired_at
    )


def retire(tx: Tx, caller: Caller, public_id: str) -> int:
    """End a workspace of the caller's organization, with its key and what runs in it; returns
    when it ended, which for one that had ended is then.

    Raises `ForbiddenError`, or `NotFoundError` `organization_not_found`.
    """
    if not caller.is_admin:
        raise ForbiddenError("Only an owner or admin retires workspaces", code="forbidden")
    accounts.hold_organization(tx, caller.organization_id)
    found = store_ephemeral.by_public_id(tx, caller.organization_id, public_id)
    if found is None:
        raise NotFoundError("There is no such workspace", code="organization_not_found")
    child_id, retired_at = found
    return int(retired_at) if retired_at is not None else _retire(tx, child_id)


def is_due(tx: Tx) -> bool:
    """Tell whether the time of a workspace is up."""
    return bool(store_ephemeral.due(tx, now(), 1))


def expire(tx: Tx, limit: int = 100) -> int:
    """Retire workspaces whose time is up, and return how many."""
    due = store_ephemeral.due(tx, now(), limit)
    for child_id in due:
        _retire(tx, child_id)
    return len(due)


def _retire(tx: Tx, child_id: int) -> int:
    at = now()
    store_ephemeral.retire(tx, child_id, at)
    owner = access.local(tx, store_ephemeral.slug(tx, child_id))
    for session in store_ephemeral.running(tx, child_id):
        ending.cancel(tx, owner, session)
    return at


def _context(child_id: int) -> str:
    return f"ephemeral_workspace:{child_id}"
