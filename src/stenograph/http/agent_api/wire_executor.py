"""The shapes of what workers ask and are answered."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from stenograph.devices.device import Permissions
from stenograph.devices.ticket import Enrollment

_Id = Annotated[str, Meta(min_length=1, max_length=100)]


class EnrollmentBody(Struct):
    """A worker that wants to be a device."""

    enrollment: Enrollment


class EnrolledRoot(Struct):
    """A root that the worker may use, and how."""

    id: str
    path_fingerprint: str
    permissions: Permissions
    execution_mode: str


class EnrolledDevice(Struct):
    """What the worker is from now on; `machine` is the queue it serves, if any."""

    id: str
    organization_id: str
    name: str
    lifecycle: str
    machine: str | None
    roots: list[EnrolledRoot]


class EnrollmentAnswer(Struct):
    """The device, and the secret to call with, which is shown once."""

    device: EnrolledDevice
    secret: str


class NewClaim(Struct):
    """What a worker can take."""

    wait_ms: Annotated[
        int, Meta(ge=0, le=20_000, description="How long to wait for a call if there is none.")
    ] = 0
    sessions: Annotated[
        list[_Id], Meta(max_length=1000, description="The sessions it serves already.")
    ] = []
    free: Annotated[
        int, Meta(ge=0, le=10_000, description="How many sessions more it can serve now.")
    ] = 1


class ClaimBody(Struct):
    """A wish for a call."""

    claim: NewClaim


class Tool(Struct):
    """What to call."""

    name: str
    arguments: dict[str, Any]


class Claim(Struct):
    """A call that is the worker's for `lease_seconds`, unless it extends its lease.

    `workspace_path` lies within the root, null: the root itself. `environment` holds the session's
    secrets by name. `resumed`: it was given out before and may have been begun.
    """

    claim_id: str
    lease_seconds: int
    run_public_id: str
    task_key: str
    session_id: str
    root_id: str
    workspace_path: str | None
    tool: Tool
    environment: dict[str, str]
    timeout_ms: Annotated[int | None, Meta(description="What is left of the turn's time.")]
    resumed: bool


class ClaimAnswer(Struct):
    """A call, or null; and those of the worker's sessions that are over, or another's now."""

    claim: Claim | None
    released: list[str]


class Lease(Struct):
    """`canceled`: the call has its end; the worker is to stop, and its lease was not extended."""

    expires_at: str
    lease_seconds: int
    canceled: bool


class LeaseAnswer(Struct):
    """How long the claim lasts."""

    lease: Lease


class Report(Struct):
    """The end of what the call has written, and how many characters that is in all."""

    text: Annotated[str, Meta(description="Of which the last 8,000 characters are looked at.")]
    characters: Annotated[int, Meta(ge=0)]


class ReportBody(Struct):
    """How far a call is."""

    progress: Report


class Progress(Struct):
    """Whether anybody watches: a worker need not hurry otherwise."""

    watched: bool


class ProgressAnswer(Struct):
    """What became of a report."""

    progress: Progress


class NewSettlement(Struct):
    """How a call ended; `preview` is what of the output the model is told."""

    status: Literal["completed", "failed", "timed_out", "uncertain"]
    output: str
    preview: str | UnsetType | None = UNSET


class SettlementBody(Struct):
    """What came of a call."""

    settlement: NewSettlement


class Settlement(Struct):
    """How the call stands; `canceled`: it had its end before, and the output was dropped."""

    status: str
    canceled: bool


class SettlementAnswer(Struct):
    """What became of a settlement."""

    settlement: Settlement
