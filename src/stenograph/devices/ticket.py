"""Tickets: what a person gives a worker so that it may enroll, once.

The worker keeps a verifier and the ticket its S256 challenge (RFC 7636), so that who reads the
ticket on its way cannot use it. Only a digest of the ticket is stored.
"""

import base64
import hashlib
import hmac
import re
import secrets
import string
from dataclasses import dataclass
from typing import Annotated

import msgspec
from msgspec import Meta

from stenograph.accounts import credential
from stenograph.accounts import store as accounts
from stenograph.accounts.access import Caller
from stenograph.clock import SECOND, now
from stenograph.devices import device, store
from stenograph.devices.device import Device, Grant, Lifecycle
from stenograph.errors import ConflictError, InvalidInputError, NotFoundError, RefusedError
from stenograph.ids import new_id
from stenograph.storage.database import Row, Tx

PREFIX = "sk-steno-v1-ticket-"
_ALPHABET = string.ascii_letters + string.digits
#: 43 letters and digits hold 256 bits.
_LENGTH = 43
_VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}")

_Uuid = Annotated[
    str,
    Meta(
        pattern="^[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$",
        extra_json_schema={"format": "uuid"},
    ),
]
_Name = Annotated[str, Meta(min_length=1, max_length=200)]
MachineName = Annotated[str, Meta(pattern="^[a-z0-9][a-z0-9-]{0,62}$")]


class NewTicket(msgspec.Struct, frozen=True):
    """What a ticket grants. `install_id` names the worker, `machine` the queue it will serve."""

    install_id: _Uuid
    lifecycle: Lifecycle
    ttl_seconds: Annotated[int, Meta(ge=1, le=86_400)]
    code_challenge: Annotated[
        str, Meta(pattern="^[A-Za-z0-9_-]{43}$", description="S256, base64url without padding.")
    ]
    roots: Annotated[list[Grant], Meta(min_length=1, max_length=100)]
    name: _Name | None = None
    machine: MachineName | None = None


class RootSent(msgspec.Struct, frozen=True):
    """A root that a worker has."""

    path_fingerprint: str


class Enrollment(msgspec.Struct, frozen=True):
    """What a worker enrolls with; `version` is that of the protocol it speaks."""

    ticket: str
    code_verifier: Annotated[str, Meta(description="RFC 7636, 43 to 128 characters.")]
    install_id: _Uuid
    version: Annotated[str, Meta(min_length=1, max_length=50)]
    roots: Annotated[list[RootSent], Meta(max_length=100)]
    name: _Name | None = None


@dataclass(frozen=True, slots=True)
class Enrolled:
    """A worker that is a device of an organization (public id) from now on, and the secret that it
    is to call with."""

    device: Device
    organization: str
    secret: str


@dataclass(frozen=True, slots=True)
class _Ticket:
    id: int
    organization_id: int
    organization: str
    creator_id: int
    code_challenge: str
    install_id: str
    lifecycle: Lifecycle
    name: str | None
    machine: str | None
    roots: str
    expires_at: int
    used_at: int | None


def create(tx: Tx, caller: Caller, new: NewTicket) -> tuple[str, int]:
    """Make a ticket; returns its secret, which is shown once, and when it expires.

    Raises `InvalidInputError` (`invalid_roots`) if a folder is there twice.
    """
    if len({root.path_fingerprint for root in new.roots}) < len(new.roots):
        raise InvalidInputError("A root is there twice", code="invalid_roots")
    secret = PREFIX + "".join(secrets.choice(_ALPHABET) for _ in range(_LENGTH))
    at = now()
    expires_at = at + new.ttl_seconds * SECOND
    store.add_ticket(
        tx,
        public_id=new_id(),
        organization_id=caller.organization_id,
        creator_id=caller.principal_id,
        digest=accounts.digest(secret),
        code_challenge=new.code_challenge,
        install_id=new.install_id.lower(),
        lifecycle=new.lifecycle,
        name=new.name,
        machine=new.machine,
        roots=msgspec.json.encode(new.roots).decode(),
        created_at=at,
        expires_at=expires_at,
    )
    return secret, expires_at


