"""Schemathesis, a third party's reader of the OpenAPI document, asks for what it promises."""

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from http_routes import every_route

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]


@pytest.fixture(scope="module")
def schema(served):
    api, _ = served
    return schemathesis.openapi.from_dict(api.get("/openapi.json").json())


@pytest.mark.parametrize(
    ("prefix", "route"), [pytest.param(p, route, id=route.id) for _, p, route in every_route()]
)
def test_an_operation_keeps_what_its_document_promises(served, schema, prefix, route):
    api, ids = served
    operation = schema[prefix + route.path][route.method]
    cases = st.one_of(
        operation.as_strategy(generation_mode=GenerationMode.POSITIVE),
        operation.as_strategy(generation_mode=GenerationMode.NEGATIVE),
    )

    @given(cases, st.booleans())
    @settings(
        max_examples=12,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    def ask(case, real):
        if real and case.path_parameters:
            known = {n: ids[n] for n in case.path_parameters if n in ids}
            case.path_parameters = {**case.path_parameters, **known}
        check(api, case)

    if route.method == "GET":
        check(
            api, operation.Case(path_parameters={n: ids.get(n, n) for n in route.path_parameters})
        )
    ask()


def check(api, case):
    """Send a case and hold the answer to the document."""
    sent = case.as_transport_kwargs(base_url="http://steno.test")
    sent.pop("allow_redirects", None)
    request = requests.Request(**sent).prepare()
    response = api.request(
        request.method,
        request.url.removeprefix("http://steno.test"),
        headers={k: v for k, v in request.headers.items() if k.lower() != "authorization"},
        content=request.body,
    )
    case.validate_response(response, checks=CHECKS)
