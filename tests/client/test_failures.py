"""What a client makes of answers that no server of ours would give, and of none at all."""

from collections.abc import Callable
from typing import Any

import httpx
import msgspec
import pytest

from client.awaited import WAYS, use
from stenograph.client import (
    Conflict,
    ConnectionFailed,
    ContentTooLarge,
    Error,
    Forbidden,
    InvalidRequest,
    MalformedResponse,
    NotFound,
    RateLimited,
    Retries,
    ServerError,
    Unauthorized,
)

AT_ONCE = Retries(first=0)
ITEM = {"model": {"provider_id": "dev", "new": 1}, "available": True, "text": "Hm.", "new": [1]}
PAGE = {"items": [ITEM], "pagination": {"next_before": None, "has_older": False}, "new": {}}


def answer(status: int, document: Any = None, **headers: str) -> httpx.Response:
    content = document if isinstance(document, bytes) else msgspec.json.encode(document)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.Response(status, content=content, headers=named)


def refusal(status: int, code: str, **more: Any) -> httpx.Response:
    return answer(status, {"error": {"code": code, "message": "No.", **more}}, x_request_id="r7")


class Double:
    """A server that gives these answers in turn, the last one again and again."""

    def __init__(self, *answers: httpx.Response | Exception) -> None:
        self.answers = list(answers)
        self.asked: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        found = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(found, Exception):
            raise found
        return httpx.Response(found.status_code, content=found.content, headers=found.headers)


