"""The HTTP application: one table of routes, one way in, one way out for errors."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

import msgspec
from litestar import Litestar, Request, Response
from litestar.exceptions import InternalServerException
from litestar.handlers import HTTPRouteHandler

from stenograph.accounts.access import Caller
from stenograph.conversations import reach
from stenograph.engine import questions
from stenograph.engine.choice import endpoints_of
from stenograph.errors import InvalidInputError
from stenograph.http import cable, docs_page, errors, health, platform
from stenograph.http.agent_api import approvals as run_approvals
from stenograph.http.agent_api import (
    attachments,
    conversation_changes,
    conversations,
    executor,
    forks,
    inputs,
    inputs_changes,
    reasoning,
    regeneration,
    run_changes,
    run_graph,
    runs,
    search,
    turn_changes,
    turns,
    variants,
    workspaces,
)
from stenograph.http.agent_api import compaction as conversation_compaction
from stenograph.http.agent_api import events as conversation_events
from stenograph.http.auth import Gate
from stenograph.http.context import Ctx
from stenograph.http.edge import Edge
from stenograph.http.errors import Family
from stenograph.http.following import Open
from stenograph.http.handover import Handover
from stenograph.http.metrics import Metrics
from stenograph.http.route import Answer, Route, snake
from stenograph.http.v3 import (
    account,
    approvals,
    compaction,
    creation,
    deployment,
    devices,
    ephemeral_workspaces,
    events,
    imports,
    mcp_servers,
    messages,
    provider_credentials,
    reasons,
    secrets,
    sessions,
    trajectory,
)
from stenograph.settings import Settings
from stenograph.storage.database import Database
from stenograph.storage.sealing import Sealer

AGENT_PREFIX = "/agent_api/v1"
V3_PREFIX = "/v3"
PLATFORM_PREFIX = "/api/v1"

#: One line a module; a module's `routes` are what it serves.
AGENT_API: list[Sequence[Route]] = [
    workspaces.routes,
    conversations.routes,
    conversation_changes.routes,
    forks.routes,
    conversation_events.routes,
    inputs.routes,
    inputs_changes.routes,
    attachments.routes,
    turns.routes,
    turn_changes.routes,
    regeneration.routes,
    variants.routes,
    reasoning.routes,
    runs.routes,
    run_graph.routes,
    run_changes.routes,
    search.routes,
    run_approvals.routes,
    conversation_compaction.routes,
    executor.routes,
]
V3: list[Sequence[Route]] = [
    account.routes,
    deployment.routes,
    reasons.routes,
    messages.routes,
    creation.routes,
    sessions.routes,
    approvals.routes,
    compaction.routes,
    events.routes,
    imports.routes,
    trajectory.routes,
    secrets.routes,
    ephemeral_workspaces.routes,
    mcp_servers.routes,
    provider_credentials.routes,
    devices.routes,
]


def create(database: Database, settings: Settings, sealer: Sealer) -> Edge:
    """Build the ASGI application over an open, migrated database."""
    gate, metrics = Gate(database, settings), Metrics()
    reach.judge(partial(questions.is_reachable, endpoints=tuple(endpoints_of(settings))))
    parts = (database, Handover(database), settings, sealer)
    handlers: list[Any] = [
        *(_handler(route, AGENT_PREFIX, gate.agent, parts) for route in _flat(AGENT_API)),
        *(_handler(route, V3_PREFIX, gate.v3, parts) for route in _flat(V3)),
        *(_handler(route, PLATFORM_PREFIX, gate.agent, parts) for route in platform.routes),
        *health.handlers(database, metrics),
        *docs_page.handlers(families()),
    ]
    app = Litestar(
        route_handlers=[*_options(handlers), *handlers],
        exception_handlers={Exception: errors.handle},
        openapi_config=None,
        logging_config=None,
        request_max_body_size=settings.max_body_bytes,
    )
    open = Open()
    sockets = cable.application(database, settings, sealer, gate, open)
    return Edge(app, sockets, gate, metrics, open)


def families() -> dict[Family, tuple[str, list[Route]]]:
    """Every route of each family, beneath its prefix."""
    return {
        "v3": (V3_PREFIX, _flat(V3)),
        "agent": (AGENT_PREFIX, _flat(AGENT_API)),
        "platform": (PLATFORM_PREFIX, platform.routes),
    }


def _flat(modules: Sequence[Sequence[Route]]) -> list[Route]:
    return [route for module in modules for route in module]


def _handler(
    route: Route,
    prefix: str,
    admit: Callable[[Request[Any, Any, Any], Route], Awaitable[Caller]],
    parts: tuple[Database, Handover, Settings, Sealer],
) -> HTTPRouteHandler:
    """Make a Litestar handler of a route: admit, read the body, call, encode."""
    if prefix == V3_PREFIX and (route.scope is None or 204 in route.answers):
        raise TypeError(f"{route.id}: a v3 route names its scope and always answers with a body")
    database, handover, settings, sealer = parts
    names = {name: snake(name) for name in route.path_parameters if name != "orgId"}
    takes_body = route.body is not None

    async def handle(request: Request[Any, Any, Any]) -> Response[Any]:
        caller = await admit(request, route)
        found = request.scope["path_params"]
        arguments = {argument: _named(found[name]) for name, argument in names.items()}
        ctx = Ctx(
            caller=caller,
            database=database,
            handover=handover,
            settings=settings,
            sealer=sealer,
            request=request,
            route=route,
            raw=await _body(request) if takes_body else b"",
        )
        return respond(await route.handler(ctx, **arguments), route.status)

    path = prefix + "".join(
        f"{{{part[1:-1]}:str}}" if part.startswith("{") else part for part in _split(route.path)
    )
    limit = settings.max_import_bytes if route.body is bytes else settings.max_body_bytes
    return HTTPRouteHandler(
        path,
        http_method=route.method,
        status_code=200,  # what Litestar would assume; `respond` always says it
        include_in_schema=False,
        request_max_body_size=limit,
    )(handle)


def _options(handlers: Sequence[HTTPRouteHandler]) -> list[HTTPRouteHandler]:
    """Make handlers that name the methods of each path. Litestar's own name those of its first."""
    served: dict[str, set[str]] = {}
    for handler in handlers:
        for path in handler.paths:
            served.setdefault(path, {"OPTIONS"}).update(handler.http_methods)

    def make(path: str, methods: set[str]) -> HTTPRouteHandler:
        allowed = ", ".join(sorted(methods | ({"HEAD"} if "GET" in methods else set())))

        async def options() -> Response[None]:
            return Response(None, status_code=204, headers={"Allow": allowed})

        return HTTPRouteHandler(
            path, http_method="OPTIONS", status_code=204, include_in_schema=False
        )(options)

    return [make(path, methods) for path, methods in served.items()]


async def _body(request: Request[Any, Any, Any]) -> bytes:
    try:
        return await request.body()
    except InternalServerException:  # Litestar's word for a client that left; nothing failed here
        raise InvalidInputError("The body ended too soon", code="bad_request") from None


def _named(text: str) -> str:
    """Return a path's parameter; one that no database takes names nothing, as the empty one does.

    So each route answers as it does for anything that is not there.
    """
    return text if text.isprintable() else ""


def _split(path: str) -> list[str]:
    """Cut a path before and after each `{parameter}`."""
    return path.replace("{", "\0{").replace("}", "}\0").split("\0")


def respond(value: Any, status: int) -> Response[Any]:
    """Encode what a handler returned."""
    if isinstance(value, Response):
        return value
    headers = None
    if isinstance(value, Answer):
        status, headers, value = value.status or status, value.headers, value.value
    if status == 204:
        return Response(None, status_code=204, headers=headers)
    return Response(
        msgspec.json.encode(value),
        status_code=status,
        headers=headers,
        media_type="application/json",
    )
