"""What the engine asks of a provider of tools; workers, MCP servers and scripts implement it."""

from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

#: How a call can end (agent-api.md 4.2); `uncertain`: nobody knows whether it took effect.
ToolStatus: TypeAlias = Literal["completed", "failed", "timed_out", "uncertain"]


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool on offer; `parameters` is the JSON schema of its arguments, an object."""

    name: str
    description: str
    parameters: dict[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})


@dataclass(frozen=True, slots=True)
class ToolContext:
    """For whom a call is made. `candidate` and `key` name its task, in every process and again
    after a crash.

    `resumed`: the call was begun before and its end was not seen, so that it may have had its
    effect; the provider picks it up, repeats it, or answers `uncertain`.
    """

    organization_id: int
    conversation_id: int
    candidate: str
    key: str
    tool_call_id: str | None
    resumed: bool = False


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """What came of a call: its output whole, and what of it the model is told (None: the engine
    cuts it to `results.PREVIEW` characters)."""

    status: ToolStatus
    output: str
    preview: str | None = None


class Toolbox(Protocol):
    """A provider of tools."""

    def specs(self, conversation_id: int) -> tuple[ToolSpec, ...]:
        """Return what a conversation's agent may call. Answers at once, without I/O."""
        ...

    async def call(self, name: str, arguments: dict[str, Any], context: ToolContext) -> ToolOutcome:
        """Do it. Cancelled when the turn ends meanwhile; what it raises is the call's failure."""
        ...


class NoTools:
    """The toolbox of a server that has none."""

    def specs(self, conversation_id: int) -> tuple[ToolSpec, ...]:
        """Return nothing."""
        return ()

    async def call(self, name: str, arguments: dict[str, Any], context: ToolContext) -> ToolOutcome:
        """Fail: there is no such tool."""
        return ToolOutcome("failed", f"There is no tool named {name}")
