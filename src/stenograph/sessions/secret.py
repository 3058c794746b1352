"""Secrets: values that sessions are given and that nobody reads back (reason-api.md 3).

They are sealed at rest. A session keeps its own sealed copy of what it was given, so that a value
is masked in its readings even after the secret was replaced or deleted.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from stenograph.accounts.access import Caller
from stenograph.clock import now
from stenograph.errors import ConflictError, InvalidInputError, NotFoundError
from stenograph.ids import new_id
from stenograph.sessions import store_secrets as store
from stenograph.storage.database import Tx
from stenograph.storage.sealing import Sealer

#: The shortest value taken, in characters, surrounding whitespace apart: anything shorter would
#: stand by chance all over a transcript. Redaction masks values from this length on.
MIN_SECRET_LENGTH = 4
#: The longest value taken, in bytes of UTF-8.
MAX_SECRET_BYTES = 65_536

#: A name that an environment variable may have (POSIX.1-2017, XBD 8.1), in either case.
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")


@dataclass(frozen=True, slots=True)
class Secret:
    """What is known of a secret; times in microseconds."""

    public_id: str
    name: str
    created_at: int
    updated_at: int


def listed(tx: Tx, caller: Caller) -> list[Secret]:
    """List the organization's secrets by name."""
    return [Secret(*row) for row in store.listed(tx, caller.organization_id)]


def create(tx: Tx, caller: Caller, sealer: Sealer, name: str, value: str) -> Secret:
    """Keep a new secret.

    Raises `InvalidInputError` (`invalid_secret_name`, `secret_too_short`, `secret_too_large`), or
    `ConflictError` (`secret_exists`).
    """
    _check_name(name)
    sealed = _seal(sealer, name, value)
    at = now()
    made = store.insert(
        tx,
        public_id=new_id(),
        organization_id=caller.organization_id,
        creator_id=caller.principal_id,
        name=name,
        ciphertext=sealed,
        created_at=at,
        updated_at=at,
    )
    if not made:
        raise ConflictError(f"There is a secret called {name}", code="secret_exists")
    return find(tx, caller, name)


def replace(tx: Tx, caller: Caller, sealer: Sealer, name: str, value: str) -> Secret:
    """Give a secret another value; sessions that have the old one keep it."""
    find(tx, caller, name)
    store.replace(tx, caller.organization_id, name, _seal(sealer, name, value), now())
    return find(tx, caller, name)


def delete(tx: Tx, caller: Caller, name: str) -> None:
    """Delete a secret; sessions that have it keep their copy, which masks it."""
    if not store.delete(tx, caller.organization_id, name):
        raise _unknown()


def take(tx: Tx, caller: Caller, sealer: Sealer, names: Collection[str]) -> dict[str, bytes]:
    """Return the sealed values of secrets by name, for a session that is given them.

    Each is opened once, so that a key that does not fit is found now and not at a reading.
    Raises `NotFoundError` (`secret_not_found`) if one is not there.
    """
    found = store.sealed(tx, caller.organization_id, dict.fromkeys(names))
    if found.keys() != set(names):
        raise _unknown()
    opened(sealer, found)
    return found


def give(tx: Tx, conversation_id: int, sealed: Mapping[str, bytes]) -> None:
    """Keep with a session what `take` returned; what it was given before, it keeps too."""
    store.give(tx, conversation_id, dict(sealed))


def opened(sealer: Sealer, sealed: Mapping[str, bytes]) -> tuple[str, ...]:
    """Return the values of what `take` returned."""
    return tuple(sealer.open(data, _context(name)) for name, data in sealed.items())


def environment(tx: Tx, sealer: Sealer, conversation_id: int) -> dict[str, str]:
    """Return the values by name that a session was given itself, for who runs its commands.

    Of two values of one name, the one that the organization's secret has now.
    """
    found = store.own(tx, conversation_id)
    return {name: sealer.open(bytes(data), _context(name)) for name, data in found}


def values(tx: Tx, sealer: Sealer, conversation_id: int) -> tuple[str, ...]:
    """Return the values that must be masked in every reading of a session.

    Those of the session itself, of the sessions above and below it, and of those it was forked
    from: text flows between all of them.
    """
    return values_many(tx, sealer, (conversation_id,))


def values_many(tx: Tx, sealer: Sealer, conversation_ids: Collection[int]) -> tuple[str, ...]:
    """As `values`, for a reading that shows several sessions."""
    if not conversation_ids:
        return ()
    found = store.given(tx, conversation_ids)
    return tuple(dict.fromkeys(sealer.open(bytes(data), _context(name)) for name, data in found))


def _check_name(name: str) -> None:
    if _NAME.fullmatch(name) is None:
        raise InvalidInputError(
            "A name is 1 to 128 letters, digits and '_', and starts with no digit",
            code="invalid_secret_name",
        )


def _seal(sealer: Sealer, name: str, value: str) -> bytes:
    if len(value.strip()) < MIN_SECRET_LENGTH:
        raise InvalidInputError(
            f"A value has at least {MIN_SECRET_LENGTH} characters", code="secret_too_short"
        )
    if len(value.encode()) > MAX_SECRET_BYTES:
        raise InvalidInputError(
            f"A value has at most {MAX_SECRET_BYTES} bytes", code="secret_too_large"
        )
    return sealer.seal(value, _context(name))


def _context(name: str) -> str:
    return f"secret:{name}"


def find(tx: Tx, caller: Caller, name: str) -> Secret:
    """Return what is known of a secret; `NotFoundError` (`secret_not_found`)."""
    row = store.find(tx, caller.organization_id, name)
    if row is None:
        raise _unknown()
    return Secret(*row)


def _unknown() -> NotFoundError:
    return NotFoundError("There is no such secret", code="secret_not_found")
