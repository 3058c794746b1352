"""Whatever is sent, the answer has the shape of its family, and no internals are told."""

import re
import sqlite3
from dataclasses import replace
from itertools import cycle

import msgspec
import pytest

from http_routes import every_route, fill
from stenograph.errors import (
    ConflictError,
    ForbiddenError,
    GoneError,
    InvalidInputError,
    NotFoundError,
    RefusedError,
    TooLargeError,
    TooManyRequestsError,
    UnauthorizedError,
)
from stenograph.http import server
from stenograph.http.context import Ctx, decode
from stenograph.http.route import ANY_KEY, get, post


def check_shape(family: str, answer) -> None:
    """Any answer that is no 2xx has its family's body (reason-api.md 1, agent-api.md 1.2)."""
    assert answer.status_code < 500, (answer.request.method, answer.request.url, answer.text)
    assert answer.status_code >= 200
    if answer.status_code < 300:
        return
    assert answer.headers["content-type"] == "application/json"
    body = answer.json()
    assert "error" in body
    if family == "v3":
        assert body.keys() <= {"error", "message", "required_scope"}
        assert isinstance(body["error"], str) or body["error"].keys() >= {"type", "message"}
    else:
        assert body["error"].keys() >= {"code", "message"}
        assert all(isinstance(body["error"][k], str) for k in ("code", "message"))


BODIES = [
    b"", b"{", b"[", b"null", b"[]", b'"text"', b"{}", b"\xff\xfe", b'{"a":"\\ud800"}',
    b"[" * 100_000, b'{"a":' + b"9" * 5000 + b"}", b'{"a":1e999}', b'{"a":NaN}', b"a=b&c=d",
    b'{"prompt":{"a":1},"message":[],"conversation":3,"input":"x","fork":false}',
    b'{"prompt":"\\u0000","message":"\\u0000","title":"\\u0000","name":"\\u0000"}',
]  # fmt: skip

SEGMENTS = [
    "%00", "%ff", "%ed%a0%80", "%2e%2e", "%2F", "%20", "a" * 10_000, "%F0%9F%98%80", "' OR 1=1 --",
    "null", "0", "-1",
]  # fmt: skip

QUERIES = [
    "limit=&before=&after=&first=", "limit=abc&first=abc&after=abc&before=abc", "limit=%00",
    "limit=-1&first=-1", "limit=1e3&first=5.0", f"limit={'9' * 5000}&first={'9' * 5000}",
    "after=%ff&before=%ff", "after=%ed%a0%80", "after_seq=x&wait_ms=x", "a&b&&=&=c", "%",
    f"after={'A' * 50_000}", "after[]=1", "limit=1&limit=x",
]  # fmt: skip


def test_malformed_bodies(api):
    kinds = ("application/json", "text/plain", "application/x-www-form-urlencoded", "")
    for family, prefix, route in every_route():
        for body, kind in zip(BODIES, cycle(kinds), strict=False):
            headers = {"Content-Type": kind, "Idempotency-Key": "k"}
            path = prefix + fill(route.path)
            check_shape(family, api.request(route.method, path, content=body, headers=headers))


def test_malformed_paths_and_queries(api):
    for family, prefix, route in every_route():
        for name in re.findall(r"{\w+}", route.path):
            for segment in SEGMENTS:
                path = prefix + fill(route.path.replace(name, segment))
                check_shape(family, api.request(route.method, path))
        for query in QUERIES:
            path = prefix + fill(route.path)
            check_shape(family, api.request(route.method, f"{path}?{query}"))


def test_malformed_bodies_and_queries_to_what_is_there(served):
    api, ids = served
    headers = {"Content-Type": "application/json", "Idempotency-Key": "k"}
    for family, prefix, route in every_route():
        path = prefix + route.path.format(**{n: ids.get(n, n) for n in route.path_parameters})
        for body in BODIES:
            check_shape(family, api.request(route.method, path, content=body, headers=headers))
        for query in QUERIES:
            check_shape(family, api.request(route.method, f"{path}?{query}"))


