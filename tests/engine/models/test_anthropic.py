"""Anthropic's Messages API on loopback (https://docs.anthropic.com/en/api/messages-streaming)."""

import json

import pytest

from engine.models.loopback import KEY, Reply, ask, error, events, fails
from stenograph.engine.models.answer import Usage
from stenograph.engine.models.catalog import ModelId
from stenograph.engine.models.request import (
    Image,
    Message,
    ModelRequest,
    Settings,
    Text,
    Tool,
    ToolResult,
    results,
    system,
    user,
)

MODEL = ModelId("anthropic", "claude-haiku-4-5")
READ = Tool(
    "read_file",
    "Reads a file.",
    {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
)
ASKED = ModelRequest(
    MODEL, (system("Be brief."), user("Read a and b.")), (READ,), Settings(reasoning_enabled=True)
)


def message_start(**usage: int) -> dict[str, object]:
    return {
        "type": "message_start",
        "message": {
            "id": "msg_01",
            "type": "message",
            "role": "assistant",
            "model": "claude-haiku-4-5-20251001",
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": 25, "output_tokens": 1, **usage},
        },
    }


def block(index: int, start: dict[str, object], *deltas: dict[str, object]) -> list[dict]:
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        *({"type": "content_block_delta", "index": index, "delta": it} for it in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def end(reason: str, output_tokens: int = 70) -> list[dict[str, object]]:
    return [
        {
            "type": "message_delta",
            "delta": {"stop_reason": reason, "stop_sequence": None},
            "usage": {"output_tokens": output_tokens},
        },
        {"type": "message_stop"},
    ]


TWO_CALLS = events(
    message_start(cache_read_input_tokens=300, cache_creation_input_tokens=40),
    {"type": "ping"},
    *block(
        0,
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "thinking_delta", "thinking": "Two files, "},
        {"type": "thinking_delta", "thinking": "both at once."},
        {"type": "signature_delta", "signature": "EqQBCgIYAhIM"},
    ),
    *block(
        1,
        {"type": "text", "text": ""},
        {"type": "text_delta", "text": "I read "},
        {"type": "text_delta", "text": "both."},
    ),
    *block(
        2,
        {"type": "tool_use", "id": "toolu_a", "name": "read_file", "input": {}},
        {"type": "input_json_delta", "partial_json": '{"path": '},
        {"type": "input_json_delta", "partial_json": '"a"}'},
    ),
    *block(
        3,
        {"type": "tool_use", "id": "toolu_b", "name": "read_file", "input": {}},
        {"type": "input_json_delta", "partial_json": '{"path": "b"}'},
    ),
    *end("tool_use"),
)


def test_thinking_text_and_parallel_calls_are_heard_as_they_come_and_whole() -> None:
    heard, asked = ask(ASKED, TWO_CALLS)
    assert heard.reasoning == heard.response.reasoning == "Two files, both at once."
    assert heard.text == heard.response.text == "I read both."
    assert heard.calls == [
        ("toolu_a", "read_file", '{"path": "a"}'),
        ("toolu_b", "read_file", '{"path": "b"}'),
    ]
    assert [(it.id, it.parsed()) for it in heard.response.tool_calls] == [
        ("toolu_a", {"path": "a"}),
        ("toolu_b", {"path": "b"}),
    ]
    assert heard.response.finish_reason == "tool_call"
    assert heard.response.llm_call_count == 1
    assert asked.path.split("?")[0] == "/v1/messages"
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.body["stream"] is True
    assert asked.body["thinking"]["type"] == "enabled"
    assert asked.body["tools"][0]["input_schema"]["required"] == ["path"]


def test_the_record_gets_the_request_as_it_was_sent_without_the_key() -> None:
    heard, asked = ask(ASKED, TWO_CALLS)
    assert json.loads(heard.response.request) == asked.body
    assert KEY not in heard.response.request
    recorded = json.loads(heard.response.response)
    assert recorded["provider_response_id"] == "msg_01"
    assert [part["part_kind"] for part in recorded["parts"]] == [
        "thinking",
        "text",
        "tool-call",
        "tool-call",
    ]


def test_prompt_tokens_include_what_the_cache_gave_and_took() -> None:
    heard, _ = ask(ASKED, TWO_CALLS)
    usage = heard.response.usage
    assert usage.prompt_tokens == 25 + 300 + 40
    assert usage.cached_tokens == 300
    assert usage.cache_write_tokens == 40
    assert usage.completion_tokens == 70
    # Haiku 4.5 per million: 1 in, 0.10 cached, 1.25 written to the cache, 5 out.
    cost = (25 * 1 + 300 * 0.10 + 40 * 1.25 + 70 * 5) / 1e6
    assert heard.response.cost_usd == pytest.approx(cost)


def test_the_signature_goes_back_with_the_thinking_it_signs() -> None:
    first, _ = ask(ASKED, TWO_CALLS)
    answered = results(
        ToolResult("toolu_a", "read_file", "alpha"),
        ToolResult("toolu_b", "read_file", "no such file", is_error=True),
    )
    history = (*ASKED.messages, first.response.message, answered)
    _, asked = ask(
        ModelRequest(MODEL, history, (READ,), ASKED.settings),
        events(
            message_start(),
            *block(0, {"type": "text", "text": ""}, {"type": "text_delta", "text": "alpha"}),
            *end("end_turn"),
        ),
    )
    said, outcome = asked.body["messages"][1:]
    assert said["content"][0] == {
        "type": "thinking",
        "thinking": "Two files, both at once.",
        "signature": "EqQBCgIYAhIM",
    }
    assert [it["type"] for it in said["content"]] == ["thinking", "text", "tool_use", "tool_use"]
    assert [(it["tool_use_id"], it["is_error"]) for it in outcome["content"]] == [
        ("toolu_a", False),
        ("toolu_b", True),
    ]


def test_another_providers_trace_is_left_out() -> None:
    first, _ = ask(ASKED, TWO_CALLS)
    foreign = first.response.reasoning_trace.replace('"anthropic"', '"openai"')
    reasoning, *rest = first.response.message.parts
    message = Message("assistant", (type(reasoning)(reasoning.text, foreign), *rest))
    answered = results(*(ToolResult(it.id, it.name, "alpha") for it in first.response.tool_calls))
    _, asked = ask(
        ModelRequest(MODEL, (*ASKED.messages, message, answered), (READ,)),
        events(
            message_start(),
            *block(0, {"type": "text", "text": ""}, {"type": "text_delta", "text": "x"}),
            *end("end_turn"),
        ),
    )
    kinds = [it["type"] for it in asked.body["messages"][1]["content"]]
    assert kinds == ["text", "tool_use", "tool_use"]
    assert "EqQBCgIYAhIM" not in json.dumps(asked.body)


def test_redacted_thinking_has_no_text_and_is_replayed() -> None:
    heard, _ = ask(
        ASKED,
        events(
            message_start(),
            *block(0, {"type": "redacted_thinking", "data": "EmwKAhgBEgy3"}),
            *block(1, {"type": "text", "text": ""}, {"type": "text_delta", "text": "Fine."}),
            *end("end_turn"),
        ),
    )
    assert heard.response.reasoning == ""
    assert "EmwKAhgBEgy3" in heard.response.reasoning_trace
    _, asked = ask(
        ModelRequest(MODEL, (*ASKED.messages, heard.response.message, user("And?")), (READ,)),
        TWO_CALLS,
    )
    assert asked.body["messages"][1]["content"][0] == {
        "type": "redacted_thinking",
        "data": "EmwKAhgBEgy3",
    }


def test_an_image_goes_as_base64() -> None:
    picture = Message("user", (Text("What is it?"), Image("image/png", b"\x89PNG")))
    _, asked = ask(ModelRequest(MODEL, (picture,)), TWO_CALLS)
    content = asked.body["messages"][0]["content"]
    assert content[0]["text"] == "What is it?"
    assert content[1]["source"]["media_type"] == "image/png"
    assert content[1]["source"]["data"] == "iVBORw=="


def test_a_refusal_is_no_answer_and_is_paid_for() -> None:
    refusal = events(
        message_start(),
        *block(0, {"type": "text", "text": ""}, {"type": "text_delta", "text": "I won't."}),
        *end("refusal", 9),
    )
    failed = fails(ASKED, refusal)
    assert failed.kind == "refused"
    assert not failed.retryable
    assert failed.usage == Usage(
        prompt_tokens=25,
        completion_tokens=9,
        cached_tokens=failed.usage.cached_tokens,
        cache_write_tokens=failed.usage.cache_write_tokens,
        details=failed.usage.details,
    )
    assert failed.cost_usd == pytest.approx((25 * 1 + 9 * 5) / 1e6)


def _error(kind: str, message: str) -> dict[str, object]:
    return {"type": "error", "error": {"type": kind, "message": message}}


@pytest.mark.parametrize(
    ("reply", "kind", "retry_after"),
    [
        (error(400, _error("invalid_request_error", "bad")), "invalid_request", None),
        (
            error(
                400,
                _error(
                    "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"
                ),
            ),
            "context_too_long",
            None,
        ),
        (error(401, _error("authentication_error", "invalid x-api-key")), "unauthorized", None),
        (error(404, _error("not_found_error", "model: claude-x")), "invalid_request", None),
        (error(429, _error("rate_limit_error", "slow"), retry_after="17"), "rate_limited", 17.0),
        (error(500, _error("api_error", "oops")), "server_error", None),
        (error(529, _error("overloaded_error", "Overloaded")), "overloaded", None),
        (events(message_start(), _error("overloaded_error", "Overloaded")), "overloaded", None),
    ],
)
def test_the_providers_errors(reply: Reply, kind: str, retry_after: float | None) -> None:
    failed = fails(ASKED, reply)
    assert failed.kind == kind
    assert failed.retry_after == retry_after
    assert failed.request is not None
    assert KEY not in str(failed)


HALF = TWO_CALLS.pieces[:6]


@pytest.mark.parametrize(
    "reply",
    [
        Reply(HALF, cut=True),
        Reply(HALF),
        Reply((*HALF, b'data: {"type": "content_bl'), cut=True),
        Reply((*HALF, b'event: content_block_delta\ndata: {"type": "content_bl\n\n')),
    ],
)
def test_half_a_stream_is_no_answer(reply: Reply) -> None:
    failed = fails(ASKED, reply)
    assert failed.kind == "interrupted"
    assert failed.retryable


@pytest.mark.parametrize(
    "reply",
    [events(message_start(), *end("end_turn", 0)), Reply(())],
)
def test_an_answer_of_nothing(reply: Reply) -> None:
    failed = fails(ASKED, reply)
    assert failed.kind == "empty_answer"
    assert failed.retryable


def test_malformed_arguments_come_through_as_they_were_written() -> None:
    heard, _ = ask(
        ASKED,
        events(
            message_start(),
            *block(
                0,
                {"type": "tool_use", "id": "toolu_a", "name": "read_file", "input": {}},
                {"type": "input_json_delta", "partial_json": '{"path": "a'},
            ),
            *end("max_tokens"),
        ),
    )
    (call,) = heard.response.tool_calls
    assert call.arguments == '{"path": "a'
