"""Devices and machines: which workers there are, and how one comes to be."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from stenograph.clock import iso
from stenograph.devices import device, machine, ticket
from stenograph.devices.ticket import NewTicket
from stenograph.engine.toolboxes import leases
from stenograph.http.context import Ctx
from stenograph.http.route import Route, delete, get, post
from stenograph.http.v3 import wire
from stenograph.storage.database import Tx


class EnrollmentTicket(msgspec.Struct):
    """A ticket; its secret is shown once, and counts once."""

    device_kind: Literal["headless"]
    lifecycle: device.Lifecycle
    enrollment_ticket: str
    expires_at: wire.Time


class Root(msgspec.Struct):
    """A folder of a device, by the SHA-256 of its path."""

    id: str
    path_fingerprint: str
    permissions: device.Permissions
    execution_mode: str


class Device(msgspec.Struct):
    """A worker."""

    id: str
    name: str
    online: Annotated[bool, Meta(description="It was heard of within 30 seconds.")]
    compatible: Annotated[bool, Meta(description="It speaks this server's protocol.")]
    compatibility_reason: str | None
    device_kind: Literal["headless"]
    lifecycle: device.Lifecycle
    machine: Annotated[str | None, Meta(description="The queue that it serves.")]
    last_seen_at: wire.Time
    created_at: wire.Time
    roots: list[Root]


class DeviceAnswer(msgspec.Struct):
    """One device."""

    device: Device


class DeviceList(msgspec.Struct):
    """All devices of the organization, the oldest first."""

    devices: list[Device]


class Machine(msgspec.Struct):
    """A queue, with its workers that are online: those that have a session are busy."""

    name: str
    online: int
    busy: int
    free: int
    waiting: Annotated[int, Meta(description="The sessions that wait for a worker.")]


class MachineList(msgspec.Struct):
    """All machines of the organization, by name."""

    machines: list[Machine]


def _wire(found: device.Device) -> Device:
    return Device(
        id=found.public_id,
        name=found.name,
        online=found.online,
        compatible=found.compatible,
        compatibility_reason=None if found.compatible else device.incompatibility(found),
        device_kind="headless",
        lifecycle=found.lifecycle,
        machine=found.machine,
        last_seen_at=iso(found.last_seen_at),
        created_at=iso(found.created_at),
        roots=[
            Root(
                root.public_id,
                root.grant.path_fingerprint,
                root.grant.permissions,
                root.grant.execution_mode,
            )
            for root in found.roots
        ],
    )


@post(
    "/organizations/{orgId}/devices/enrollment-tickets",
    id="createEnrollmentTicket",
    tag="Devices",
    scope="devices:write",
    body=NewTicket,
    status=201,
    answer=EnrollmentTicket,
)
async def create_enrollment_ticket(ctx: Ctx) -> EnrollmentTicket:
    """Create a ticket for a worker to enroll with.

    It names the worker (`install_id`), the folders it may use and how, and optionally the machine
    whose sessions it will serve. It counts once, with the verifier of its S256 `code_challenge`.
    """
    new = ctx.body(NewTicket)
    secret, expires_at = await ctx.write(lambda tx: ticket.create(tx, ctx.caller, new))
    return EnrollmentTicket("headless", new.lifecycle, secret, iso(expires_at))


@get(
    "/organizations/{orgId}/devices",
    id="listDevices",
    tag="Devices",
    scope="devices:read",
    answer=DeviceList,
)
async def list_devices(ctx: Ctx) -> DeviceList:
    """List devices."""
    found = await ctx.read(lambda tx: device.listed(tx, ctx.caller))
    return DeviceList([_wire(one) for one in found])


@get(
    "/organizations/{orgId}/devices/{deviceId}",
    id="getDevice",
    tag="Devices",
    scope="devices:read",
    answer=DeviceAnswer,
)
async def get_device(ctx: Ctx, device_id: str) -> DeviceAnswer:
    """Read a device."""
    return DeviceAnswer(_wire(await ctx.read(lambda tx: device.find(tx, ctx.caller, device_id))))


@delete(
    "/organizations/{orgId}/devices/{deviceId}",
    id="deleteDevice",
    tag="Devices",
    scope="devices:write",
    answer=wire.Deleted,
)
async def delete_device(ctx: Ctx, device_id: str) -> wire.Deleted:
    """Delete a device.

    Its secret is no good from here on, and calls that it was making are given up at once. Its owner
    may, and an owner or admin of the organization.
    """

    def act(tx: Tx) -> None:
        device.remove(tx, ctx.caller, device_id)
        leases.expire(tx)

    await ctx.write(act)
    return wire.Deleted(device_id)


@get(
    "/organizations/{orgId}/machines",
    id="listMachines",
    tag="Machines",
    scope="devices:read",
    answer=MachineList,
)
async def list_machines(ctx: Ctx) -> MachineList:
    """List machines.

    A machine is a queue that workers serve and sessions name as their target; more workers serve
    more sessions at once.
    """
    found = await ctx.read(lambda tx: machine.listed(tx, ctx.caller))
    return MachineList(
        [Machine(it.name, it.online, it.busy, it.online - it.busy, it.waiting) for it in found]
    )


routes: list[Route] = [
    create_enrollment_ticket,
    list_devices,
    get_device,
    delete_device,
    list_machines,
]
