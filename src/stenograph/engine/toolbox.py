"""What the engine asks of a provider of tools; workers, MCP servers and scripts implement it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

if TYPE_CHECKING:
    # A worker loads this file, and nothing of the record.
    from stenograph.engine.desk import Desk
    from stenograph.engine.work import Work

#: How a call can end (agent-api.md 4.2); `uncertain`: nobody knows whether it took effect.
ToolStatus: TypeAlias = Literal["completed", "failed", "timed_out", "uncertain"]


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool on offer; `parameters` is the JSON schema of its arguments, an object."""

    name: str
    description: str
    parameters: dict[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})

    @property
    def definition(self) -> dict[str, Any]:
        """The definition in OpenAI's shape, the one of ATIF's `tool_definitions`."""
        about = {"name": self.name, "description": self.description, "parameters": self.parameters}
        return {"type": "function", "function": about}


@dataclass(frozen=True, slots=True)
class ToolContext:
    """For what a call is made. The candidate and `key` name its task, in every process and again
    after a crash; `task_id` is its row.

    `resumed`: the call was begun before and its end was not seen, so that it may have had its
    effect; the provider picks it up, repeats it, or answers `uncertain`. `desk`: for providers that
    are a part of the engine.
    """

    work: Work
    key: str
    task_id: int
    tool_call_id: str | None
    resumed: bool = False
    desk: Desk | None = None


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """What came of a call: its output whole, and what of it the model is told (None: the engine
    cuts it to `results.PREVIEW` characters)."""

    status: ToolStatus
    output: str
    preview: str | None = None


class Toolbox(Protocol):
    """A provider of tools."""

    async def specs(self, work: Work) -> tuple[ToolSpec, ...]:
        """Return what the agent that answers may call."""
        ...

    async def call(self, name: str, arguments: dict[str, Any], context: ToolContext) -> ToolOutcome:
        """Do it. Cancelled when the turn ends meanwhile; what it raises is the call's failure."""
        ...


class Together:
    """Several providers as one; of two tools with one name, the earlier provider's counts."""

    def __init__(self, *boxes: Toolbox) -> None:
        self._boxes = boxes

    async def specs(self, work: Work) -> tuple[ToolSpec, ...]:
        """Return what all of them offer."""
        return tuple(spec for spec, _ in (await self._offers(work)).values())

    async def call(self, name: str, arguments: dict[str, Any], context: ToolContext) -> ToolOutcome:
        """Hand the call to who offers it."""
        found = (await self._offers(context.work)).get(name)
        if found is None:
            return ToolOutcome("failed", f"The tool {name} is not on offer any more")
        return await found[1].call(name, arguments, context)

    async def _offers(self, work: Work) -> dict[str, tuple[ToolSpec, Toolbox]]:
        offers: dict[str, tuple[ToolSpec, Toolbox]] = {}
        for box in self._boxes:
            for spec in await box.specs(work):
                offers.setdefault(spec.name, (spec, box))
        return offers
