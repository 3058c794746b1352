"""How an answer ends: refused, cut by its length, hung up on, timed out, or never asked for."""

import asyncio
from contextlib import aclosing

import pytest

from engine.models.loopback import KEY, Provider, Reply, ask, error, events, fails, opening
from engine.models.samples import SAID, SAMPLES, THOUGHT
from stenograph.engine.models import stream as streaming
from stenograph.engine.models.answer import ReasoningDelta, TextDelta
from stenograph.engine.models.catalog import ModelId
from stenograph.engine.models.credentials import Credentials
from stenograph.engine.models.failures import ModelFailedError
from stenograph.engine.models.request import ModelRequest, Settings, user
from stenograph.engine.models.stream import stream

GPT = ModelRequest(ModelId("openai-chat", "gpt-4.1"), (user("Hello"),))
GEMINI = ModelRequest(ModelId("google", "gemini-2.5-flash"), (user("Hello"),))
USAGE = {"promptTokenCount": 10, "totalTokenCount": 10}


def chunk(delta: dict[str, object], finish: str | None = None) -> dict[str, object]:
    return {
        "id": "c",
        "object": "chat.completion.chunk",
        "created": 1760000000,
        "model": "gpt-4.1",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }


def test_a_refusal_of_openai_is_refused_in_its_words() -> None:
    reply = events(
        chunk({"role": "assistant", "content": None}),
        chunk({"refusal": "I can't "}),
        chunk({"refusal": "help."}),
        chunk({}, "stop"),
        done=True,
    )
    failed = fails(GPT, reply, "/v1")
    assert (failed.kind, failed.message) == ("refused", "I can't help.")


@pytest.mark.parametrize(
    "payload",
    [
        {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": USAGE},
        {"candidates": [{"finishReason": "SAFETY", "index": 0}], "usageMetadata": USAGE},
    ],
)
def test_a_block_of_gemini_is_refused(payload: dict[str, object]) -> None:
    failed = fails(GEMINI, events(payload))
    assert failed.kind == "refused"
    assert not failed.retryable


def test_an_answer_cut_by_its_length_says_so() -> None:
    heard, asked = ask(
        ModelRequest(GPT.model, GPT.messages, settings=Settings(max_tokens=2, temperature=0.5)),
        events(chunk({"content": "One two"}), chunk({}, "length"), done=True),
        "/v1",
    )
    assert heard.response.text == "One two"
    assert heard.response.finish_reason == "length"
    assert asked.body["max_completion_tokens"] == 2
    assert asked.body["temperature"] == 0.5


def test_an_answer_without_usage_has_none_and_costs_nobody_knows_what() -> None:
    heard, _ = ask(GPT, events(chunk({"content": "Hi"}), chunk({}, "stop"), done=True), "/v1")
    usage = heard.response.usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens) == (None,) * 3
    assert heard.response.cost_usd is None


def test_a_failed_response_of_openai_is_a_failure() -> None:
    base = {"id": "r", "object": "response", "created_at": 1, "model": "gpt-5.1", "output": []}
    broken = {"code": "server_error", "message": "The server had an error"}
    whole = {**base, "status": "failed", "error": broken}
    reply = events({"type": "response.failed", "sequence_number": 0, "response": whole})
    failed = fails(ModelRequest(ModelId("openai", "gpt-5.1"), GPT.messages), reply, "/v1")
    assert failed.kind == "server_error"


def test_too_long_a_prompt_is_told_apart() -> None:
    said = {
        "message": "This model's maximum context length is 128000 tokens.",
        "type": "invalid_request_error",
        "code": "context_length_exceeded",
    }
    failed = fails(GPT, error(400, {"error": said}), "/v1")
    assert failed.kind == "context_too_long"
    assert failed.message == said["message"]


def test_an_exhausted_quota_is_not_waited_for() -> None:
    said = {"message": "You exceeded your quota", "type": "t", "code": "insufficient_quota"}
    failed = fails(GPT, error(429, {"error": said}), "/v1")
    assert failed.kind == "quota_exhausted"
    assert not failed.retryable


