"""What pydantic-ai's stream says, in our words: deltas, the whole answer, or how it failed."""

import json
from collections.abc import AsyncIterator
from typing import Any

from pydantic_ai import exceptions
from pydantic_ai import messages as wire
from pydantic_ai.models import StreamedResponse

from stenograph.engine.models import native
from stenograph.engine.models.answer import (
    Delta,
    ReasoningDelta,
    Response,
    TextDelta,
    ToolCallArgumentsDelta,
    ToolCallStarted,
)
from stenograph.engine.models.catalog import ModelId
from stenograph.engine.models.failures import FailureKind, ModelFailedError
from stenograph.engine.models.pricing import cost_usd
from stenograph.engine.models.request import Reasoning
from stenograph.engine.models.wires import Sent

#: The first that fits wins, so a kind stands before the kinds it is a case of.
_KINDS: tuple[tuple[type[exceptions.ModelAPIError], FailureKind], ...] = (
    (exceptions.ModelRateLimitError, "rate_limited"),
    (exceptions.ModelQuotaExceededError, "quota_exhausted"),
    (exceptions.ModelUnavailableError, "overloaded"),
    (exceptions.ModelServerError, "server_error"),
    (exceptions.ModelContextWindowExceededError, "context_too_long"),
    (exceptions.ModelAuthenticationError, "unauthorized"),
    (exceptions.ModelRequestRejectedError, "invalid_request"),
    (exceptions.ModelConnectionError, "network"),
    (exceptions.ModelRequestTimeout, "network"),
)


async def deltas(answer: StreamedResponse) -> AsyncIterator[Delta]:
    """The deltas of a stream; a blank line parts two passages, as it does in the whole."""
    calls: dict[int, int] = {}
    spoken = {TextDelta: _Passages(), ReasoningDelta: _Passages()}
    async for event in answer:
        if isinstance(event, wire.PartStartEvent):
            part = event.part
            if isinstance(part, wire.ToolCallPart) and event.index not in calls:
                calls[event.index] = len(calls)
                yield ToolCallStarted(calls[event.index], part.tool_call_id, part.tool_name)
                if part.args:
                    text = native.arguments_text(part.args)
                    yield ToolCallArgumentsDelta(calls[event.index], text)
            elif isinstance(part, wire.TextPart) and part.content:
                yield TextDelta(spoken[TextDelta].joined(event.index, part.content))
            elif isinstance(part, wire.ThinkingPart) and part.content:
                yield ReasoningDelta(spoken[ReasoningDelta].joined(event.index, part.content))
        elif isinstance(event, wire.PartDeltaEvent):
            change = event.delta
            if isinstance(change, wire.ToolCallPartDelta) and change.args_delta:
                text = native.arguments_text(change.args_delta)
                yield ToolCallArgumentsDelta(calls[event.index], text)
            elif isinstance(change, wire.TextPartDelta) and change.content_delta:
                yield TextDelta(spoken[TextDelta].joined(event.index, change.content_delta))
            elif isinstance(change, wire.ThinkingPartDelta) and change.content_delta:
                text = spoken[ReasoningDelta].joined(event.index, change.content_delta)
                yield ReasoningDelta(text)


class _Passages:
    """Remembers which part spoke last, to part it from the next."""

    def __init__(self) -> None:
        self.last: int | None = None

    def joined(self, index: int, text: str) -> str:
        first = self.last is None or self.last == index
        self.last = index
        return text if first else f"\n\n{text}"


def response(answer: wire.ModelResponse, model: ModelId, sent: Sent) -> Response:
    """The whole answer; raises `ModelFailedError` for one that is cut off, refused or empty."""
    message = native.from_native(answer, model)
    usage = native.usage_of(answer.usage, model)
    cost = cost_usd(model, usage)
    known: dict[str, Any] = {"usage": usage, "cost_usd": cost, "request": sent.body}
    if answer.finish_reason == "content_filter":
        raise ModelFailedError("refused", _refusal(answer) or "The model refused", **known)
    if answer.finish_reason is None or answer.state != "complete":
        raise ModelFailedError("interrupted", "The answer broke off before its end", **known)
    if answer.finish_reason == "error":
        raise ModelFailedError("server_error", "The provider ended the answer in error", **known)
    if not message.text and not message.calls:
        raise ModelFailedError("empty_answer", "The model answered nothing", **known)
    reasoning = next((part for part in message.parts if isinstance(part, Reasoning)), None)
    return Response(
        provider_id=model.provider_id,
        model_ref=model.model_ref,
        text=message.text,
        reasoning=reasoning.text if reasoning else "",
        reasoning_trace=reasoning.trace if reasoning else None,
        tool_calls=message.calls,
        usage=usage,
        cost_usd=cost,
        finish_reason="tool_call" if message.calls else answer.finish_reason,
        request=sent.body,
        response=native.as_json(answer),
        llm_call_count=max(sent.count, 1),
    )


def failure(
    problem: Exception, model: ModelId, sent: Sent, answer: StreamedResponse | None
) -> ModelFailedError | None:
    """What `problem` means; None for an exception that is no provider's doing.

    Once a request was sent, whatever is raised comes of what the provider answered: the SDKs trust
    it to have the shape that they expect.
    """
    known: dict[str, Any] = {"request": sent.body or None}
    if answer is not None:
        usage = native.usage_of(answer.usage, model)
        if usage.prompt_tokens is not None:
            known |= {"usage": usage, "cost_usd": cost_usd(model, usage)}
    if isinstance(problem, exceptions.ModelAPIError):
        known["retry_after"] = problem.retry_after
        known["status"] = getattr(problem, "status_code", None)
        return ModelFailedError(_kind(problem, answer), _said(problem), **known)
    if isinstance(problem, exceptions.ContentFilterError):
        return ModelFailedError("refused", str(problem), **known)
    if isinstance(problem, exceptions.UnexpectedModelBehavior):
        # Raised for a stream without one event: the provider said yes and then nothing.
        return ModelFailedError("empty_answer", str(problem), **known)
    if isinstance(problem, exceptions.UserError):
        return ModelFailedError("invalid_request", str(problem), **known)
    if isinstance(problem, OSError):
        # Certificates that cannot be read, a connection that broke: not the record's disk.
        return ModelFailedError("network", str(problem) or type(problem).__name__, **known)
    if sent.count:
        return ModelFailedError("interrupted", f"The answer cannot be read: {problem}", **known)
    return None


def _kind(problem: exceptions.ModelAPIError, answer: StreamedResponse | None) -> FailureKind:
    for category, kind in _KINDS:
        if isinstance(problem, category):
            return "interrupted" if kind == "network" and answer is not None else kind
    if isinstance(problem, exceptions.ModelHTTPError):
        return "invalid_request" if problem.status_code < 500 else "server_error"
    return "interrupted" if answer is not None else "network"


def _said(problem: exceptions.ModelAPIError) -> str:
    """The provider's own sentence, where its error body has one."""
    body = problem.body
    if isinstance(body, str):
        try:
            body = json.loads(body)
        except ValueError:
            return body.strip() or problem.message
    while isinstance(body, dict):
        inner = body.get("error", body.get("Error"))
        said = body.get("message", body.get("Message"))
        if isinstance(said, str) and said:
            return said
        body = inner
    return body if isinstance(body, str) and body else problem.message


def _refusal(answer: wire.ModelResponse) -> str:
    spoken = "\n\n".join(p.content for p in answer.parts if isinstance(p, wire.TextPart))
    details = answer.provider_details or {}
    return spoken or str(details.get("refusal") or details.get("finish_reason") or "")
