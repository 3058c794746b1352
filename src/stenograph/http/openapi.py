"""The OpenAPI 3.1 document, made from the same declarations that routes are served by."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

import stenograph
from stenograph.http import openapi_texts as texts
from stenograph.http.errors import Family
from stenograph.http.idempotency import HEADER, REPLAYED
from stenograph.http.route import ANY_KEY, EventStream, Route

_TEMPLATE = "#/components/schemas/{name}"
_UUIDS = frozenset({"reasonId"})


def document(families: Mapping[Family, tuple[str, Sequence[Route]]]) -> dict[str, Any]:
    """Describe the routes of each family, which lie beneath its prefix."""
    schemas: dict[str, Any] = {"Error": texts.V3_ERROR, "AgentError": texts.AGENT_ERROR}
    paths: dict[str, dict[str, Any]] = {}
    for family, (prefix, routes) in families.items():
        shapes = _shapes(routes, schemas)
        for route in routes:
            operations = paths.setdefault(prefix + route.path, {})
            operations[route.method.lower()] = _operation(family, route, shapes)
    for path, operations in paths.items():
        operations["parameters"] = [_path_parameter(name) for name in _names(path)]
    responses = [*texts.V3_RESPONSES.values(), *texts.AGENT_RESPONSES.values()]
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Stenograph",
            "version": stenograph.__version__,
            "description": texts.INTRODUCTION,
        },
        "servers": [{"url": "/"}],
        "security": [{"reasonApiKey": []}],
        "tags": _tags([route for _, routes in families.values() for route in routes]),
        "paths": paths,
        "components": {
            "schemas": schemas,
            "responses": dict(responses),
            "securitySchemes": texts.SECURITY_SCHEMES,
        },
    }


def _tags(routes: Iterable[Route]) -> list[dict[str, str]]:
    """List the tags that are served: those of v3 in its order, then the Agent API's."""
    known = texts.V3_TAGS | texts.AGENT_TAGS
    served = {route.tag for route in routes}
    named = [tag for tag in known if tag in served] + sorted(served - known.keys())
    return [{"name": t, "description": known[t]} if t in known else {"name": t} for t in named]


def _shapes(routes: Iterable[Route], schemas: dict[str, Any]) -> dict[Any, dict[str, Any]]:
    """Add the shapes of the routes to `schemas`, and return each one's own schema.

    A name that the other family uses for another shape gets `Agent` before it.
    """
    wanted: list[Any] = []
    for route in routes:
        for shape in (route.body, *route.answers.values()):
            if shape not in (None, bytes, EventStream) and shape not in wanted:
                wanted.append(shape)
    found, named = msgspec.json.schema_components(wanted, ref_template=_TEMPLATE)
    taken = {n: f"Agent{n}" for n, schema in named.items() if schemas.get(n, schema) != schema}
    for name, schema in named.items():
        schemas[taken.get(name, name)] = _renamed(schema, taken)
    return {s: _renamed(schema, taken) for s, schema in zip(wanted, found, strict=True)}


def _renamed(schema: Any, names: Mapping[str, str]) -> Any:
    if isinstance(schema, list):
        return [_renamed(item, names) for item in schema]
    if not isinstance(schema, dict):
        return schema
    new = {key: _renamed(value, names) for key, value in schema.items()}
    if isinstance(reference := new.get("$ref"), str):
        name = reference.rsplit("/", 1)[1]
        new["$ref"] = _TEMPLATE.format(name=names.get(name, name))
    return new


def _operation(family: Family, route: Route, shapes: Mapping[Any, Any]) -> dict[str, Any]:
    about = route.description
    if family == "v3" and route.scope != ANY_KEY:
        about = f"{about}\n\nScope: `{route.scope}`".strip()
    found: dict[str, Any] = {
        "operationId": route.id,
        "tags": [route.tag],
        "summary": route.summary,
        "description": about,
        "security": _security(family, route),
        "responses": _responses(family, route, shapes),
    }
    if parameters := [*_query(route), *_headers(route)]:
        found["parameters"] = parameters
    if route.body is not None:
        found["requestBody"] = {
            "required": True,
            "content": {kind: {"schema": _body(route, shapes)} for kind in route.media_types},
        }
    return found


def _security(family: Family, route: Route) -> list[dict[str, list[str]]]:
    if family == "v3":
        return [{"reasonApiKey": [] if route.scope in (ANY_KEY, None) else [route.scope]}]
    if route.plane == "open":
        return []
    if route.plane == "platform":
        return [{"reasonApiKey": []}]
    return [{"memberSecret" if route.plane == "member" else "executorSecret": []}]


def _body(route: Route, shapes: Mapping[Any, Any]) -> Any:
    # Bytes of whatever kind have no schema in OpenAPI 3.1 (section 4.8.14.3).
    return {} if route.body is bytes else shapes[route.body]


def _query(route: Route) -> list[dict[str, Any]]:
    return [
        {
            "name": parameter.name,
            "in": "query",
            "required": parameter.required,
            "description": parameter.about,
            "schema": parameter.schema,
        }
        for parameter in route.query
    ]


def _headers(route: Route) -> list[dict[str, Any]]:
    if route.idempotency is None:
        return []
    return [
        {
            "name": HEADER,
            "in": "header",
            "required": route.idempotency == "required",
            "description": "The same key and body within 24 hours act once.",
            "schema": {"type": "string", "minLength": 1, "maxLength": 255},
        }
    ]


def _responses(family: Family, route: Route, shapes: Mapping[Any, Any]) -> dict[str, Any]:
    common = texts.V3_RESPONSES if family == "v3" else texts.AGENT_RESPONSES
    error = "Error" if family == "v3" else "AgentError"
    found = {str(status): _answer(route, s, shapes) for status, s in route.answers.items()}
    for status, (name, _) in common.items():
        if status == 403 and route.scope == ANY_KEY:
            continue
        found[str(status)] = {"$ref": f"#/components/responses/{name}"}
    errors = dict(route.errors)
    if family != "v3" and route.method != "GET":
        errors = {409: texts.MEANINGS[409], 422: texts.MEANINGS[422]} | errors
    if route.idempotency is not None:
        errors.setdefault(409, "The key was used with another request.")
    if route.body is not None:
        errors.setdefault(413, texts.MEANINGS[413])
    for status, about in errors.items():
        found[str(status)] = {
            "description": about or texts.MEANINGS.get(status, "Refused."),
            "content": {"application/json": {"schema": {"$ref": f"#/components/schemas/{error}"}}},
        }
    return dict(sorted(found.items()))


def _answer(route: Route, shape: Any, shapes: Mapping[Any, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {"description": route.summary + "."}
    if shape is bytes:
        found["content"] = {"*/*": {}}
    elif shape is EventStream:
        found["content"] = {"text/event-stream": {}}
    elif shape is not None:
        found["content"] = {"application/json": {"schema": shapes[shape]}}
    if route.idempotency is not None:
        found["headers"] = {
            REPLAYED: {
                "description": "Whether this repeats an earlier answer.",
                "schema": {"type": "string", "enum": ["true", "false"]},
            }
        }
    return found


def _names(path: str) -> list[str]:
    return re.findall(r"\{(\w+)\}", path)


def _path_parameter(name: str) -> dict[str, Any]:
    schema = {"type": "string", "format": "uuid"} if name in _UUIDS else {"type": "string"}
    found: dict[str, Any] = {"name": name, "in": "path", "required": True, "schema": schema}
    if about := texts.PATH_PARAMETERS.get(name):
        found["description"] = about
    return found
