"""Becoming a device: tickets with a proof (S256, RFC 7636), and the enrolment that is kept."""

import base64
import hashlib
import secrets
import uuid
from dataclasses import dataclass, field
from typing import Any

import msgspec

from stenograph.errors import InvalidInputError, StenographError, UnauthorizedError
from stenograph.worker.client import AwayError, Server
from stenograph.worker.config import Config, Tell, Ticket
from stenograph.worker.place import fingerprint
from stenograph.worker.retrying import insist
from stenograph.worker.state import Kept, Shelf
from stenograph.worker.wire import PROTOCOL, Allowed, Device, Enrolled

#: Seconds for which a ticket is good that is used at once.
_AT_ONCE = 300


class NotEnrolledError(InvalidInputError):
    """There is nothing to work with: no enrolment, no ticket, no key."""

    code = "not_enrolled"


class RevokedError(StenographError):
    """The server does not know this worker any more."""

    code = "revoked"


@dataclass(frozen=True, slots=True)
class Enrolment:
    """This worker at its server; `is_new`: since just now."""

    device: Device
    secret: str = field(repr=False)
    is_new: bool


@dataclass(frozen=True, slots=True)
class Proof:
    """A ticket with all that it takes to use it."""

    ticket: str = field(repr=False)
    verifier: str = field(repr=False)
    install_id: str


class _Self(msgspec.Struct):
    org_id: str


class _Made(msgspec.Struct):
    enrollment_ticket: str


def challenge(verifier: str) -> str:
    """Return what a ticket is made with: the SHA-256 of the verifier, base64url, unpadded."""
    digest = hashlib.sha256(verifier.encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


async def make_ticket(
    server: Server, config: Config, root: str, seconds: int, shelf: Shelf
) -> Proof:
    """Have a ticket made with the config's key, good for `seconds`.

    What it takes to use it, the verifier and the install's id, is kept on the shelf and returned.
    Raises what `Server.ask` raises.
    """
    kept = shelf.read() or Kept(config.url, root, str(uuid.uuid4()))
    verifier = secrets.token_urlsafe(48)
    try:
        organization = (await server.ask("/v3/self", None, _Self, config.key)).org_id
        path = f"/v3/organizations/{organization}/devices/enrollment-tickets"
        asked = _request(config, root) | {
            "install_id": kept.install_id,
            "ttl_seconds": seconds,
            "code_challenge": challenge(verifier),
        }
        made = await server.ask(path, asked, _Made, config.key)
    except UnauthorizedError:
        raise InvalidInputError("The server does not know this key", code="invalid_key") from None
    shelf.write(msgspec.structs.replace(kept, verifier=verifier))
    return Proof(made.enrollment_ticket, verifier, kept.install_id)


async def obtain(server: Server, config: Config, root: str, shelf: Shelf, tell: Tell) -> Enrolment:
    """Return the enrolment that is kept, or a new one by the config's ticket or key.

    Raises `NotEnrolledError`, and what `Server.ask` raises.
    """
    kept = shelf.read()
    origin = _origin(config, root)
    if kept is not None and kept.device is not None and kept.secret is not None:
        is_same = origin == kept.origin and not (kept.revoked and config.key)
        if origin is None or is_same:
            return Enrolment(kept.device, kept.secret, is_new=False)

    def away(error: AwayError) -> None:
        tell("away", reason=error.message)

    async def made() -> Proof:
        return await make_ticket(server, config, root, _AT_ONCE, shelf)

    async def enrol() -> Enrolled:
        return await server.enrol(_enrolment(ticket, config, root))

    if config.ticket is not None:
        ticket = _completed(config.ticket, kept)
    elif config.key is not None:
        ticket = await insist(made, config.pace, config.patience, away)
    else:
        raise NotEnrolledError(
            f"This worker is not enrolled at {config.url} for {root}: give it a --ticket, or a "
            "--key that holds devices:write"
        )
    # After a lost answer too: the same ticket is good until the worker has worked.
    device, secret = msgspec.structs.astuple(
        await insist(enrol, config.pace, config.patience, away)
    )
    # One that is not to last is enrolled anew at each start.
    lasting = secret if device.lifecycle == "persistent" else None
    shelf.write(Kept(config.url, root, ticket.install_id, None, origin, device, lasting))
    return Enrolment(device, secret, is_new=True)


def _completed(ticket: Ticket, kept: Kept | None) -> Proof:
    verifier = ticket.verifier or (kept.verifier if kept else None)
    install_id = ticket.install_id or (kept.install_id if kept else None)
    if verifier is None or install_id is None:
        raise NotEnrolledError(
            "This ticket was not made here by `steno worker ticket`: give its --verifier and its "
            "--install-id as well"
        )
    return Proof(ticket.ticket, verifier, install_id)


def _enrolment(ticket: Proof, config: Config, root: str) -> dict[str, Any]:
    asked = {
        "ticket": ticket.ticket,
        "code_verifier": ticket.verifier,
        "install_id": ticket.install_id,
        "version": PROTOCOL,
        "roots": [{"path_fingerprint": fingerprint(root)}],
    }
    return asked if config.name is None else asked | {"name": config.name}


def _request(config: Config, root: str) -> dict[str, Any]:
    allow = config.allow
    place = {
        "path_fingerprint": fingerprint(root),
        "permissions": Allowed(allow.read, allow.write, allow.execute),
        "execution_mode": "host",
    }
    asked: dict[str, Any] = {"lifecycle": config.lifecycle, "roots": [place]}
    more = {"name": config.name, "machine": config.machine}
    return asked | {name: value for name, value in more.items() if value is not None}


def _origin(config: Config, root: str) -> str | None:
    """Return what tells whether a start asks for the enrolment that there is, None if for any."""
    if config.ticket is not None:
        return hashlib.sha256(config.ticket.ticket.encode()).hexdigest()
    if config.key is not None:
        return hashlib.sha256(msgspec.json.encode(_request(config, root))).hexdigest()
    return None
