"""One answer in the wire format of each provider: reasoning, text, two calls at once, usage.

Shapes are those of the providers' streaming references: OpenAI Responses and Chat Completions,
Gemini generateContent, Mistral and Groq chat, Bedrock ConverseStream.
"""

import json
import struct
import zlib
from dataclasses import dataclass
from typing import Any

from engine.models.loopback import Reply, events
from stenograph.engine.models.answer import Usage
from stenograph.engine.models.catalog import ModelId

THOUGHT = "Two files, both at once."
SAID = "I read both."
CALLS = [("call_a", {"path": "a"}), ("call_b", {"path": "b"})]


@dataclass(frozen=True)
class Sample:
    """`answer` is played; `ids`: the wire has ids for calls; `path`: that of its base URL."""

    model: ModelId
    answer: Reply
    usage: Usage
    path: str = ""
    ids: bool = True
    reasons: bool = True


def openai_responses() -> Sample:
    def added(index: int, item: dict[str, Any]) -> dict[str, Any]:
        return {"type": "response.output_item.added", "output_index": index, "item": item}

    def done(index: int, item: dict[str, Any]) -> dict[str, Any]:
        return {"type": "response.output_item.done", "output_index": index, "item": item}

    reasoning = {
        "id": "rs_1",
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": THOUGHT}],
        "encrypted_content": "gAAAAABn",
    }
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": SAID, "annotations": []}],
    }
    calls = [
        {
            "id": f"fc_{call_id}",
            "type": "function_call",
            "status": "completed",
            "call_id": call_id,
            "name": "read_file",
            "arguments": json.dumps(arguments),
        }
        for call_id, arguments in CALLS
    ]
    base = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1760000000,
        "model": "gpt-5.1-2025-11-13",
        "status": "in_progress",
        "output": [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "error": None,
        "incomplete_details": None,
    }
    usage = {
        "input_tokens": 365,
        "input_tokens_details": {"cached_tokens": 300},
        "output_tokens": 70,
        "output_tokens_details": {"reasoning_tokens": 32},
        "total_tokens": 435,
    }
    stream: list[dict[str, Any]] = [
        {"type": "response.created", "response": base},
        {"type": "response.in_progress", "response": base},
        added(0, {**reasoning, "summary": [], "encrypted_content": ""}),
        {
            "type": "response.reasoning_summary_part.added",
            "item_id": "rs_1",
            "output_index": 0,
            "summary_index": 0,
            "part": {"type": "summary_text", "text": ""},
        },
        *(
            {
                "type": "response.reasoning_summary_text.delta",
                "item_id": "rs_1",
                "output_index": 0,
                "summary_index": 0,
                "delta": piece,
            }
            for piece in (THOUGHT[:11], THOUGHT[11:])
        ),
        done(0, reasoning),
        added(1, {**message, "status": "in_progress", "content": []}),
        {
            "type": "response.content_part.added",
            "item_id": "msg_1",
            "output_index": 1,
            "content_index": 0,
            "part": {"type": "output_text", "text": "", "annotations": []},
        },
        *(
            {
                "type": "response.output_text.delta",
                "item_id": "msg_1",
                "output_index": 1,
                "content_index": 0,
                "delta": piece,
                "logprobs": [],
            }
            for piece in (SAID[:6], SAID[6:])
        ),
        done(1, message),
    ]
    for index, call in enumerate(calls, 2):
        stream.append(added(index, {**call, "status": "in_progress", "arguments": ""}))
        stream.append(
            {
                "type": "response.function_call_arguments.delta",
                "item_id": call["id"],
                "output_index": index,
                "delta": call["arguments"],
            }
        )
        stream.append(done(index, call))
    whole = {
        **base,
        "status": "completed",
        "output": [reasoning, message, *calls],
        "usage": usage,
    }
    stream.append({"type": "response.completed", "response": whole})
    numbered = ({**it, "sequence_number": number} for number, it in enumerate(stream))
    return Sample(
        ModelId("openai", "gpt-5.1"),
        events(*numbered),
        Usage(365, 70, 300, None, 32),
        path="/v1",
    )


