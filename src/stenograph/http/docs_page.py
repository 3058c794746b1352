"""`/openapi.json` for programs and `/docs` for people, both made once from the routes."""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from litestar import Response, get
from litestar.handlers import HTTPRouteHandler

from stenograph.http import openapi
from stenograph.http.errors import Family
from stenograph.http.route import Route

if TYPE_CHECKING:
    from markupsafe import Markup

_WEB = Path(__file__).parent.parent / "web"
#: The page loads nothing but its own style sheet, and runs nothing.
_POLICY = "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'"


def handlers(families: Mapping[Family, tuple[str, Sequence[Route]]]) -> list[HTTPRouteHandler]:
    """Return the handlers; the document and the page are made at the first request."""

    @cache
    def document() -> dict[str, Any]:
        return openapi.document(families)

    @cache
    def document_bytes() -> bytes:
        return msgspec.json.encode(document())

    @cache
    def page_bytes() -> bytes:
        return render(document()).encode()

    @get("/openapi.json", include_in_schema=False)
    async def openapi_json() -> Response[bytes]:
        return Response(document_bytes(), media_type="application/json")

    @get("/docs", include_in_schema=False)
    async def docs() -> Response[bytes]:
        headers = {"Content-Security-Policy": _POLICY, "X-Content-Type-Options": "nosniff"}
        return Response(page_bytes(), media_type="text/html", headers=headers)

    @get("/docs/style.css", include_in_schema=False)
    async def style() -> Response[bytes]:
        css = (_WEB / "static" / "docs.css").read_bytes()
        return Response(css, media_type="text/css")

    return [openapi_json, docs, style]


def render(document: dict[str, Any]) -> str:
    """Write the page of an OpenAPI document."""
    # Imported here: most servers are never asked for the page.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(_WEB / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"shape": shape, "prose": prose}
    template = environment.get_template("docs.html")
    return template.render(document=document, groups=_groups(document))


def _groups(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Gather the operations beneath their tags, with the parameters of their paths."""
    groups = {tag["name"]: {**tag, "operations": []} for tag in document["tags"]}
    common = document["components"]["responses"]
    for path, item in document["paths"].items():
        shared = item["parameters"]
        for method, operation in item.items():
            if method == "parameters":
                continue
            responses = {
                status: common[r["$ref"].rsplit("/", 1)[1]] if "$ref" in r else r
                for status, r in operation["responses"].items()
            }
            keys: dict[str, list[str]] = next(iter(operation["security"]), {})
            scheme, scopes = next(iter(keys.items()), ("", []))
            groups[operation["tags"][0]]["operations"].append(
                operation
                | {
                    "path": path,
                    "method": method.upper(),
                    "parameters": shared + operation.get("parameters", []),
                    "responses": responses,
                    "scheme": scheme,
                    "scopes": scopes,
                }
            )
    return list(groups.values())


def prose(text: str) -> "Markup":
    """Escape text, and show what stands between backticks as code."""
    from markupsafe import Markup, escape

    plain, *rest = text.split("`")
    pairs = zip(rest[::2], rest[1::2], strict=False)
    shown = escape(plain) + Markup().join(
        Markup("<code>{}</code>{}").format(code, after) for code, after in pairs
    )
    return shown if len(rest) % 2 == 0 else shown + "`" + rest[-1]


def shape(schema: dict[str, Any]) -> str:
    """Name a schema in a few words: `integer or null`, `list of Turn`, `"asc" or "desc"`."""
    if "$ref" in schema:
        return str(schema["$ref"].rsplit("/", 1)[1])
    if "const" in schema:
        return f'"{schema["const"]}"'
    if "enum" in schema:
        return " or ".join(f'"{value}"' for value in schema["enum"])
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return " or ".join(shape(option) for option in schema[key])
    kind = schema.get("type", "anything")
    if isinstance(kind, list):
        return " or ".join(kind)
    if kind == "array":
        return f"list of {shape(schema.get('items', {}))}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"object of {shape(schema['additionalProperties'])}"
    return f"{kind} ({schema['format']})" if "format" in schema else str(kind)
