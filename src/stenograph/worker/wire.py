"""What a worker and its server say to each other, under `/agent_api/v1/executor`."""

from collections.abc import Collection
from typing import Any, Literal

import msgspec

from stenograph.engine import results
from stenograph.engine.toolbox import ToolOutcome, ToolStatus
from stenograph.engine.tools.workplace import Permissions

Lifecycle = Literal["ephemeral", "persistent"]

#: The version of what is said here; a server of another major version gives no work.
PROTOCOL = "1"


class Allowed(msgspec.Struct, frozen=True):
    """What a root may be used for, as tickets and devices say it."""

    read: bool = False
    write: bool = False
    execute: bool = False
    discover_environment: bool = False
    expose_mcp: bool = False

    def permissions(self) -> Permissions:
        """Return it as the tools want it."""
        return Permissions(self.read, self.write, self.execute)


class DeviceRoot(msgspec.Struct, frozen=True):
    """A root of a device; the server knows its fingerprint, not its path."""

    id: str
    path_fingerprint: str
    permissions: Allowed
    execution_mode: str = "host"


class Device(msgspec.Struct, frozen=True):
    """What this worker is to its server."""

    id: str
    organization_id: str
    name: str
    lifecycle: Lifecycle
    roots: tuple[DeviceRoot, ...]
    machine: str | None = None


class Enrolled(msgspec.Struct, frozen=True):
    """The answer to an enrolment; the secret is said once."""

    device: Device
    secret: str


class Tool(msgspec.Struct, frozen=True):
    """The call that a model made."""

    name: str
    arguments: dict[str, Any]


class Claim(msgspec.Struct, frozen=True):
    """A call that is this worker's for `lease_seconds`, and longer as long as it says so.

    `environment` holds secrets. `timeout_ms`: the most that the call may take. `resumed`: it was
    begun before, by whomever.
    """

    claim_id: str
    lease_seconds: float
    run_public_id: str
    task_key: str
    session_id: str
    root_id: str | None
    workspace_path: str | None
    tool: Tool
    environment: dict[str, str] = {}
    timeout_ms: int | None = None
    resumed: bool = False

    def __repr__(self) -> str:
        return f"Claim({self.claim_id})"

    @property
    def task(self) -> str:
        """The call's name, the same in every claim of it."""
        return f"{self.run_public_id} {self.task_key}"


class Claimed(msgspec.Struct, frozen=True):
    """The answer to a request for work; `released`: sessions that this worker has no more."""

    claim: Claim | None
    released: list[str] = []


class Lease(msgspec.Struct, frozen=True):
    """How much longer a claim holds; `canceled`: nobody wants its result any more."""

    lease_seconds: float
    canceled: bool = False


class Leased(msgspec.Struct, frozen=True):
    """The answer to an extension."""

    lease: Lease


class Progress(msgspec.Struct, frozen=True):
    """What the server says to a report: whether anybody watches."""

    watched: bool = False


class Reported(msgspec.Struct, frozen=True):
    """The answer to a report."""

    progress: Progress


class Settlement(msgspec.Struct, frozen=True, omit_defaults=True):
    """What came of a call."""

    status: ToolStatus
    output: str
    preview: str | None = None

    def cut(self, size: int, secrets: Collection[str]) -> "Settlement":
        """Return it with the first `size` characters of its output, and a line that says so; no cut
        halves one of `secrets`."""
        note = f"[{len(self.output)} characters in all, of which the server takes {size}]\n"
        output = results.beginning(self.output, size, secrets)
        return Settlement(self.status, note + output, self.preview)


def settlement(outcome: ToolOutcome) -> Settlement:
    """Return an outcome in a form that JSON and every database take."""
    told = None if outcome.preview is None else results.storable(outcome.preview)
    return Settlement(outcome.status, results.storable(outcome.output), told)
