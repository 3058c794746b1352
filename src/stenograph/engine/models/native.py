"""Our messages as pydantic-ai's, and its answers as ours.

A trace is JSON: the provider's id and the answer as pydantic-ai holds it. Replayed to the same
provider it goes back part for part, so that signatures and encrypted reasoning are accepted; to
another one, or when the message was edited since, its text and calls go alone.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from pydantic_ai import messages as wire
from pydantic_ai.tools import ToolDefinition

from stenograph.engine.models.answer import Usage
from stenograph.engine.models.catalog import ModelId
from stenograph.engine.models.request import (
    Image,
    Message,
    Reasoning,
    Text,
    Tool,
    ToolCall,
    ToolResult,
)

#: What a replay needs of an answer: its parts, and whose keys verify what they carry.
_REPLAYED = ("kind", "parts", "model_name", "provider_name", "provider_url", "canonical_system")
#: What the providers take for a tool's name; a model may have called another, and the call is told
#: to them again with every later request.
_STRANGE = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_NAME = 64
#: No call has so many tokens: a count beyond this, or below 0, is none.
_MOST_TOKENS = 10**12
#: Where the providers count reasoning when it is not in a field of its own.
_REASONING_DETAILS = ("reasoning_tokens", "thoughts_tokens", "thinking_tokens")


def to_native(messages: Iterable[Message], model: ModelId) -> list[wire.ModelMessage]:
    """Write a history for `model`; what is said between two answers becomes one request."""
    history: list[wire.ModelMessage] = []
    waiting: list[wire.ModelRequestPart] = []
    for message in messages:
        if message.role != "assistant":
            waiting.extend(_request_parts(message))
            continue
        if waiting:
            history.append(wire.ModelRequest(parts=waiting))
            waiting = []
        history.append(_replayed(message, model) or _plain(message))
    if waiting:
        history.append(wire.ModelRequest(parts=waiting))
    return history


def tool_definitions(tools: Iterable[Tool]) -> list[ToolDefinition]:
    """Write the tools on offer."""
    return [
        ToolDefinition(
            name=tool.name, description=tool.description, parameters_json_schema=tool.parameters
        )
        for tool in tools
    ]


def replays(message: Message, model: ModelId) -> bool:
    """Whether the message's reasoning goes to `model` as it came; if not, it is left out."""
    return _replayed(message, model) is not None


def from_native(answer: wire.ModelResponse, model: ModelId) -> Message:
    """Read an answer: its reasoning with the trace first, then text, then calls."""
    reasoning = "\n\n".join(
        part.content
        for part in answer.parts
        if isinstance(part, wire.ThinkingPart) and part.content
    )
    text = "\n\n".join(
        part.content for part in answer.parts if isinstance(part, wire.TextPart) and part.content
    )
    trace = _trace(answer, model)
    return Message(
        "assistant",
        (
            *((Reasoning(reasoning, trace),) if reasoning or trace else ()),
            *((Text(text),) if text else ()),
            *_calls(answer.parts),
        ),
    )


def usage_of(usage: Any, model: ModelId) -> Usage:
    """Read token counts; a count that the provider did not send is None.

    pydantic-ai sets a count only when it was sent and answers 0 for the others, so the instance's
    own members tell the two apart.
    """
    if usage.unmeasured_requests:
        return Usage()
    sent = _counts(vars(usage))
    details = _counts(usage.details)
    # Gemini counts no cache writes; the zero is pydantic-ai's, from adding up its chunks.
    gemini = model.provider.protocol == "google"
    reasoning = sent.get("output_reasoning_tokens")
    if reasoning is None:
        reasoning = next((details[name] for name in _REASONING_DETAILS if name in details), None)
    return Usage(
        prompt_tokens=sent.get("input_tokens"),
        completion_tokens=sent.get("output_tokens"),
        cached_tokens=sent.get("cache_read_tokens"),
        cache_write_tokens=None if gemini else sent.get("cache_write_tokens"),
        reasoning_tokens=reasoning,
        details=details,
    )


def _counts(given: Mapping[str, Any]) -> dict[str, int]:
    return {
        name: count
        for name, count in given.items()
        if isinstance(count, int) and 0 <= count <= _MOST_TOKENS
    }