@pytest.mark.parametrize("path", ["/v3/nothing", "/v3/organizations/default/nothing/here", "/v3"])
def test_what_is_not_routed_in_v3(api, path):
    answer = api.get(path)
    assert (answer.status_code, answer.json()) == (404, {"error": "not_found"})


@pytest.mark.parametrize(
    "path", ["/", "/agent_api/v1/nothing", "/agent_api", "/v3x", "/favicon.ico"]
)
def test_what_is_not_routed_elsewhere(api, path):
    answer = api.get(path)
    assert answer.status_code == 404
    assert answer.json() == {"error": {"code": "not_found", "message": "Not found"}}


def test_a_method_that_is_not_served_names_those_that_are(api):
    answer = api.delete("/v3/self")
    assert answer.status_code == 405
    assert answer.json()["error"] == "method_not_allowed"
    assert set(answer.headers["allow"].split(", ")) >= {"GET", "OPTIONS"}
    assert "DELETE" not in answer.headers["allow"]


def test_head_is_get_without_the_body(api):
    for path, key in (("/healthz", ""), ("/v3/self", None), ("/v3/self", ""), ("/v3/none", None)):
        got, head = api.get(path, key=key), api.request("HEAD", path, key=key)
        assert head.status_code == got.status_code
        assert head.headers["content-type"] == got.headers["content-type"]
        assert head.headers["content-length"] == got.headers["content-length"]
        assert head.content == b""


def test_options_names_the_methods(api):
    for path, methods in (
        ("/v3/self", "GET, HEAD, OPTIONS"),
        ("/agent_api/v1/workspaces", "GET, HEAD, OPTIONS, POST"),
        ("/agent_api/v1/workspaces/w/conversations/c", "DELETE, GET, HEAD, OPTIONS, PATCH"),
    ):
        answer = api.request("OPTIONS", path, key="")
        assert (answer.status_code, answer.headers["allow"]) == (204, methods)


# --- every error of the domain, in both shapes -------------------------------------------------


def collision() -> sqlite3.IntegrityError:
    """What the loser of a race for a unique name gets from SQLite."""
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE t (name UNIQUE)")
    try:
        connection.execute("INSERT INTO t VALUES (1), (1)")
    except sqlite3.IntegrityError as error:
        return error
    finally:
        connection.close()
    raise AssertionError


CASES = [
    (InvalidInputError("Invalid parameter: before", parameter="before"),
     400, "parameter_invalid", {"error": "invalid_before"}),
    (InvalidInputError("That is no cursor", code="invalid_cursor"),
     400, "parameter_invalid", {"error": "invalid_cursor"}),
    (InvalidInputError("No prompt", code="prompt_required"),
     400, "parameter_invalid", {"error": "prompt_required"}),
    (InvalidInputError("Key!", code="idempotency_key_required"),
     400, "idempotency_key_required", {"error": "idempotency_key_required", "message": "Key!"}),
    (UnauthorizedError("The key has expired", code="api_key_expired"),
     401, "unauthorized", {"error": "missing_bearer", "message": "Authorization required"}),
    (ForbiddenError("No", code="missing_scope", required_scope="run"),
     403, "not_authorized", {"error": "missing_scope", "required_scope": "run"}),
    (ForbiddenError("Not yours"),
     403, "not_authorized", {"error": "forbidden", "message": "Not yours"}),
    (ForbiddenError("Not yours", code="not_workspace_owner"),
     403, "not_workspace_owner", {"error": "not_workspace_owner", "message": "Not yours"}),
    (NotFoundError("No such session", code="session_not_found"),
     404, "not_found", {"error": "session_not_found"}),
    (NotFoundError("It has no request", code="request_not_sealed"),
     404, "request_not_sealed", {"error": "request_not_sealed"}),
    (ConflictError("Busy", code="conversation_busy"),
     409, "conversation_busy", {"error": "conversation_busy", "message": "Busy"}),
    (RefusedError("Live", code="run_live"),
     409, "run_live", {"error": "run_live", "message": "Live"}),
    (RefusedError("Too large", code="fork_too_large"),
     422, "fork_too_large", {"error": "fork_too_large", "message": "Too large"}),
    (RefusedError("Gone", code="execution_details_pruned"),
     409, "execution_details_pruned", {"error": "execution_details_pruned", "message": "Gone"}),
    (GoneError(),
     410, "execution_details_pruned",
     {"error": "execution_details_pruned", "message": str(GoneError())}),
    (TooLargeError("Big"),
     413, "content_too_large", {"error": "request_too_large", "message": "Big"}),
    (TooManyRequestsError("Slow down", 7),
     429, "rate_limited", {"error": {"type": "rate_limited", "message": "Slow down"}}),
    (OverflowError("Python int too large"),
     400, "bad_request", {"error": "invalid_request", "message": "A number is out of range"}),
    (collision(),
     409, "stale_object",
     {"error": "stale_object",
      "message": "It was changed by another request at the same moment"}),
    (sqlite3.OperationalError("database or disk is full"),
     503, "unavailable",
     {"error": "unavailable", "message": "The database cannot take this now; try again"}),
]  # fmt: skip

