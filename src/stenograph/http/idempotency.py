"""Requests that may be sent twice and act once (agent-api.md 1.5).

A receipt holds no text, only which resource the request made; a replay reads that resource anew,
through what its caller may see now, so that lost access is a 404 and deleted text stays deleted.
It is written in the transaction of the request itself: refused requests leave none.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from stenograph.accounts.access import Caller
from stenograph.clock import DAY, now
from stenograph.errors import ConflictError, InvalidInputError
from stenograph.http import store
from stenograph.http.context import Ctx
from stenograph.http.route import Answer
from stenograph.storage.database import Tx

T = TypeVar("T")
HEADER = "Idempotency-Key"
REPLAYED = "Idempotency-Replayed"
#: How long a receipt counts.
KEPT = DAY
#: The bytes of a key.
LONGEST = 255


@dataclass(frozen=True, slots=True)
class Key:
    """A key that was sent, what it is for (method and path), and the digest of the body."""

    principal_id: int
    scope: str
    key: str
    digest: bytes


def key(ctx: Ctx, *, longest: int = LONGEST) -> Key | None:
    """Read the header; None if it is absent or blank and the route does not require it.

    Raises `InvalidInputError`: `idempotency_key_required`, or `parameter_invalid` for more than
    `longest` bytes.
    """
    # No more than what HTTP calls white space: the bytes of a key in UTF-8 may look like some.
    sent = (ctx.header(HEADER) or "").strip(" \t")
    if not sent:
        if ctx.route.idempotency == "required":
            raise InvalidInputError(
                f"The header {HEADER} is required", code="idempotency_key_required"
            )
        return None
    if len(sent.encode("latin-1", "replace")) > longest:
        raise InvalidInputError(f"Invalid parameter: {HEADER}")
    scope = f"{ctx.route.method} {ctx.request.scope['path']}"
    return Key(ctx.caller.principal_id, scope, sent, digest(ctx.raw))


def digest(raw: bytes) -> bytes:
    """Digest a JSON body: the order of members does not count, that of arrays does."""
    try:
        raw = msgspec.json.encode(msgspec.json.decode(raw), order="deterministic")
    except (msgspec.DecodeError, RecursionError):
        pass  # No JSON: the bytes themselves.
    return hashlib.sha256(raw).digest()


def once(
    tx: Tx,
    sent: Key | None,
    act: Callable[[], tuple[str, T]],
    again: Callable[[str], T],
    status: int = 201,
) -> Answer:
    """Act, or answer what the same request answered before.

    `act` does it and returns the public id of what it made, and the value to answer;
    `again` reads the value by that id, and raises `NotFoundError` if the caller may not see it.
    Raises `ConflictError` `idempotency_envelope_mismatch` for a key used with another body.
    """
    if sent is None:
        return Answer(act()[1], status=status)
    at = now()
    if store.claim(tx, sent.principal_id, sent.scope, sent.key, sent.digest, at, at - KEPT):
        resource, value = act()
        store.fill(tx, sent.principal_id, sent.scope, sent.key, status, resource)
        return Answer(value, status=status, headers={REPLAYED: "false"})
    found = store.receipt(tx, sent.principal_id, sent.scope, sent.key, at - KEPT)
    assert found is not None
    if bytes(found[0]) != sent.digest:
        raise ConflictError(
            "The idempotency key was used with another request",
            code="idempotency_envelope_mismatch",
        )
    return Answer(again(found[2]), status=found[1], headers={REPLAYED: "true"})


def kept(tx: Tx, caller: Caller, scope: str, key: str) -> str | None:
    """Return what the caller's request with this key made; None: there was none, or its receipt
    counts no more."""
    sent = key.encode().decode("latin-1")  # as a header is read
    found = store.receipt(tx, caller.principal_id, scope, sent, now() - KEPT)
    return None if found is None else str(found[2])


def prune(tx: Tx) -> int:
    """Delete receipts that count no more; returns how many."""
    return store.prune(tx, now() - KEPT)
