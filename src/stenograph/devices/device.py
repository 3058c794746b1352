"""Devices: workers that enrolled, and the folders (*roots*) that each may use (reason-api.md 3)."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import Meta

from stenograph.accounts import store as accounts
from stenograph.accounts.access import Caller
from stenograph.clock import MINUTE, SECOND, now
from stenograph.devices import store, store_dispatches
from stenograph.errors import ConflictError, ForbiddenError, NotFoundError
from stenograph.storage.database import Row, Tx

Lifecycle: TypeAlias = Literal["ephemeral", "persistent"]

#: What this server speaks with workers (agent_api `/executor`); the major part has to agree.
PROTOCOL = "1"
#: Microseconds since it was last heard of in which a worker counts as there.
ONLINE = 30 * SECOND
#: Microseconds after which an ephemeral worker that is not heard of will not come back.
ABANDONED = 10 * MINUTE


class Permissions(msgspec.Struct, frozen=True):
    """What a root may be used for."""

    read: bool = False
    write: bool = False
    execute: bool = False
    discover_environment: bool = False
    expose_mcp: bool = False


class Grant(msgspec.Struct, frozen=True):
    """A root by the SHA-256 of its path, which the server never learns, and its use."""

    path_fingerprint: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
    permissions: Permissions
    execution_mode: Literal["host"] = "host"


@dataclass(frozen=True, slots=True)
class Root:
    """A root of a device."""

    id: int
    public_id: str
    grant: Grant


@dataclass(frozen=True, slots=True)
class Device:
    """A worker. Times are in microseconds; `machine` is the queue that it serves, if it does."""

    id: int
    public_id: str
    organization_id: int
    creator_id: int
    name: str
    version: str | None
    lifecycle: Lifecycle
    machine: str | None
    created_at: int
    last_seen_at: int
    roots: tuple[Root, ...]

    @property
    def online(self) -> bool:
        """Whether it was heard of just now."""
        return now() - self.last_seen_at < ONLINE

    @property
    def compatible(self) -> bool:
        """Whether it speaks the protocol of this server."""
        return (self.version or "").partition(".")[0] == PROTOCOL

    @property
    def was_seen(self) -> bool:
        """Whether it ever came with its own secret."""
        return self.last_seen_at > self.created_at


def find(tx: Tx, caller: Caller, public_id: str) -> Device:
    """Return a device of the organization; `NotFoundError` (`device_not_found`)."""
    found = _devices(tx, store.device(tx, caller.organization_id, public_id))
    if not found:
        raise NotFoundError("There is no such device", code="device_not_found")
    return found[0]


def listed(tx: Tx, caller: Caller) -> list[Device]:
    """List the organization's devices, the oldest first; two queries, however many there are."""
    return _devices(tx, store.devices(tx, caller.organization_id))


def remove(tx: Tx, caller: Caller, public_id: str) -> None:
    """Take a device out: its secret is no good from here on, and what it had claimed is due at once
    (`engine.toolboxes.leases.expire`).

    Raises `NotFoundError`; `ForbiddenError` (`forbidden`) for a device of somebody else, unless the
    caller is an owner or admin.
    """
    device = find(tx, caller, public_id)
    if device.creator_id != caller.principal_id and not caller.is_admin:
        raise ForbiddenError("Only its owner removes a device", code="forbidden")
    _withdraw(tx, device.id, device.organization_id)


def by_id(tx: Tx, device_id: int) -> Device | None:
    """Return a device that was found before; None: it was removed since."""
    found = _devices(tx, store.device_by_id(tx, device_id))
    return found[0] if found else None


def calling(tx: Tx, caller: Caller) -> Device:
    """Return the worker that calls.

    Raises `ConflictError` (`not_eligible`): the secret is no worker's, or the worker speaks another
    protocol than this server.
    """
    found = _devices(tx, store.device_of(tx, caller.credential_id or 0))
    if not found:
        raise ConflictError("This secret is not of a worker that enrolled", code="not_eligible")
    (device,) = found
    if not device.compatible:
        raise ConflictError(incompatibility(device), code="not_eligible")
    return device


def seen(tx: Tx, caller: Caller) -> Device:
    """Return the worker that calls, and note that it is there. Raises as `calling` does."""
    device = calling(tx, caller)
    store.set_seen(tx, device.id, now())
    return device


def incompatibility(device: Device) -> str:
    """Say why a device is not compatible."""
    return f"The worker speaks version {device.version} of the protocol, this server {PROTOCOL}"


def abandoned(tx: Tx) -> list[Row]:
    """Return (id, organization) of ephemeral devices that nobody has heard of for long."""
    return store.abandoned(tx, now() - ABANDONED)


def retire(tx: Tx) -> None:
    """Remove the ephemeral devices that are abandoned."""
    for device_id, organization_id in abandoned(tx):
        _withdraw(tx, device_id, organization_id)


def _withdraw(tx: Tx, device_id: int, organization_id: int) -> None:
    at = now()
    store.set_removed(tx, device_id, at)
    accounts.revoke(tx, organization_id, store.credential(tx, device_id), None, at)
    store_dispatches.end_leases(tx, device_id, at)


def _devices(tx: Tx, rows: Iterable[Row]) -> list[Device]:
    listed = list(rows)
    roots: dict[int, list[Root]] = {row[0]: [] for row in listed}
    for row_id, device_id, public_id, fingerprint, permissions, mode in store.roots(tx, roots):
        may = msgspec.json.decode(permissions, type=Permissions)
        roots[device_id].append(Root(row_id, public_id, Grant(fingerprint, may, mode)))
    return [Device(*[*row, tuple(roots[row[0]])]) for row in listed]
