"""Keys: made once, shown once, stored as a digest, revoked for good."""

import secrets
import string
from collections.abc import Iterable
from dataclasses import dataclass

from stenograph.accounts import principal, scopes, store
from stenograph.accounts.access import Caller
from stenograph.clock import DAY, now
from stenograph.errors import ForbiddenError, InvalidInputError, NotFoundError
from stenograph.ids import new_id
from stenograph.storage.database import Row, Tx

#: What the secret of each plane starts with.
PREFIXES = {"api": "reason_", "member": "sk-steno-v1-", "executor": "sk-steno-v1-"}
_ALPHABET = string.ascii_letters + string.digits
#: 43 letters and digits hold 256 bits.
_LENGTH = 43
_MAX_DAYS = 36_500


@dataclass(frozen=True, slots=True)
class Credential:
    """`plane` is `api`, `member` or `executor`; `hint` is the start of the secret, to tell keys
    apart; `scopes` is empty but on `api`. Times are in microseconds."""

    public_id: str
    plane: str
    name: str
    hint: str
    scopes: tuple[str, ...]
    created_at: int
    expires_at: int | None
    revoked_at: int | None
    holder_public_id: str
    holder_handle: str


def create(
    tx: Tx,
    caller: Caller,
    plane: str,
    *,
    holder: str | None = None,
    wanted: Iterable[str] | None = None,
    name: str = "",
    expires_days: int | None = None,
) -> tuple[Credential, str]:
    """Make a key for `holder` (handle or public id; None: the caller) and return its secret too.

    No key grants more than its maker's: `wanted` scopes beyond the caller's own are refused, and
    what an owner or admin alone may hold is refused to others. Without `wanted`, the key gets the
    caller's share of the default scopes. Raises `ForbiddenError` or `InvalidInputError`.
    """
    if plane not in PREFIXES:
        raise InvalidInputError(f"The plane must be one of {', '.join(PREFIXES)}", code="bad_plane")
    if expires_days is not None and not 1 <= expires_days <= _MAX_DAYS:
        raise InvalidInputError("A key lasts 1 to 36500 days", code="invalid_expiry")
    who = principal.find(tx, caller, holder or caller.principal_public_id)
    if who.id != caller.principal_id and not caller.is_admin:
        raise ForbiddenError("Only an owner or admin makes keys for others", code="forbidden")
    if who.role == "owner" and caller.role != "owner":
        raise ForbiddenError("Only an owner makes an owner's keys", code="forbidden")
    granted = _granted(caller, who.role, wanted) if plane == "api" else frozenset()
    expires_at = None if expires_days is None else now() + expires_days * DAY
    public_id, secret = insert(
        tx, caller.organization_id, who.id, plane, granted, name=name, expires_at=expires_at
    )
    made = next(c for c in listed(tx, caller, who) if c.public_id == public_id)
    return made, secret


def _granted(caller: Caller, role: str | None, wanted: Iterable[str] | None) -> frozenset[str]:
    if wanted is None:
        return scopes.default(role) & scopes.held(caller.scopes, caller.role)
    asked = scopes.parse(wanted)
    if refused := asked - scopes.held(caller.scopes, caller.role):
        raise ForbiddenError(
            f"The maker of a key must hold its scopes; {sorted(refused)[0]} is lacking",
            code="missing_scope",
            required_scope=sorted(refused)[0],
        )
    if refused := asked - scopes.held(asked, role):
        raise ForbiddenError(
            f"Only an owner or admin may hold {sorted(refused)[0]}", code="forbidden"
        )
    return asked


def insert(
    tx: Tx,
    organization_id: int,
    holder_id: int,
    plane: str,
    granted: Iterable[str],
    *,
    name: str,
    expires_at: int | None = None,
) -> tuple[str, str]:
    """Store a fresh key without asking who makes it; returns its public id and its secret."""
    secret = PREFIXES[plane] + "".join(secrets.choice(_ALPHABET) for _ in range(_LENGTH))
    public_id = new_id()
    tx.insert(
        "credentials",
        public_id=public_id,
        organization_id=organization_id,
        principal_id=holder_id,
        plane=plane,
        name=name,
        digest=store.digest(secret),
        hint=secret[: len(PREFIXES[plane]) + 4],
        scopes=" ".join(scopes.listed(granted)),
        created_at=now(),
        expires_at=expires_at,
    )
    return public_id, secret


def listed(tx: Tx, caller: Caller, holder: principal.Principal | None = None) -> list[Credential]:
    """List the organization's keys to an owner or admin, to others their own."""
    holder_id = None if caller.is_admin else caller.principal_id
    rows = store.credentials(tx, caller.organization_id, holder_id)
    found = [_credential(row) for row in rows]
    return [c for c in found if holder is None or c.holder_public_id == holder.public_id]


def revoke(tx: Tx, caller: Caller, public_id: str) -> None:
    """Revoke a key from this moment; again is no error. Raises `NotFoundError`."""
    holder_id = None if caller.is_admin else caller.principal_id
    if not store.revoke(tx, caller.organization_id, public_id, holder_id, now()):
        raise NotFoundError("There is no key by that id", code="credential_not_found")


def _credential(row: Row) -> Credential:
    public_id, plane, name, hint, granted, created_at, expires_at, revoked_at, *holder = row
    return Credential(
        public_id,
        plane,
        name,
        hint,
        tuple(granted.split()),
        created_at,
        expires_at,
        revoked_at,
        *holder,
    )
