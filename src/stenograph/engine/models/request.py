"""What a model is asked, in words of no provider.

An assistant message's `Reasoning.trace` is the whole message as its provider wrote it (signatures,
encrypted reasoning, thought signatures, item ids), as JSON text: what a later request must replay.
"""

import json
from dataclasses import dataclass, field
from typing import Any, Literal

from stenograph.engine.models.catalog import ModelId
from stenograph.errors import InvalidInputError


@dataclass(frozen=True, slots=True)
class Text:
    """Words."""

    text: str


@dataclass(frozen=True, slots=True)
class Image:
    """A picture, in a person's message or a tool's result."""

    media_type: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Reasoning:
    """What the model thought: `text` to read, `trace` to replay to the provider that wrote it."""

    text: str
    trace: str | None = None


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call as the model wrote it: `arguments` is its text, which need not be JSON at all."""

    id: str
    name: str
    arguments: str

    def parsed(self) -> dict[str, Any]:
        """The arguments as an object; raises `InvalidInputError` `invalid_tool_arguments`."""
        try:
            value = json.loads(self.arguments or "{}")
        except ValueError as problem:
            message = f"The arguments of {self.name} are not JSON: {problem}"
            raise InvalidInputError(message, code="invalid_tool_arguments") from None
        if not isinstance(value, dict):
            message = f"The arguments of {self.name} are not a JSON object"
            raise InvalidInputError(message, code="invalid_tool_arguments")
        return value


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a call gave, or why it failed."""

    call_id: str
    name: str
    output: str
    is_error: bool = False
    images: tuple[Image, ...] = ()


Part = Text | Image | Reasoning | ToolCall | ToolResult
Role = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of the talk: results come from `tool`, reasoning and calls from `assistant`."""

    role: Role
    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        """Its words, of all text parts, a blank line between two."""
        return "\n\n".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """Its tool calls, in the model's order."""
        return tuple(part for part in self.parts if isinstance(part, ToolCall))


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool on offer; `parameters` is the JSON schema of its arguments, an object."""

    name: str
    description: str
    parameters: dict[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})


@dataclass(frozen=True, slots=True)
class Settings:
    """How it is asked. The reasoning members may be intents or effective values alike."""

    reasoning_enabled: bool | None = None
    reasoning_effort: str | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    parallel_tool_calls: bool | None = None
    #: Ask providers that cache prompts only when told to; pays off from the second round of a run.
    cache: bool = False
    #: OpenAI shows reasoning only as a summary, and only to verified organizations.
    reasoning_summary: Literal["auto", "concise", "detailed"] | None = "auto"
    #: Seconds from the request to the end of the answer.
    timeout: float | None = None


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One call of a model. `attempt` counts from 1; only the `dev` models look at it, and at what
    the call is for: to go on with the conversation, or to sum it up."""

    model: ModelId
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    settings: Settings = Settings()
    attempt: int = 1
    purpose: Literal["answer", "summary"] = "answer"


#: How a message begins that no person wrote: a summary, or a note of what was left out.
ASIDE = "[stenograph] "


def aside(text: str) -> Message:
    """What the engine itself has to say to a model in the middle of a conversation."""
    return user(f"{ASIDE}{text}")


def user(text: str) -> Message:
    """A person's message of words alone."""
    return Message("user", (Text(text),))


def system(text: str) -> Message:
    """An instruction."""
    return Message("system", (Text(text),))


def results(*outcomes: ToolResult) -> Message:
    """The results of one round's calls."""
    return Message("tool", outcomes)
