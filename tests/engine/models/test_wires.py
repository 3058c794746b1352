"""Every provider's wire gives the same answer in our words, and fails in the same words."""

import json

import pytest

from engine.models.loopback import KEY, Reply, ask, error, fails
from engine.models.samples import CALLS, SAID, SAMPLES, THOUGHT, Sample
from stenograph.engine.models.request import (
    Message,
    ModelRequest,
    Reasoning,
    Tool,
    ToolCall,
    ToolResult,
    results,
    system,
    user,
)

READ = Tool(
    "read_file", "Reads a file.", {"type": "object", "properties": {"path": {"type": "string"}}}
)


@pytest.fixture(params=list(SAMPLES))
def sample(request: pytest.FixtureRequest) -> Sample:
    return SAMPLES[request.param]()


def asked_of(sample: Sample, *more: Message) -> ModelRequest:
    return ModelRequest(sample.model, (system("Be brief."), user("Read a and b."), *more), (READ,))


def test_the_answer_is_heard_as_it_comes_and_whole(sample: Sample) -> None:
    heard, asked = ask(asked_of(sample), sample.answer, path=sample.path)
    assert heard.text == heard.response.text == SAID
    assert heard.reasoning == heard.response.reasoning == (THOUGHT if sample.reasons else "")
    calls = heard.response.tool_calls
    assert [(it.name, it.parsed()) for it in calls] == [("read_file", it) for _, it in CALLS]
    assert heard.calls == [(it.id, it.name, it.arguments) for it in calls]
    if sample.ids:
        assert [it.id for it in calls] == [call_id for call_id, _ in CALLS]
    assert heard.response.finish_reason == "tool_call"
    assert json.loads(heard.response.request) == asked.body
    assert "Be brief." in heard.response.request
    assert "read_file" in heard.response.request


def test_usage_is_what_the_provider_counted_and_nothing_it_did_not(sample: Sample) -> None:
    heard, _ = ask(asked_of(sample), sample.answer, path=sample.path)
    usage = heard.response.usage
    assert usage.prompt_tokens == sample.usage.prompt_tokens
    assert usage.completion_tokens == sample.usage.completion_tokens
    assert usage.cached_tokens == sample.usage.cached_tokens
    assert usage.cache_write_tokens == sample.usage.cache_write_tokens
    assert usage.reasoning_tokens == sample.usage.reasoning_tokens


def test_a_known_price_is_paid_and_an_unknown_one_is_not_zero(sample: Sample) -> None:
    heard, _ = ask(asked_of(sample), sample.answer, path=sample.path)
    if sample.model.provider_id in {"vllm", "ollama"}:
        assert heard.response.cost_usd is None
    else:
        assert heard.response.cost_usd > 0


def test_the_answer_and_the_results_go_back_in_the_next_round(sample: Sample) -> None:
    first, _ = ask(asked_of(sample), sample.answer, path=sample.path)
    outcomes = (
        ToolResult(it.id, it.name, f"contents of {it.parsed()['path']}")
        for it in first.response.tool_calls
    )
    again = asked_of(sample, first.response.message, results(*outcomes))
    _, asked = ask(again, sample.answer, path=sample.path)
    sent = json.dumps(asked.body)
    assert SAID in sent
    assert sent.index("contents of a") < sent.index("contents of b")


def test_a_call_that_no_provider_takes_is_told_in_a_form_that_each_does(sample: Sample) -> None:
    name = "functions.read \N{WHITE SMILING FACE}" + "x" * 100
    called = Message("assistant", (ToolCall("call00001", name, '{"path": NaN}'),))
    again = asked_of(sample, called, results(ToolResult("call00001", name, "no", is_error=True)))
    _, asked = ask(again, sample.answer, path=sample.path)
    sent = json.dumps(asked.body)
    assert "functions_read__" + "x" * 48 in sent
    assert "x" * 49 not in sent
    assert "INVALID_JSON" in sent
    assert json.loads(sent, parse_constant=pytest.fail) == asked.body


@pytest.mark.parametrize(
    ("name", "native"),
    [
        ("openai_responses", "gAAAAABn"),
        ("google", "Q2hhaW4="),
        ("bedrock", "EqQBCgIYAhIM"),
        ("vllm", THOUGHT),
        ("ollama", THOUGHT),
    ],
)
def test_native_reasoning_is_replayed_until_the_answer_is_edited(name: str, native: str) -> None:
    sample = SAMPLES[name]()
    first, _ = ask(asked_of(sample), sample.answer, path=sample.path)
    message = first.response.message
    outcomes = results(*(ToolResult(it.id, it.name, "x") for it in message.calls))
    _, asked = ask(asked_of(sample, message, outcomes), sample.answer, path=sample.path)
    assert native in json.dumps(asked.body)

    edited = Message(
        "assistant", (Reasoning(THOUGHT, first.response.reasoning_trace), *message.calls)
    )
    _, asked = ask(asked_of(sample, edited, outcomes), sample.answer, path=sample.path)
    assert native not in json.dumps(asked.body)
    assert SAID not in json.dumps(asked.body)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "invalid_request"),
        (401, "unauthorized"),
        (429, "rate_limited"),
        (500, "server_error"),
        (529, "overloaded"),
    ],
)
def test_a_status_is_a_failure_of_one_kind(sample: Sample, status: int, kind: str) -> None:
    reply = error(
        status, {"error": {"message": "no", "type": "t"}, "message": "no"}, retry_after="7"
    )
    failed = fails(asked_of(sample), reply, path=sample.path)
    assert (failed.kind, failed.status) == (kind, status)
    assert failed.retryable == (kind in {"rate_limited", "server_error", "overloaded"})
    if status == 429:
        assert failed.retry_after == 7.0


@pytest.mark.parametrize("cut", [True, False])
def test_half_a_stream_is_interrupted(sample: Sample, cut: bool) -> None:
    pieces = sample.answer.pieces[: len(sample.answer.pieces) // 2]
    half = Reply(pieces, content_type=sample.answer.content_type, cut=cut)
    failed = fails(asked_of(sample), half, path=sample.path)
    assert failed.kind == "interrupted"
    assert failed.retryable


def test_an_empty_body_is_no_answer(sample: Sample) -> None:
    failed = fails(
        asked_of(sample), Reply((), content_type=sample.answer.content_type), path=sample.path
    )
    assert failed.retryable
    assert failed.kind in {"empty_answer", "interrupted"}


SERVER_KEYS = (
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "OPENAI_API_KEY",
    "OPENAI_ORG_ID",
    "OPENAI_PROJECT_ID",
    "GOOGLE_API_KEY",
    "GEMINI_API_KEY",
    "MISTRAL_API_KEY",
    "GROQ_API_KEY",
    "OLLAMA_API_KEY",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_BEARER_TOKEN_BEDROCK",
)


def test_a_request_never_carries_the_keys_of_the_environment(
    sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in SERVER_KEYS:
        monkeypatch.setenv(name, "server-own")
    for name in ("ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "OLLAMA_BASE_URL", "GROQ_BASE_URL"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    heard, asked = ask(asked_of(sample), sample.answer, path=sample.path)
    sent = f"{asked.path} {asked.headers}"
    assert "server-own" not in sent
    assert KEY in sent
    assert KEY not in heard.response.request