def test_a_key_that_the_provider_repeats_is_not_in_the_failure() -> None:
    failed = fails(GPT, error(401, {"error": {"message": f"Incorrect key: {KEY}"}}), "/v1")
    assert failed.kind == "unauthorized"
    assert failed.message == str(failed) == "Incorrect key: [redacted-secret]"


@pytest.mark.parametrize(
    "data",
    ["[1, 2, 3]", "null", "12", '{"id": 3, "choices": "no"}', '{"choices": [{"delta": 5}]}'],
)
def test_an_answer_of_another_shape_is_the_providers_fault(data: str) -> None:
    failed = fails(GPT, Reply((f"data: {data}\n\n".encode(),)), "/v1")
    assert failed.kind == "interrupted"
    assert failed.message.startswith("The answer cannot be read: ")


@pytest.mark.parametrize("limit", ["LONGEST", "MOST_CALLS"])
def test_an_answer_without_end_is_ended(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, limit, 3)
    begun = [{"index": n, "id": f"c{n}", "function": {"name": "f"}} for n in range(4)]
    delta = {"content": "1234"} if limit == "LONGEST" else {"tool_calls": begun}
    failed = fails(GPT, events(chunk(delta), hang=True), "/v1")
    assert failed.kind == "interrupted"
    assert failed.message.startswith("The answer has more than ")


def test_counts_that_no_call_can_have_are_none() -> None:
    sent = {
        "prompt_tokens": 10**13,
        "completion_tokens": 10**25,
        "total_tokens": 3,
        "prompt_tokens_details": {"cached_tokens": 2**63},
        "completion_tokens_details": {"reasoning_tokens": 7, "audio_tokens": 10**20},
    }
    last = {**chunk({}, "stop"), "usage": sent}
    heard, _ = ask(GPT, events(chunk({"content": "Hi"}), last, done=True), "/v1")
    usage = heard.response.usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens) == (None,) * 3
    assert usage.reasoning_tokens == 7
    assert "audio_tokens" not in usage.details


def test_certificates_that_cannot_be_read_are_a_failure_and_no_outage_of_the_record(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere/certificates.pem")

    async def go() -> None:
        async for _ in stream(GPT, Credentials(api_key=KEY, base_url="https://127.0.0.1:9/v1")):
            pass

    with pytest.raises(ModelFailedError) as failed:
        asyncio.run(go())
    assert failed.value.kind == "network"


def test_without_a_key_nothing_is_asked() -> None:
    async def go() -> None:
        async for _ in stream(GPT, Credentials()):
            pass

    with pytest.raises(ModelFailedError) as failed:
        asyncio.run(go())
    assert failed.value.kind == "unauthorized"


def test_a_server_that_is_not_there_is_the_networks_fault() -> None:
    async def go() -> None:
        async for _ in stream(GPT, Credentials(api_key=KEY, base_url="http://127.0.0.1:9/v1")):
            pass

    with pytest.raises(ModelFailedError) as failed:
        asyncio.run(go())
    assert failed.value.kind == "network"
    assert failed.value.retryable


@pytest.mark.parametrize("name", ["openai_responses", "google", "bedrock"])
def test_closing_the_stream_hangs_up(name: str) -> None:
    sample = SAMPLES[name]()
    begun = sample.answer.pieces[: len(sample.answer.pieces) // 2]
    reply = Reply(begun, content_type=sample.answer.content_type, hang=True)
    request = ModelRequest(sample.model, GPT.messages)

    async def go() -> str:
        async with Provider(reply) as provider:
            credentials = opening(request, provider, sample.path)
            async with aclosing(stream(request, credentials)) as answer:
                async for event in answer:
                    first = event
                    break
            await asyncio.wait_for(provider.hung_up.wait(), 10)
            return first

    first = asyncio.run(go())
    assert isinstance(first, ReasoningDelta | TextDelta)
    assert (THOUGHT + SAID).startswith(first.text)


def test_a_request_has_a_deadline() -> None:
    hanging = Reply(events(chunk({"content": "Hi"})).pieces, hang=True)
    request = ModelRequest(GPT.model, GPT.messages, settings=Settings(timeout=0.2))
    failed = fails(request, hanging, "/v1")
    assert failed.kind == "interrupted"
    assert failed.retryable
