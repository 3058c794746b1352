"""What was sent to a model. Each round of a run sends what the one before sent, and some more.

So a request keeps only what is new: `shared` entries are those of the request `before` it, if they
are the same, which a digest over all of them tells. Kept whole, the rounds of a run would take room
that grows with their square.
"""

import hashlib
from dataclasses import dataclass
from typing import Any

import msgspec

from stenograph.errors import NotFoundError
from stenograph.runs import store_requests
from stenograph.storage.database import Tx


@dataclass(frozen=True, slots=True)
class Request:
    """The messages, and the options they went with."""

    entries: list[Any]
    request_options: dict[str, Any]


class _Sealed(msgspec.Struct, omit_defaults=True):
    entries: list[msgspec.Raw]
    request_options: dict[str, Any]
    #: Of all entries, the shared ones included.
    digest: str = ""
    shared: int = 0
    before: int | None = None


def seal(
    tx: Tx,
    invocation_id: int,
    run_id: int | None,
    entries: list[Any],
    request_options: dict[str, Any],
) -> None:
    """Keep what is sent in a model call of a run; None: of a direct reply."""
    written = [msgspec.Raw(msgspec.json.encode(entry)) for entry in entries]
    sealed = _Sealed(written, request_options, _digest(written))
    found = None if run_id is None else store_requests.before(tx, run_id, invocation_id)
    if found is not None:
        before_id, text = found
        before = msgspec.json.decode(text, type=_Sealed)
        shared = before.shared + len(before.entries)
        if shared <= len(written) and _digest(written[:shared]) == before.digest:
            sealed.entries, sealed.shared, sealed.before = written[shared:], shared, before_id
    store_requests.seal(tx, invocation_id, msgspec.json.encode(sealed).decode())


def read(tx: Tx, invocation_id: int | None) -> Request:
    """Return what was sent. Raises `NotFoundError` `request_not_sealed`."""
    chain = {} if invocation_id is None else store_requests.chain(tx, invocation_id)
    if invocation_id not in chain:
        raise NotFoundError("No request was sealed", code="request_not_sealed")
    newest = sealed = msgspec.json.decode(chain[invocation_id], type=_Sealed)
    parts = [sealed.entries]
    while sealed.before is not None:
        sealed = msgspec.json.decode(chain[sealed.before], type=_Sealed)
        parts.append(sealed.entries)
    entries = [msgspec.json.decode(entry) for part in reversed(parts) for entry in part]
    return Request(entries, newest.request_options)


def _digest(entries: list[msgspec.Raw]) -> str:
    return hashlib.blake2b(b"\n".join(map(bytes, entries)), digest_size=16).hexdigest()
