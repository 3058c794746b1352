"""A thread's lines, in file order, as steps: which reader reads which line."""

from collections import Counter
from collections.abc import Callable
from typing import TypeAlias

from stenograph.trajectories.atif.format import Step
from stenograph.trajectories.importers.codex import events, inputs, outputs
from stenograph.trajectories.importers.codex.lines import Line
from stenograph.trajectories.importers.codex.thread import Walk, system
from stenograph.trajectories.importers.draft import Origin

__all__ = ["Walk", "read_thread"]

_Reader: TypeAlias = Callable[[Walk, Line], None]


def read_thread(
    lines: list[Line], *, prompter: Origin, copied: range, instructions: str | None
) -> Walk:
    """Read the lines of one thread.

    `prompter` is who its prompts are from, `copied` holds the numbers of lines that were brought
    from another thread, `instructions` is the system prompt.
    """
    items = (line for line in lines if line.type == "response_item")
    said = Counter(pair for line in items for pair in events.sayings(line.kind, line.payload))
    walk = Walk(prompter, said, copied=copied)
    if instructions:
        step = Step(step_id=0, source="system", message=instructions)
        system(walk, lines[0], step, {"kind": "base_instructions"}, "base_instructions")
    for line in lines:
        if copied and line.number == copied.stop:
            _leave_copied(walk)
        _reader(line)(walk, line)
    return walk


def _reader(line: Line) -> _Reader:
    if line.type == "event_msg":
        return _EVENTS.get(line.kind, events.event)
    if line.type == "response_item":
        if line.kind == "message" and line.payload.get("role") == "assistant":
            return outputs.item
        if line.kind.endswith("_call"):
            return outputs.item
        if line.kind.endswith("_output"):
            return outputs.result
        return _ITEMS.get(line.kind, _aside)
    return _LINES.get(line.type, _aside)


def _leave_copied(walk: Walk) -> None:
    """The thread's own life begins; the turn that the other one was in is not continued here."""
    if walk.at_work:
        walk.turn.end = walk.turn.end or ("canceled", "forked")
    walk.running, walk.open = False, None


def _aside(walk: Walk, line: Line) -> None:
    walk.gathered.keep_aside(line.kind)


def _placed(walk: Walk, line: Line) -> None:
    """Read by `session`."""


_LINES: dict[str, _Reader] = {
    "session_meta": _placed,
    "turn_context": events.turn_context,
    "compacted": inputs.compacted,
    "token_usage_record": outputs.record,
    "inter_agent_communication": inputs.from_agent,
}
_ITEMS: dict[str, _Reader] = {
    "message": inputs.message,
    "agent_message": inputs.from_agent,
    "additional_tools": inputs.tools,
    "reasoning": outputs.item,
}
_EVENTS: dict[str, _Reader] = {
    "token_count": outputs.token_count,
    "task_started": events.task_started,
    "turn_started": events.task_started,
    "task_complete": events.task_ended,
    "turn_complete": events.task_ended,
    "turn_aborted": events.turn_aborted,
    "error": events.error,
    "stream_error": events.stream_error,
    "thread_rolled_back": events.rolled_back,
    "thread_name_updated": events.named,
}
