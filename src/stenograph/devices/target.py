"""Where a session works: on a root of one device, or on whatever worker of a machine is free.

A session of a machine is *bound* to the worker that takes its first call, with its subagents, for
they share their files; it is let go when it has no work.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta

from stenograph.accounts.access import Caller
from stenograph.clock import now
from stenograph.devices import device, store, store_targets
from stenograph.devices.device import Device, Permissions
from stenograph.devices.ticket import MachineName
from stenograph.errors import ConflictError, ForbiddenError, InvalidInputError
from stenograph.storage.database import Tx

#: Any worker of a machine may do all this in its first root; a bound one what its root allows.
_ALL = Permissions(read=True, write=True, execute=True)


class _Headless(msgspec.Struct, tag_field="kind", tag="headless"):
    device_id: str
    root_id: str
    workspace_mode: Literal["project_root"] = "project_root"
    workspace_path: Annotated[str, Meta(min_length=1, max_length=4096)] | None = None


class _Machine(msgspec.Struct, tag_field="kind", tag="machine"):
    name: MachineName


_Sent: TypeAlias = _Headless | _Machine


@dataclass(frozen=True, slots=True)
class Target:
    """Where a conversation works; ids are row ids. `machine` None: on this device and no other.

    `workspace_path` lies within the root; None: the root itself.
    """

    device_id: int | None
    root_id: int | None
    machine: str | None
    workspace_path: str | None
    permissions: Permissions = _ALL


def choose(tx: Tx, caller: Caller, target: Mapping[str, Any] | None) -> Target | None:
    """Read the `target` of createSession; None: the session works nowhere.

    Raises `InvalidInputError` (`invalid_target`); `ForbiddenError` (`missing_scope`: a device needs
    `devices:use`); `NotFoundError` (`device_not_found`); `ConflictError`
    (`session_target_unavailable`: no such root, or the device is not there;
    `headless_workers_unavailable`: no worker ever served that machine).
    """
    if target is None:
        return None
    try:
        sent = msgspec.convert(target, _Sent)
    except msgspec.ValidationError as error:
        raise InvalidInputError(f"/target: {error}", code="invalid_target") from None
    if isinstance(sent, _Machine):
        return _machine(tx, caller, sent.name)
    return _root(tx, caller, sent)


def _machine(tx: Tx, caller: Caller, name: str) -> Target:
    if not store.ever_served(tx, caller.organization_id, name):
        raise ConflictError(
            f"No worker serves the machine {name}", code="headless_workers_unavailable"
        )
    return Target(None, None, name, None)


def _root(tx: Tx, caller: Caller, sent: _Headless) -> Target:
    path = sent.workspace_path
    if path is not None and ("\0" in path or ".." in path.split("/")):
        raise InvalidInputError(
            "/target/workspace_path must lie within the root", code="invalid_target"
        )
    if "devices:use" not in caller.scopes:
        raise ForbiddenError(
            "The key lacks devices:use", code="missing_scope", required_scope="devices:use"
        )
    found = device.find(tx, caller, sent.device_id)
    root = next((it for it in found.roots if it.public_id == sent.root_id), None)
    if root is None:
        raise _unavailable("The device has no such root")
    if not found.compatible:
        raise _unavailable(device.incompatibility(found))
    if not found.online:
        raise _unavailable("The device is not online")
    return Target(found.id, root.id, None, path, root.grant.permissions)


def _unavailable(message: str) -> ConflictError:
    return ConflictError(message, code="session_target_unavailable")


def give(tx: Tx, conversation_id: int, target: Target | None) -> None:
    """Say where a new conversation works."""
    if target is not None:
        store_targets.add_target(
            tx,
            conversation_id,
            device_id=target.device_id,
            root_id=target.root_id,
            machine=target.machine,
            workspace_path=target.workspace_path,
            bound_at=None if target.device_id is None else now(),
        )


def inherit(tx: Tx, parent_id: int, child_id: int) -> None:
    """Let a subagent work where its parent does; both are conversations."""
    store_targets.copy_target(tx, parent_id, child_id)


def of(tx: Tx, conversation_id: int) -> Target | None:
    """Return where a conversation works."""
    row = store_targets.target(tx, conversation_id)
    if row is None:
        return None
    device_id, root_id, machine, path, permissions = row
    may = _ALL if permissions is None else msgspec.json.decode(permissions, type=Permissions)
    return Target(device_id, root_id, machine, path, may)


def bind(tx: Tx, conversation_id: int, worker: Device) -> bool:
    """Give a session of the worker's machine, and its family, to the worker; False: it is another
    worker's already."""
    assert worker.machine is not None
    has = of(tx, conversation_id)
    if has is not None and has.device_id is not None:
        return has.device_id == worker.id
    family = store_targets.family(tx, conversation_id)
    store_targets.hold_targets(tx, family)
    root = worker.roots[0]
    store_targets.bind(tx, family, worker.machine, worker.id, root.id, now())
    bound = of(tx, conversation_id)
    return bound is not None and bound.device_id == worker.id


def releasable(tx: Tx) -> list[int]:
    """Return the conversations that have a machine's worker and need none now."""
    return store_targets.releasable(tx)


def release(tx: Tx) -> None:
    """Let those go that need no worker now."""
    store_targets.unbind(tx, releasable(tx))