def _chat_chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1760000000,
        "model": "a-model",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        **more,
    }


def _chat_calls() -> list[dict[str, Any]]:
    chunks = []
    for index, (call_id, arguments) in enumerate(CALLS):
        text = json.dumps(arguments)
        begun = {"name": "read_file", "arguments": ""}
        chunks.append({"index": index, "id": call_id, "type": "function", "function": begun})
        chunks += [
            {"index": index, "function": {"arguments": piece}} for piece in (text[:4], text[4:])
        ]
    return [_chat_chunk({"tool_calls": [chunk]}) for chunk in chunks]


def openai_chat() -> Sample:
    usage = {
        "prompt_tokens": 365,
        "completion_tokens": 70,
        "total_tokens": 435,
        "prompt_tokens_details": {"cached_tokens": 300, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }
    return Sample(
        ModelId("openai-chat", "gpt-4.1"),
        events(
            _chat_chunk({"role": "assistant", "content": ""}),
            _chat_chunk({"content": SAID[:6]}),
            _chat_chunk({"content": SAID[6:]}),
            *_chat_calls(),
            _chat_chunk({}, "tool_calls"),
            {**_chat_chunk({}), "choices": [], "usage": usage},
            done=True,
        ),
        Usage(365, 70, 300, None, 0),
        path="/v1",
        reasons=False,
    )


def _own_server(provider: str, model_ref: str, field: str) -> Sample:
    """Chat Completions of one's own server: reasoning in a field, and no count of the cache."""
    usage = {"prompt_tokens": 365, "completion_tokens": 70, "total_tokens": 435}
    return Sample(
        ModelId(provider, model_ref),
        events(
            _chat_chunk({"role": "assistant", "content": ""}),
            _chat_chunk({field: THOUGHT[:11]}),
            _chat_chunk({field: THOUGHT[11:]}),
            _chat_chunk({"content": SAID}),
            *_chat_calls(),
            _chat_chunk({}, "tool_calls"),
            {**_chat_chunk({}), "choices": [], "usage": usage},
            done=True,
        ),
        Usage(365, 70, None, None, None),
        path="/v1",
    )


def vllm() -> Sample:
    return _own_server("vllm", "my/qwen", "reasoning_content")


def ollama() -> Sample:
    return _own_server("ollama", "qwen3:8b", "reasoning")


def groq() -> Sample:
    usage = {
        "queue_time": 0.1,
        "prompt_tokens": 365,
        "prompt_time": 0.01,
        "completion_tokens": 70,
        "completion_time": 0.1,
        "total_tokens": 435,
        "total_time": 0.11,
        "prompt_tokens_details": {"cached_tokens": 300},
        "completion_tokens_details": {"reasoning_tokens": 32},
    }
    return Sample(
        ModelId("groq", "openai/gpt-oss-120b"),
        events(
            _chat_chunk({"role": "assistant", "content": ""}, x_groq={"id": "req_1"}),
            _chat_chunk({"reasoning": THOUGHT[:11]}),
            _chat_chunk({"reasoning": THOUGHT[11:]}),
            _chat_chunk({"content": SAID}),
            *_chat_calls(),
            _chat_chunk({}, "tool_calls", x_groq={"id": "req_1", "usage": usage}, usage=usage),
            done=True,
        ),
        Usage(365, 70, 300, None, 32),
    )


def mistral() -> Sample:
    calls = [
        {
            "id": call_id,
            "index": index,
            "function": {"name": "read_file", "arguments": json.dumps(arguments)},
        }
        for index, (call_id, arguments) in enumerate(CALLS)
    ]
    thinking = [{"type": "thinking", "thinking": [{"type": "text", "text": THOUGHT}]}]
    usage = {"prompt_tokens": 365, "completion_tokens": 70, "total_tokens": 435}
    return Sample(
        ModelId("mistral", "magistral-medium-latest"),
        events(
            _chat_chunk({"role": "assistant", "content": ""}),
            _chat_chunk({"content": thinking}),
            _chat_chunk({"content": SAID[:6]}),
            _chat_chunk({"content": SAID[6:]}),
            _chat_chunk({"content": "", "tool_calls": calls}, "tool_calls", usage=usage),
            done=True,
        ),
        Usage(365, 70, None, None, None),
    )


def google() -> Sample:
    def chunk(*parts: dict[str, Any], finish: str | None = None, **more: Any) -> dict[str, Any]:
        candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
        if finish:
            candidate["finishReason"] = finish
        return {
            "candidates": [candidate],
            "modelVersion": "gemini-2.5-flash",
            "responseId": "resp-g1",
            **more,
        }

    usage = {
        "promptTokenCount": 365,
        "cachedContentTokenCount": 300,
        "candidatesTokenCount": 38,
        "thoughtsTokenCount": 32,
        "totalTokenCount": 435,
    }
    calls = [{"functionCall": {"name": "read_file", "args": arguments}} for _, arguments in CALLS]
    calls[0]["thoughtSignature"] = "Q2hhaW4="
    return Sample(
        ModelId("google", "gemini-2.5-flash"),
        events(
            chunk({"text": THOUGHT[:11], "thought": True}),
            chunk({"text": THOUGHT[11:], "thought": True}),
            chunk({"text": SAID}),
            chunk(*calls),
            chunk({"text": ""}, finish="STOP", usageMetadata=usage),
        ),
        Usage(365, 70, 300, None, 32),
        ids=False,
    )


def aws_event(kind: str, payload: dict[str, Any], message_type: str = "event") -> bytes:
    """A frame of application/vnd.amazon.eventstream: prelude, headers, payload, two CRCs."""
    name = ":event-type" if message_type == "event" else ":exception-type"
    pairs = ((name, kind), (":content-type", "application/json"), (":message-type", message_type))
    headers = b"".join(
        struct.pack(
            f">B{len(key)}sBH{len(value)}s", len(key), key.encode(), 7, len(value), value.encode()
        )
        for key, value in pairs
    )
    body = json.dumps(payload).encode()
    prelude = struct.pack(">II", 16 + len(headers) + len(body), len(headers))
    framed = prelude + struct.pack(">I", zlib.crc32(prelude)) + headers + body
    return framed + struct.pack(">I", zlib.crc32(framed))


def bedrock() -> Sample:
    def delta(index: int, value: dict[str, Any]) -> bytes:
        return aws_event("contentBlockDelta", {"contentBlockIndex": index, "delta": value})

    def stop(index: int) -> bytes:
        return aws_event("contentBlockStop", {"contentBlockIndex": index})

    pieces = [
        aws_event("messageStart", {"role": "assistant"}),
        delta(0, {"reasoningContent": {"text": THOUGHT[:11]}}),
        delta(0, {"reasoningContent": {"text": THOUGHT[11:]}}),
        delta(0, {"reasoningContent": {"signature": "EqQBCgIYAhIM"}}),
        stop(0),
        delta(1, {"text": SAID[:6]}),
        delta(1, {"text": SAID[6:]}),
        stop(1),
    ]
    for index, (call_id, arguments) in enumerate(CALLS, 2):
        start = {"toolUse": {"toolUseId": call_id, "name": "read_file"}}
        pieces += [
            aws_event("contentBlockStart", {"contentBlockIndex": index, "start": start}),
            delta(index, {"toolUse": {"input": json.dumps(arguments)}}),
            stop(index),
        ]
    usage = {
        "inputTokens": 25,
        "outputTokens": 70,
        "totalTokens": 435,
        "cacheReadInputTokens": 300,
        "cacheWriteInputTokens": 40,
    }
    pieces += [
        aws_event("messageStop", {"stopReason": "tool_use"}),
        aws_event("metadata", {"usage": usage, "metrics": {"latencyMs": 500}}),
    ]
    return Sample(
        ModelId("bedrock", "us.anthropic.claude-haiku-4-5-20251001-v1:0"),
        Reply(tuple(pieces), content_type="application/vnd.amazon.eventstream"),
        Usage(365, 70, 300, 40, None),
    )


SAMPLES = {
    make.__name__: make
    for make in (openai_responses, openai_chat, vllm, ollama, groq, mistral, google, bedrock)
}