def use(tx: Tx, sent: Enrollment) -> Enrolled:
    """Enroll a worker.

    An answer may be lost on its way: until the device has called for the first time, the same
    request gives it a new secret, and the former is revoked.

    Raises `NotFoundError`; `ConflictError` (`ticket_used`); `RefusedError` (`ticket_expired`,
    `install_mismatch`, `verifier_mismatch`, `roots_mismatch`).
    """
    row = store.ticket(tx, accounts.digest(sent.ticket))
    if row is None:
        raise NotFoundError("There is no such ticket")
    ticket = _Ticket(*row)
    problem = _problem(ticket, sent)
    if ticket.used_at is not None:
        made = store.enrolled(tx, ticket.organization_id, ticket.install_id, ticket.used_at)
        if problem is None and made:
            return _again(tx, ticket, made[0])
        raise ConflictError("The ticket was used", code="ticket_used")
    if problem is not None:
        raise problem
    return _first(tx, ticket, sent)


def _problem(ticket: _Ticket, sent: Enrollment) -> RefusedError | None:
    if ticket.expires_at <= now():
        return RefusedError("The ticket has expired", code="ticket_expired")
    if ticket.install_id != sent.install_id.lower():
        return RefusedError("The ticket is another worker's", code="install_mismatch")
    if not _verifies(sent.code_verifier, ticket.code_challenge):
        return RefusedError("The verifier is not the ticket's", code="verifier_mismatch")
    granted = sorted(root.path_fingerprint for root in _grants(ticket))
    if granted != sorted(root.path_fingerprint for root in sent.roots):
        return RefusedError("The folders are not the ticket's", code="roots_mismatch")
    return None


def _verifies(verifier: str, challenge: str) -> bool:
    """RFC 7636, sections 4.1 and 4.6, method S256; in constant time."""
    hashed = hashlib.sha256(verifier.encode("utf-8", "surrogatepass")).digest()
    found = base64.urlsafe_b64encode(hashed).rstrip(b"=").decode()
    return hmac.compare_digest(found, challenge) and _VERIFIER.fullmatch(verifier) is not None


def _first(tx: Tx, ticket: _Ticket, sent: Enrollment) -> Enrolled:
    at = now()
    name = ticket.name or sent.name or f"worker-{ticket.install_id[:8]}"
    credential_id, secret = _credential(tx, ticket, name)
    device_id = store.add_device(
        tx,
        public_id=new_id(),
        organization_id=ticket.organization_id,
        creator_id=ticket.creator_id,
        credential_id=credential_id,
        install_id=ticket.install_id,
        name=name,
        version=sent.version,
        lifecycle=ticket.lifecycle,
        machine=ticket.machine,
        created_at=at,
        last_seen_at=at,
    )
    for root in _grants(ticket):
        store.add_root(
            tx,
            public_id=new_id(),
            device_id=device_id,
            path_fingerprint=root.path_fingerprint,
            permissions=msgspec.json.encode(root.permissions).decode(),
            execution_mode=root.execution_mode,
        )
    store.use_ticket(tx, ticket.id, at)
    return Enrolled(_device(tx, device_id), ticket.organization, secret)


def _again(tx: Tx, ticket: _Ticket, made: Row) -> Enrolled:
    found = _device(tx, made[0])
    if found.was_seen:
        raise ConflictError("The ticket was used", code="ticket_used")
    accounts.revoke(tx, ticket.organization_id, store.credential(tx, found.id), None, now())
    credential_id, secret = _credential(tx, ticket, found.name)
    store.set_credential(tx, found.id, credential_id)
    return Enrolled(found, ticket.organization, secret)


def _credential(tx: Tx, ticket: _Ticket, name: str) -> tuple[int, str]:
    public_id, secret = credential.insert(
        tx, ticket.organization_id, ticket.creator_id, "executor", (), name=name
    )
    return store.credential_id(tx, public_id), secret


def _device(tx: Tx, device_id: int) -> Device:
    found = device.by_id(tx, device_id)
    assert found is not None
    return found


def _grants(ticket: _Ticket) -> list[Grant]:
    return msgspec.json.decode(ticket.roots, type=list[Grant])