@pytest.fixture(params=WAYS)
def ask(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Do something with a conversation of a double; returns what it returns, or the error."""

    def act(double: Double, doing: Callable[[Any], Any], retries: Retries = AT_ONCE) -> Any:
        found: list[Any] = []

        async def run(client: Any) -> None:
            try:
                found.append(await doing(client.workspace("w").conversation("c/ü")))
            except Error as error:
                found.append(error)

        transport = httpx.MockTransport(double)
        use(request.param, run, "http://steno.test", "k", transport=transport, retries=retries)
        return found[0]

    return act


def reasoning(talk: Any) -> Any:
    return talk.turns.reasoning("t", "v")


# --- what is read ------------------------------------------------------------------------------


def test_members_of_a_newer_server_are_no_matter(ask: Callable[..., Any]) -> None:
    double = Double(answer(200, PAGE))
    page = ask(double, lambda talk: talk.turns.reasoning("t", "v", before=None, limit=3))
    assert page.to_dict() == {
        "items": [{"model": {"provider_id": "dev"}, "available": True, "text": "Hm."}],
        "has_older": False,
    }
    with pytest.raises(AttributeError):
        page.items[0].text = "no"
    (sent,) = double.asked
    assert sent.url.raw_path == (
        b"/agent_api/v1/workspaces/w/conversations/c%2F%C3%BC/turns/t/variants/v/reasoning?limit=3"
    )
    assert sent.headers["authorization"] == "Bearer k"


def test_a_key_may_be_in_any_script(ask: Callable[..., Any]) -> None:
    double = Double(answer(409))
    ask(double, lambda talk: talk.turns.regenerate("t", idempotency_key="Schlüssel 1"))
    assert dict(double.asked[0].headers.raw)[b"Idempotency-Key"] == "Schlüssel 1".encode()


@pytest.mark.parametrize(
    "document",
    [
        PAGE | {"items": [ITEM | {"available": "true"}]},
        PAGE | {"items": [ITEM | {"available": 1}]},
        PAGE | {"items": [{"model": {}}]},
        PAGE | {"items": [ITEM | {"model": "dev/thinker"}]},
        PAGE | {"items": [ITEM | {"model": None}]},
        PAGE | {"items": [ITEM | {"text": 7}]},
        PAGE | {"items": {}},
        PAGE | {"pagination": {"next_before": None, "has_older": "false"}},
        PAGE | {"pagination": {"next_before": None, "has_older": None}},
        PAGE | {"pagination": {"next_before": None}},
        PAGE | {"pagination": {"next_before": None, "has_older": True}},
        PAGE | {"pagination": []},
        {"items": []},
        [],
        "text",
        b"<html>",
        b"\xff",
        b"",
        b"[" * 100_000,
    ],
)
def test_what_the_contract_does_not_have_is_malformed(
    ask: Callable[..., Any], document: Any
) -> None:
    error = ask(Double(answer(200, document)), reasoning)
    assert isinstance(error, MalformedResponse)
    assert (error.status, error.code) == (200, None)


@pytest.mark.parametrize("status", [201, 202, 204, 206, 302])
def test_another_status_than_the_expected_one_is_malformed(
    ask: Callable[..., Any], status: int
) -> None:
    double = Double(answer(status, PAGE, location="http://elsewhere.test/"))
    error = ask(double, reasoning)
    assert (type(error), error.status, len(double.asked)) == (MalformedResponse, status, 1)


@pytest.mark.parametrize(
    "doing",
    [
        lambda talk: talk.turns.list(),
        lambda talk: talk.inputs.list(),
        lambda talk: talk.events(),
        lambda talk: talk.history(),
        lambda talk: talk.children(),
        lambda talk: talk.fetch(),
        lambda talk: talk.inputs.create("x"),
        lambda talk: talk.fork(side=True),
        lambda talk: talk.compact(),
        lambda talk: talk.turns.regenerate("t"),
    ],
)
@pytest.mark.parametrize("document", [{}, {"pagination": 1, "turn": 1, "task": 1}, None])
def test_no_reader_takes_an_empty_answer(
    ask: Callable[..., Any], doing: Callable[[Any], Any], document: Any
) -> None:
    for status in (200, 201, 202):
        assert isinstance(ask(Double(answer(status, document)), doing), MalformedResponse)


def test_a_list_that_leads_nowhere_ends(ask: Callable[..., Any]) -> None:
    same = PAGE | {"pagination": {"next_before": "x", "has_older": True}}
    double = Double(answer(200, same))

    async def everything(talk: Any) -> Any:
        return [item async for item in talk.turns.iter_reasoning("t", "v")]

    assert isinstance(ask(double, everything), MalformedResponse)
    assert len(double.asked) == 2


# --- errors ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (400, "parameter_invalid", InvalidRequest),
        (401, "unauthorized", Unauthorized),
        (403, "not_authorized", Forbidden),
        (404, "not_found", NotFound),
        (405, "method_not_allowed", InvalidRequest),
        (409, "conversation_busy", Conflict),
        (410, "execution_details_pruned", InvalidRequest),
        (413, "content_too_large", ContentTooLarge),
        (422, "validation_failed", InvalidRequest),
        (429, "rate_limited", RateLimited),
        (500, "internal_error", ServerError),
        (503, "unavailable", ServerError),
    ],
)
def test_an_error_has_its_class_and_what_was_said(
    ask: Callable[..., Any], status: int, code: str, kind: type[Error]
) -> None:
    double = Double(refusal(status, code, current_revision=4))
    error = ask(double, reasoning, Retries(attempts=0))
    assert type(error) is kind
    assert (error.status, error.code, error.message) == (status, code, "No.")
    assert (error.details, error.request_id) == ({"current_revision": 4}, "r7")
    assert str(error) == f"{code}: No."


@pytest.mark.parametrize("document", [b"<html>", b"", [], {"error": "x"}, {"error": {"code": 3}}])
def test_an_error_without_its_envelope_has_the_class_of_its_status(
    ask: Callable[..., Any], document: Any
) -> None:
    error = ask(Double(answer(502, document)), reasoning)
    assert (type(error), error.status, error.code) == (ServerError, 502, None)
    assert error.message == "The server answered 502"


def test_an_input_that_waits_became_nothing(ask: Callable[..., Any]) -> None:
    waiting = Double(refusal(404, "not_found"))
    assert ask(waiting, lambda talk: talk.inputs.materialization("i")) is None
    shut = Double(refusal(403, "not_authorized"))
    assert isinstance(ask(shut, lambda talk: talk.inputs.materialization("i")), Forbidden)


# --- sending again -----------------------------------------------------------------------------

CUT = httpx.RemoteProtocolError("peer closed connection")
PASSING = [CUT, httpx.ConnectError("refused"), httpx.ReadTimeout("silence"), refusal(502, "x"),
           refusal(503, "x"), refusal(504, "x"), answer(429, None, retry_after="0")]  # fmt: skip


@pytest.mark.parametrize("trouble", PASSING)
def test_what_is_safe_is_sent_again(ask: Callable[..., Any], trouble: Any) -> None:
    double = Double(trouble, trouble, answer(200, PAGE))
    assert ask(double, reasoning).items[0].text == "Hm."
    assert len(double.asked) == 3
    never = Double(trouble)
    error = ask(never, reasoning)
    assert isinstance(error, ConnectionFailed | ServerError | RateLimited)
    assert len(never.asked) == 3
    once = Double(trouble)
    ask(once, reasoning, Retries(attempts=0))
    assert len(once.asked) == 1


@pytest.mark.parametrize("trouble", PASSING)
def test_what_is_not_safe_is_sent_once(ask: Callable[..., Any], trouble: Any) -> None:
    for doing in (
        lambda talk: talk.archive(),
        lambda talk: talk.delete(),
        lambda talk: talk.update(title="T"),
        lambda talk: talk.set_access(default="none"),
        lambda talk: talk.runs.deny("r", "k"),
    ):
        double = Double(trouble)
        assert isinstance(ask(double, doing), Error)
        assert len(double.asked) == 1


@pytest.mark.parametrize(
    "refused",
    [refusal(s, "x") for s in (400, 401, 404, 409, 410, 500)] + [answer(200, b"{")],
)
def test_what_will_not_pass_is_not_asked_again(
    ask: Callable[..., Any], refused: httpx.Response
) -> None:
    double = Double(refused)
    assert isinstance(ask(double, reasoning), Error)
    assert len(double.asked) == 1


def test_a_key_makes_a_post_safe_and_stays_the_same(ask: Callable[..., Any]) -> None:
    double = Double(CUT, refusal(409, "idempotency_envelope_mismatch"))
    assert isinstance(ask(double, lambda talk: talk.inputs.create("hello")), Conflict)
    keys = {request.headers["idempotency-key"] for request in double.asked}
    bodies = {request.content for request in double.asked}
    assert (len(double.asked), len(keys), bodies) == (2, 1, {b'{"input":{"text":"hello"}}'})
    ask(double, lambda talk: talk.inputs.create("hello"))
    assert double.asked[-1].headers["idempotency-key"] not in keys
    ask(double, lambda talk: talk.inputs.create("hello", idempotency_key="mine"))
    assert double.asked[-1].headers["idempotency-key"] == "mine"


def test_nobody_waits_longer_than_they_want_to(ask: Callable[..., Any]) -> None:
    double = Double(answer(429, None, retry_after="60"))
    error = ask(double, reasoning)
    assert (type(error), error.retry_after, len(double.asked)) == (RateLimited, 60.0, 1)


def test_a_wait_that_nobody_means_is_none(ask: Callable[..., Any]) -> None:
    for said in ("9" * 400, "1e3", "-1", "soon", "\u0663".encode()):
        busy = httpx.Response(503, headers={b"Retry-After": said})
        assert ask(Double(busy), reasoning, Retries(attempts=0)).retry_after is None


def test_waits_double_up_to_the_longest() -> None:
    retries = Retries(first=1, longest=8)
    for attempt, most in enumerate((1, 2, 4, 8, 8, 8)):
        assert most * 0.75 <= retries.pause(attempt) <= most
    assert Retries().pause(10**6) <= 30


def test_a_body_that_cannot_be_unpacked_is_no_answer(ask: Callable[..., Any]) -> None:
    class Broken(httpx.SyncByteStream, httpx.AsyncByteStream):
        def __iter__(self) -> Any:
            yield b"no gzip"

        async def __aiter__(self) -> Any:
            yield b"no gzip"

    class Packed(Double):
        def __call__(self, request: httpx.Request) -> httpx.Response:
            self.asked.append(request)
            return httpx.Response(200, stream=Broken(), headers={"content-encoding": "gzip"})

    double = Packed()
    assert isinstance(ask(double, reasoning), ConnectionFailed)
