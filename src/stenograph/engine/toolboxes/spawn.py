"""The `spawn` tool: another agent, in a session of its own below this one (agent-api.md 2).

The call waits for the child's first answer, which is its result; several calls of a round have
their children at work at once. A call that is made again finds the child it started.
"""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from stenograph.engine import children
from stenograph.engine.budget import ROUNDS, Budget
from stenograph.engine.children import Answer, Child, NewChild
from stenograph.engine.desk import Desk, Stopped
from stenograph.engine.results import storable
from stenograph.engine.toolbox import ToolContext, ToolOutcome, ToolSpec
from stenograph.engine.work import Work
from stenograph.errors import RefusedError
from stenograph.events.waiting import Waiter

NAME = "spawn"
#: Characters of a label; it is the child's title.
LABEL = 100

SPEC = ToolSpec(
    NAME,
    "Give a part of the work to a subagent: another agent with the same tools, which knows nothing"
    " of this conversation but the prompt. Returns what it reports when it is done. Several calls"
    " at once have several subagents work at the same time.",
    {
        "type": "object",
        "properties": {
            "prompt": {
                "type": "string",
                "minLength": 1,
                "description": "What it has to do, with all that it has to know for that.",
            },
            "label": {
                "type": "string",
                "maxLength": LABEL,
                "description": "A few words for people who watch.",
            },
            "model": {"type": "string", "description": "provider/model; without it, your own."},
            "reasoning_effort": {"type": "string"},
            "budget": {
                "type": "object",
                "description": f"At most what you have left. Without steps_max, {ROUNDS} rounds.",
                "properties": {
                    "steps_max": {"type": "integer", "minimum": 0},
                    "wall_clock_max_ms": {"type": "integer", "minimum": 0},
                    "cost_max_usd": {"type": "number", "minimum": 0},
                },
                "additionalProperties": False,
            },
        },
        "required": ["prompt"],
        "additionalProperties": False,
    },
)

_FAILURES = {
    "failed": "The subagent failed",
    "canceled": "The subagent was canceled",
    "timed_out": "The subagent ran out of time",
}


class _Budget(Budget, frozen=True, forbid_unknown_fields=True):
    """A budget as a model writes it."""


class _Arguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    prompt: Annotated[str, Meta(min_length=1)]
    label: Annotated[str, Meta(max_length=LABEL)] | None = None
    model: str | None = None
    reasoning_effort: str | None = None
    budget: _Budget = _Budget()


class Spawn:
    """The provider of `spawn`."""

    async def specs(self, work: Work) -> tuple[ToolSpec, ...]:
        """Offer it to sessions: a conversation without a session's facts has no child sessions."""
        return (SPEC,) if work.is_session else ()

    async def call(self, name: str, arguments: dict[str, Any], context: ToolContext) -> ToolOutcome:
        """Start the child, or find it, and wait for its answer."""
        try:
            given = msgspec.convert(arguments, _Arguments)
        except msgspec.ValidationError as error:
            return ToolOutcome("failed", f"The arguments of {NAME} are not right: {error}")
        new = NewChild(given.prompt, given.label, given.model, given.reasoning_effort, given.budget)
        desk, candidate = context.desk, context.work.candidate
        assert desk is not None
        try:
            child = await desk.write(
                lambda tx: children.open_child(tx, candidate, context.key, context.task_id, new)
            )
        except RefusedError as error:
            return ToolOutcome("failed", error.message)
        if child is None:
            raise Stopped
        found = await _answer(desk, child)
        outcome = _outcome(found)
        text = storable(outcome.output)
        await desk.write(lambda tx: children.report(tx, candidate, found, text))
        return outcome


async def _answer(desk: Desk, child: Child) -> Answer:
    with Waiter(child.id) as waiter:
        while (found := await desk.read(lambda tx: children.answer(tx, child))) is None:
            await waiter.wait(60)
    return found


def _outcome(found: Answer) -> ToolOutcome:
    if found.status != "completed":
        reason = f": {found.failure_reason}" if found.failure_reason else ""
        return ToolOutcome("failed", f"{_FAILURES[found.status]}{reason}.")
    said = found.content or "(The subagent ended without words.)"
    if found.outcome in (None, "success"):
        return ToolOutcome("completed", said)
    return ToolOutcome("completed", f"(The subagent declares: {found.outcome}.)\n{said}")