#: The statuses of the table in agent-api.md 1.2, for refusals by a rule.
STATUSES = {
    409: "stale_object stale_claim already_claimed not_addressed_here not_claimable_kind"
    " not_eligible task_not_claimable conversation_archived subagent_follows_parent"
    " conversation_busy input_queue_full stale_context stale_timeline steering_target_changed"
    " variant_not_forkable steering_held queue_changed branch_required unsupported_turn_type"
    " variant_not_active variant_active apex_never_conceals not_terminal slot_occupied apex_only"
    " steering_holds run_live kernel_authored kernel_input_immutable run_settled"
    " conversation_hosted run_needs_attention execution_details_pruned workspace_not_active"
    " transition_in_progress entry_limit_reached key_taken already_compacted task_not_queued"
    " compaction_disabled descendant_pinned",
    422: "validation_failed fork_too_large side_conversation side_of_side principal_not_eligible"
    " answerer_not_eligible unsupported_reasoning_effort",
}


@pytest.fixture
def failing(api, monkeypatch):
    """Serve one route in each family that raises what the test says."""
    raised: list[Exception] = []

    async def fail(ctx: Ctx) -> None:
        """Fail."""
        raise raised[-1]

    v3_route = get("/fail", id="v3Fail", tag="Account", scope=ANY_KEY, answer=str)(fail)
    agent_route = get("/fail", id="agentFail", tag="Fail")(fail)
    monkeypatch.setattr(server, "V3", [[v3_route]])
    monkeypatch.setattr(server, "AGENT_API", [[agent_route]])
    reopened = type(api)(api.database, api.org, api.settings, api.sealer)

    def send(error: Exception):
        raised.append(error)
        return reopened.get("/agent_api/v1/fail"), reopened.get("/v3/fail")

    yield send
    reopened.close()


def test_each_error_in_both_shapes(failing):
    for error, status, code, v3_body in CASES:
        agent, v3 = failing(error)
        assert (agent.status_code, agent.json()["error"]["code"]) == (status, code), error
        if not isinstance(error, RefusedError):
            assert v3.status_code == status
        assert v3.json() == v3_body


def test_the_statuses_of_refusals_in_the_agent_api(failing):
    for status, codes in STATUSES.items():
        for code in codes.split():
            agent, _ = failing(RefusedError("Refused", code=code))
            assert (agent.status_code, agent.json()["error"]["code"]) == (status, code)
            assert agent.json()["error"]["message"] == "Refused"


def test_codes_with_more_members_carry_them_and_others_nothing(failing):
    error = ConflictError(
        "Hosted",
        code="conversation_hosted",
        conversation_public_id="c",
        turn_public_id="t",
        secret="s",
    )
    agent, _ = failing(error)
    assert agent.json()["error"] == {
        "code": "conversation_hosted",
        "message": "Hosted",
        "conversation_public_id": "c",
        "turn_public_id": "t",
    }


