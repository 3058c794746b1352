"""How a route is declared: once, for the router, the gatekeeper and the documentation alike.

    @get("/organizations/{orgId}/sessions/{sessionId}", id="getSession", tag="Sessions",
         scope="sessions:read", answer=wire.Session)
    async def get_session(ctx: Ctx, session_id: str) -> wire.Session:
        \"\"\"Read a session.\"\"\"

The path's parameters come to the handler by name, in snake case and as text (`orgId` is checked
before and left out). It returns what is encoded as JSON, an `Answer`, or a Litestar response.
The first line of its docstring is the operation's summary, the rest its description.
"""

import inspect
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from stenograph.http.parameters import Parameter

Handler: TypeAlias = Callable[..., Awaitable[Any]]
Method: TypeAlias = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
Plane: TypeAlias = Literal["member", "executor", "platform", "open"]

#: For a v3 route that every key may call.
ANY_KEY = "any"
_PARAMETER = re.compile(r"\{(\w+)\}")


class EventStream:
    """As the shape of an answer: server-sent events (`http/sse.py`)."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A value with another status than the route's, or with headers."""

    value: Any
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Route:
    """`path` lies beneath the family's prefix; `answers` are the 2xx statuses and their shapes,
    `status` the one that is sent unless the handler says another.

    `scope` is of the v3 family, `plane` of the Agent API; `open` takes no credential. `requests` is
    how many a minute the route's kind of resource (`tag`) takes from one caller, None: the setting.
    `body` is the shape of the JSON body, or `bytes` for a body taken as it comes (`media_types`
    says which kinds).
    `idempotency` says whether the header `Idempotency-Key` is read. `errors` adds to the
    documentation what the family does not answer everywhere.
    """

    method: Method
    path: str
    handler: Handler
    id: str
    tag: str
    scope: str | None
    plane: Plane
    requests: int | None
    query: Sequence[Parameter]
    body: Any
    media_types: Sequence[str]
    idempotency: Literal["required", "optional", None]
    status: int
    answers: Mapping[int, Any]
    errors: Mapping[int, str]

    @property
    def path_parameters(self) -> list[str]:
        """Their names, as the documentation has them."""
        return _PARAMETER.findall(self.path)

    @property
    def summary(self) -> str:
        return (inspect.getdoc(self.handler) or self.id).split("\n", 1)[0].rstrip(".")

    @property
    def description(self) -> str:
        """The rest of the docstring, its lines joined within paragraphs."""
        rest = (inspect.getdoc(self.handler) or "").partition("\n")[2].strip()
        return "\n\n".join(" ".join(p.split()) for p in rest.split("\n\n")) if rest else ""


def snake(name: str) -> str:
    """Write `sessionId` as `session_id`."""
    return re.sub(r"(?<=[a-z])([A-Z])", r"_\1", name).lower()


def _declare(method: Method, default_status: int) -> Callable[..., Callable[[Handler], Route]]:
    def declare(
        path: str,
        *,
        id: str,
        tag: str,
        answer: Any = None,
        status: int | None = None,
        also: Mapping[int, Any] | None = None,
        scope: str | None = None,
        plane: Plane = "member",
        requests: int | None = None,
        query: Sequence[Parameter] = (),
        body: Any = None,
        media_types: Sequence[str] = ("application/json",),
        idempotency: Literal["required", "optional", None] = None,
        errors: Mapping[int, str] | None = None,
    ) -> Callable[[Handler], Route]:
        usual: int = status or (204 if answer is None else default_status)

        def decorate(handler: Handler) -> Route:
            route = Route(
                method=method,
                path=path,
                handler=handler,
                id=id,
                tag=tag,
                scope=scope,
                plane=plane,
                requests=requests,
                query=tuple(query),
                body=body,
                media_types=tuple(media_types),
                idempotency=idempotency,
                status=usual,
                answers={usual: answer} | dict(also or {}),
                errors=dict(errors or {}),
            )
            _check(route)
            return route

        return decorate

    return declare


def _check(route: Route) -> None:
    """Refuse a handler whose arguments are not the path's parameters."""
    wanted = ["ctx", *(snake(p) for p in route.path_parameters if p != "orgId")]
    found = list(inspect.signature(route.handler).parameters)
    if found != wanted:
        raise TypeError(f"{route.id}: the handler takes {found}, its path gives {wanted}")


get = _declare("GET", 200)
post = _declare("POST", 200)
put = _declare("PUT", 200)
patch = _declare("PATCH", 200)
delete = _declare("DELETE", 200)
