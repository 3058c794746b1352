"""The OpenAPI document says what is served: the founding pages' facts, and the routes' own."""

import re

import jsonschema
import pytest

from stenograph.http import server
from stenograph.http.route import ANY_KEY


@pytest.fixture
def document(api):
    answer = api.get("/openapi.json", key="")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    return answer.json()


def operations(document):
    for path, item in document["paths"].items():
        for method, operation in item.items():
            if method != "parameters":
                yield path, method, operation


def references(value):
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for item in value.values():
            yield from references(item)
    elif isinstance(value, list):
        for item in value:
            yield from references(item)


def test_it_is_openapi_3_1_and_every_reference_leads_somewhere(document):
    assert document["openapi"] == "3.1.0"
    for reference in references(document):
        found = document
        for step in reference.removeprefix("#/").split("/"):
            found = found[step]


def test_every_schema_is_one(document):
    for schema in document["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)


def test_every_route_is_there_once_under_its_own_id(document):
    served = {
        (prefix + route.path, route.method.lower(), route.id)
        for prefix, routes in server.families().values()
        for route in routes
    }
    assert {(p, m, o["operationId"]) for p, m, o in operations(document)} == served
    ids = [operation["operationId"] for _, _, operation in operations(document)]
    assert len(ids) == len(set(ids))


def test_the_key_and_scope_of_each_operation_are_those_that_are_enforced(document):
    documented = {o["operationId"]: o["security"] for _, _, o in operations(document)}
    for family, (_, routes) in server.families().items():
        for route in routes:
            if family == "agent":
                wanted = {
                    "member": [{"memberSecret": []}],
                    "executor": [{"executorSecret": []}],
                    "open": [],
                }
                assert documented[route.id] == wanted[route.plane]
            elif family == "platform":
                assert documented[route.id] == [{"reasonApiKey": []}]
            else:
                scopes = [] if route.scope == ANY_KEY else [route.scope]
                assert documented[route.id] == [{"reasonApiKey": scopes}]
    schemes = document["components"]["securitySchemes"]
    for security in documented.values():
        assert all(one.keys() <= schemes.keys() for one in security)
    assert schemes["reasonApiKey"]["bearerFormat"] == "reason_ (legacy: ara_)"


def test_path_parameters_are_declared(document):
    for path, item in document["paths"].items():
        declared = [p["name"] for p in item["parameters"] if p["in"] == "path"]
        assert declared == re.findall(r"\{(\w+)\}", path)
        assert all(p["required"] for p in item["parameters"])


def test_every_operation_is_explained(document):
    tags = {tag["name"] for tag in document["tags"]}
    for path, method, operation in operations(document):
        assert operation["summary"], (path, method)
        assert set(operation["tags"]) <= tags
        assert {"400", "401", "429"} <= operation["responses"].keys()
        if path.startswith("/v3/organizations"):
            assert {"403", "404"} <= operation["responses"].keys()


def test_v3_areas_keep_their_documented_order_and_lines(document):
    found = [tag["name"] for tag in document["tags"]]
    order = ["Account", "Reasons", "Sessions", "Secrets", "Devices"]
    assert [name for name in found if name in order] == [n for n in order if n in found]
    account = next(tag for tag in document["tags"] if tag["name"] == "Account")
    assert account["description"] == ("Verify a key and resolve the organization it belongs to.")


def test_the_error_schema_is_the_documented_one(document):
    error = document["components"]["schemas"]["Error"]
    validator = jsonschema.Draft202012Validator(error)
    for body in (
        {"error": "prompt_required"},
        {"error": "missing_bearer", "message": "Authorization required"},
        {"error": "missing_scope", "required_scope": "sessions:read"},
        {"error": {"type": "rate_limited", "message": "This API key exceeded its rate"}},
        {"error": {"type": "x", "message": "y", "request_id": None}},
    ):
        validator.validate(body)
    assert not validator.is_valid({"error": {"type": "x"}})
    assert not validator.is_valid({"error": 5})


def test_the_page_for_people_lists_every_operation_and_loads_nothing_from_elsewhere(api, document):
    answer = api.get("/docs", key="")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    page = answer.text
    for path, _, operation in operations(document):
        assert f'id="{operation["operationId"]}"' in page
        assert f"<code>{path}</code>" in page
    assert "<script" not in page
    for target in re.findall(r'(?:src|href)="([^"]+)"', page):
        assert target.startswith(("#", "/docs/style.css", "/openapi.json")), target
    anchors = set(re.findall(r'id="([^"]+)"', page))
    assert {t[1:] for t in re.findall(r'href="(#[^"]+)"', page)} <= anchors
    style = api.get("/docs/style.css", key="")
    assert style.headers["content-type"] == "text/css; charset=utf-8"


def test_metrics_count_requests_by_route_and_never_by_id(api):
    api.get("/v3/self")
    api.get("/v3/self", key="")
    api.get("/no/such/thing-4711")
    text = api.get("/metrics", key="").text
    assert 'stenograph_requests_total{method="GET",route="/v3/self",status="200"} 1.0' in text
    assert 'stenograph_requests_total{method="GET",route="/v3/self",status="401"} 1.0' in text
    assert 'stenograph_requests_total{method="GET",route="none",status="404"} 1.0' in text
    assert "4711" not in text


def test_the_page_shows_code_as_code_and_nothing_as_markup():
    from stenograph.http.docs_page import prose

    assert str(prose("a `<b>` & c")) == "a <code>&lt;b&gt;</code> &amp; c"
    assert str(prose("`a` then `b`")) == "<code>a</code> then <code>b</code>"
    assert str(prose("an odd ` stays")) == "an odd ` stays"
