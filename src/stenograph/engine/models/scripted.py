"""The `dev` models: they play scenes from a readable file, and need no key and no network.

Which scene is played stands in the person's message: `[dev:NAME]` names one, `[dev:call TOOL]`
asks for a call, and a fenced `dev-scene` block is a scene of its own; otherwise it is the model's
`answer`. The same request gives the same answer, to the last token count: everything is read off
the request, so a run that is continued after a crash goes on in the right round.
"""

import asyncio
import json
from collections.abc import AsyncGenerator
from hashlib import blake2s
from pathlib import Path

import msgspec

from stenograph.engine.models.answer import (
    Delta,
    ReasoningDelta,
    Response,
    TextDelta,
    ToolCallArgumentsDelta,
    ToolCallStarted,
    Usage,
)
from stenograph.engine.models.catalog import effective
from stenograph.engine.models.failures import ModelFailedError
from stenograph.engine.models.request import Message, ModelRequest, Reasoning, ToolCall
from stenograph.engine.models.scenes import Round, check_length, next_round, summary
from stenograph.engine.results import storable


async def play(
    request: ModelRequest, script: Path | None = None
) -> AsyncGenerator[Delta | Response, None]:
    """Answer as `stream.stream` does; the scenes of the file `script` win over the shipped ones."""
    if request.purpose == "summary":
        round_, window = summary(request.messages[-1].text, request.model.model_ref, script)
    else:
        round_, window = next_round(request.messages, request.model.model_ref, script)
    _check_replayed(request.messages)
    thinks = effective(
        request.model, request.settings.reasoning_enabled, request.settings.reasoning_effort
    )
    # Signed as it will be kept.
    think = storable(round_.think) if thinks.reasoning_enabled else ""
    check_length(len(round_.say) * round_.repeat)
    said = round_.say * round_.repeat
    asked = msgspec.json.encode(request).decode()
    calls = _calls(round_, asked)
    events = [
        *(ReasoningDelta(piece) for piece in _pieces(think)),
        *(TextDelta(piece) for piece in _pieces(said)),
        *_call_deltas(calls),
    ]
    usage = _usage(request, think, said, calls)
    if usage.prompt_tokens is not None and usage.prompt_tokens > window:
        raise ModelFailedError(
            "context_too_long",
            f"{usage.prompt_tokens} tokens are more than {request.model} takes: {window}",
            request=asked,
        )
    fails = round_.fail if round_.fail and request.attempt <= round_.fail.times else None
    for event in events[: len(events) // 2] if fails else events:
        yield event
        await asyncio.sleep(round_.pause_ms / 1000)
    if fails:
        raise ModelFailedError(
            fails.kind,
            f"The scene asks for the failure {fails.kind}",
            retry_after=fails.retry_after,
            usage=usage if events else None,
            cost_usd=0.0,
            request=asked,
        )
    if not said and not calls:
        raise ModelFailedError("empty_answer", "The model answered nothing", request=asked)
    finish = "tool_call" if calls else round_.finish
    yield Response(
        provider_id=request.model.provider_id,
        model_ref=request.model.model_ref,
        text=said,
        reasoning=think,
        reasoning_trace=_trace(think) if think else None,
        tool_calls=calls,
        usage=usage,
        cost_usd=0.0,
        finish_reason=finish,
        request=asked,
        response=msgspec.json.encode(
            {"think": think, "say": said, "call": calls, "finish": finish, "usage": usage}
        ).decode(),
    )


def _calls(round_: Round, asked: str) -> tuple[ToolCall, ...]:
    """The calls, with ids that no other request of the conversation gives."""
    stem = blake2s(asked.encode(), digest_size=6).hexdigest()
    return tuple(
        ToolCall(
            f"call_{stem}_{index}",
            call.tool,
            json.dumps(call.arguments, ensure_ascii=False) if call.raw is None else call.raw,
        )
        for index, call in enumerate(round_.call)
    )


def _call_deltas(calls: tuple[ToolCall, ...]) -> list[Delta]:
    deltas: list[Delta] = []
    for index, call in enumerate(calls):
        deltas.append(ToolCallStarted(index, call.id, call.name))
        deltas.extend(ToolCallArgumentsDelta(index, text) for text in _pieces(call.arguments))
    return deltas


def _pieces(text: str) -> list[str]:
    """Cut a text as a stream would: every few letters, and a huge one into some 400 pieces."""
    size = max(24, len(text) // 400)
    return [text[at : at + size] for at in range(0, len(text), size)]


def _tokens(text: str) -> int:
    """A token is four bytes here, begun ones counted."""
    return (len(text.encode()) + 3) // 4


def _usage(request: ModelRequest, think: str, said: str, calls: tuple[ToolCall, ...]) -> Usage:
    """Count as a provider with a cache does: what stood before the last answer is a hit."""
    sizes = [_tokens(msgspec.json.encode(message).decode()) for message in request.messages]
    tools = _tokens(msgspec.json.encode(request.tools).decode()) if request.tools else 0
    answers = [at for at, it in enumerate(request.messages) if it.role == "assistant"]
    written = sum(_tokens(f"{call.name}{call.arguments}") for call in calls)
    return Usage(
        prompt_tokens=tools + sum(sizes),
        completion_tokens=_tokens(think) + _tokens(said) + written,
        cached_tokens=tools + sum(sizes[: answers[-1]]) if answers else 0,
        cache_write_tokens=0,
        reasoning_tokens=_tokens(think),
    )


def _trace(think: str) -> str:
    signature = blake2s(think.encode(), digest_size=16, key=b"dev/thinker").hexdigest()
    return json.dumps({"provider_id": "dev", "signature": signature})


def _check_replayed(messages: tuple[Message, ...]) -> None:
    """Refuse reasoning that was changed since it was signed, as the real providers do."""
    for message in messages:
        for part in message.parts:
            if not isinstance(part, Reasoning) or part.trace is None:
                continue
            if '"provider_id": "dev"' in part.trace and part.trace != _trace(part.text):
                raise ModelFailedError("invalid_request", "A reasoning's signature does not fit it")