def test_waits_are_said(failing):
    for error, wait in (
        (TooManyRequestsError("Slow", 7), "7"),
        (sqlite3.OperationalError("database is locked"), "1"),
    ):
        for answer in failing(error):
            assert answer.headers["Retry-After"] == wait


def test_what_nobody_foresaw_tells_nothing(failing, capsys):
    for answer in failing(RuntimeError("the password is hunter2")):
        assert answer.status_code == 500
        assert "hunter2" not in answer.text
        assert "RuntimeError" not in answer.text
    logged = capsys.readouterr()
    assert "hunter2" not in logged.out + logged.err
    assert "RuntimeError" in logged.out + logged.err


# --- bodies ------------------------------------------------------------------------------------


class Note(msgspec.Struct):
    text: str
    tags: list[str] = []


class Order(msgspec.Struct):
    notes: list[Note]
    count: int = 0


@pytest.mark.parametrize(
    ("body", "code", "pointer"),
    [
        (b'{"notes":[{"text":"a"},{"text":3}]}', "parameter_invalid", "/notes/1/text"),
        (b'{"notes":[{"text":"a","tags":[1]}]}', "parameter_invalid", "/notes/0/tags/0"),
        (b'{"notes":[{}]}', "parameter_missing", "/notes/0"),
        (b"{}", "parameter_missing", ""),
        (b"[]", "parameter_invalid", ""),
        (b'{"notes":[],"count":"5"}', "parameter_invalid", "/count"),
        (b'{"notes":[]', "bad_request", ""),
        (b"", "bad_request", ""),
        (b'{"notes":[{"text":"\\ud800"}]}', "bad_request", ""),
    ],
)
def test_a_bad_body_is_pointed_at(body, code, pointer):
    with pytest.raises(InvalidInputError) as error:
        decode(body, Order)
    assert (error.value.code, error.value.details["pointer"]) == (code, pointer)
    if pointer:
        assert pointer in error.value.message


def test_a_client_that_leaves_within_its_body_is_no_fault_of_ours(api, capsys):
    pieces = iter(
        [
            {"type": "http.request", "body": b'{"workspace":', "more_body": True},
            {"type": "http.disconnect"},
        ]
    )
    said = []

    async def receive():
        return next(pieces)

    async def send(message):
        said.append(message)

    scope = {
        "type": "http", "http_version": "1.1", "method": "POST", "scheme": "http",
        "path": "/agent_api/v1/workspaces", "raw_path": b"/agent_api/v1/workspaces",
        "query_string": b"", "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 2),
        "headers": [(b"authorization", f"Bearer {api.org.keys['member']}".encode())],
    }  # fmt: skip
    api.runner.run(api.app(scope, receive, send))
    assert said[0]["status"] == 400
    assert "request failed" not in capsys.readouterr().out


def test_a_body_beyond_the_limit(api, monkeypatch):
    async def take(ctx: Ctx) -> int:
        """Take."""
        return len(ctx.raw)

    v3 = post("/take", id="v3Take", tag="Account", scope=ANY_KEY, body=Order, answer=int)(take)
    agent = post("/take", id="agentTake", tag="Take", body=bytes, answer=int)(take)
    monkeypatch.setattr(server, "V3", [[v3]])
    monkeypatch.setattr(server, "AGENT_API", [[agent]])
    small = replace(api.settings, max_body_bytes=1000, max_import_bytes=2000)
    reopened = type(api)(api.database, api.org, small, api.sealer)
    assert reopened.post("/v3/take", content=b"x" * 1000).json() == 1000
    answer = reopened.post("/v3/take", content=b"x" * 1001)
    assert (answer.status_code, answer.json()["error"]) == (413, "request_too_large")
    assert reopened.post("/agent_api/v1/take", content=b"x" * 2000).json() == 2000
    answer = reopened.post("/agent_api/v1/take", content=b"x" * 2001)
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "content_too_large")

    async def pieces():
        for _ in range(3):
            yield b"x" * 600

    chunked = reopened.runner.run(reopened.send("POST", "/v3/take", content=pieces()))
    assert chunked.status_code == 413
    reopened.close()