def as_json(answer: wire.ModelResponse) -> str:
    """The answer as JSON text, with the provider's own ids, details and counts."""
    dumped = _dumped(answer)
    dumped["usage"] = dict(answer.usage.details)
    return json.dumps(dumped, ensure_ascii=False)


def _request_parts(message: Message) -> list[wire.ModelRequestPart]:
    if message.role == "system":
        return [wire.SystemPromptPart(message.text)]
    if message.role == "tool":
        return [_result(part) for part in message.parts if isinstance(part, ToolResult)]
    content: list[wire.UserContent] = [
        part.text
        if isinstance(part, Text)
        else wire.BinaryContent(part.data, media_type=part.media_type)
        for part in message.parts
        if isinstance(part, Text | Image)
    ]
    alone = content[0] if len(content) == 1 and isinstance(content[0], str) else None
    return [wire.UserPromptPart(alone if alone is not None else content)]


def _result(part: ToolResult) -> wire.ToolReturnPart:
    images = [wire.BinaryContent(image.data, media_type=image.media_type) for image in part.images]
    return wire.ToolReturnPart(
        tool_name=_name(part.name),
        content=[part.output, *images] if images else part.output,
        tool_call_id=part.call_id,
        outcome="failed" if part.is_error else "success",
    )


def _plain(message: Message) -> wire.ModelResponse:
    text = message.text
    return wire.ModelResponse(
        parts=[
            *([wire.TextPart(text)] if text else []),
            *(
                wire.ToolCallPart(_name(call.name), _arguments(call.arguments), call.id)
                for call in message.calls
            ),
        ]
    )


def _replayed(message: Message, model: ModelId) -> wire.ModelResponse | None:
    trace = next((p.trace for p in message.parts if isinstance(p, Reasoning) and p.trace), None)
    if trace is None:
        return None
    try:
        value = json.loads(trace)
        if value["provider_id"] != model.provider_id:
            return None
        [answer] = wire.ModelMessagesTypeAdapter.validate_python([value["answer"]])
    except (ValueError, KeyError, TypeError):
        return None
    if not isinstance(answer, wire.ModelResponse):
        return None
    written = from_native(answer, model)
    if written.text != message.text or written.calls != message.calls:
        return None
    for part in answer.parts:
        if isinstance(part, wire.ToolCallPart):
            part.tool_name = _name(part.tool_name)
    return answer


def _name(name: str) -> str:
    return _STRANGE.sub("_", name)[:_LONGEST_NAME] or "_"


def _arguments(written: str) -> str | dict[str, Any]:
    """Arguments for a provider, which takes an object: pydantic-ai would let `NaN` pass for one."""
    try:
        if not written or isinstance(msgspec.json.decode(written), dict):
            return written
    except (msgspec.DecodeError, RecursionError):
        pass
    return {wire.INVALID_JSON_KEY: written}


def _trace(answer: wire.ModelResponse, model: ModelId) -> str | None:
    native = any(
        isinstance(part, wire.ThinkingPart)
        or getattr(part, "id", None)
        or getattr(part, "provider_details", None)
        for part in answer.parts
    )
    if not native:
        return None
    kept = {name: value for name, value in _dumped(answer).items() if name in _REPLAYED}
    return json.dumps({"provider_id": model.provider_id, "answer": kept}, ensure_ascii=False)


def _dumped(answer: wire.ModelResponse) -> dict[str, Any]:
    dumped: list[dict[str, Any]] = wire.ModelMessagesTypeAdapter.dump_python(
        [answer], mode="json", exclude_none=True
    )
    return dumped[0]


def _calls(parts: Sequence[wire.ModelResponsePart]) -> list[ToolCall]:
    return [
        ToolCall(part.tool_call_id, part.tool_name, arguments_text(part.args))
        for part in parts
        if isinstance(part, wire.ToolCallPart)
    ]


def arguments_text(arguments: object) -> str:
    """A call's arguments as text: as the model wrote them, or as JSON where it gave an object."""
    if isinstance(arguments, str):
        return arguments
    return json.dumps(arguments or {}, ensure_ascii=False)
