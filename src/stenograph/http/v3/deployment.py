"""What this server offers: `getDeployment`."""

import msgspec

from stenograph.clock import iso, now
from stenograph.http.context import Ctx
from stenograph.http.route import Route, get
from stenograph.http.v3 import wire


class Deployment(msgspec.Struct):
    """What sessions may be like here, and which build this is; null: not known."""

    session_modes: list[str]
    workspace_ownerships: list[str]
    experimental_runtime_profiles: list[str]
    experimental_runtime_features: list[str]
    service: str | None
    environment: str | None
    commit_sha: str | None
    deployment_id: str | None
    checked_at: wire.Time | None


@get(
    "/deployment",
    id="getDeployment",
    tag="Account",
    scope="deployment:read",
    answer=Deployment,
)
async def get_deployment(ctx: Ctx) -> Deployment:
    """Read what this deployment offers."""
    return Deployment(
        session_modes=["standard", "ephemeral"],
        workspace_ownerships=["externally-managed"],
        experimental_runtime_profiles=[],
        experimental_runtime_features=[],
        service="stenograph",
        environment=None,
        commit_sha=None,
        deployment_id=None,
        checked_at=iso(now()),
    )


routes: list[Route] = [get_deployment]
