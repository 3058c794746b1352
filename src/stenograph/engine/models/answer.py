"""What a model gives: deltas while it speaks, and the whole at the end."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from stenograph.engine.models.request import Message, Part, Reasoning, Text, ToolCall


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More of the answer's text."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """More of the reasoning's text."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCallStarted:
    """A call began; `index` counts the answer's calls from 0."""

    index: int
    id: str
    name: str


@dataclass(frozen=True, slots=True)
class ToolCallArgumentsDelta:
    """More of the text of a call's arguments."""

    index: int
    text: str


Delta = TextDelta | ReasoningDelta | ToolCallStarted | ToolCallArgumentsDelta


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as atif.md 6 counts them; None is unknown, and 0 is the provider's own zero.

    `prompt_tokens` includes what was read from and written to the cache, `completion_tokens` the
    reasoning; `details` keeps the provider's other counts under its own names.
    """

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None
    details: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Response:
    """A whole answer: the deltas of each kind, joined, are its texts.

    `finish_reason` is `stop`, `length` or `tool_call`. `request` is the JSON that went to the
    provider and `response` the answer put together again as JSON: the events of the wire repeat a
    frame around every few letters, some thirty times the text, and are not kept. `cost_usd` is
    None when nobody knows it, and 0 only for a model that is free.
    """

    provider_id: str
    model_ref: str
    text: str
    reasoning: str
    reasoning_trace: str | None
    tool_calls: tuple[ToolCall, ...]
    usage: Usage
    cost_usd: float | None
    finish_reason: str
    request: str
    response: str
    llm_call_count: int = 1

    @property
    def message(self) -> Message:
        """The answer as a message of the next request."""
        parts: list[Part] = []
        if self.reasoning or self.reasoning_trace:
            parts.append(Reasoning(self.reasoning, self.reasoning_trace))
        if self.text:
            parts.append(Text(self.text))
        return Message("assistant", (*parts, *self.tool_calls))
