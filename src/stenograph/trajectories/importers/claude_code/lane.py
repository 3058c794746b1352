"""One agent's lines, in file order, as steps: the session's own, or those of one subagent."""

from collections.abc import Mapping

from stenograph.trajectories.atif.format import Extra, Json, Observation, ObservationResult, Step
from stenograph.trajectories.importers.claude_code.content import (
    blocks,
    joined,
    part,
)
from stenograph.trajectories.importers.claude_code.lines import Line
from stenograph.trajectories.importers.claude_code.messages import is_summary, spoken, texts
from stenograph.trajectories.importers.claude_code.response import (
    Response,
    finish,
    is_synthetic,
)
from stenograph.trajectories.importers.claude_code.results import result
from stenograph.trajectories.importers.claude_code.turns import Turn
from stenograph.trajectories.importers.claude_code.walk import (
    Lane,
    Walk,
    add_step,
    add_system,
    identity,
    is_working,
    turn_before,
    turn_of,
)
from stenograph.trajectories.importers.draft import Origin, Part, StepDraft

_COMPACTED = "Conversation compacted"


def read_lane(
    lines: list[Line],
    outputs: Mapping[str, str],
    *,
    speaker: Origin,
    copied: set[int],
) -> Lane:
    """Read the lines of one agent.

    `speaker` is who its prompts are from; `copied` holds the numbers of lines that were brought
    from another session; `outputs` are the large outputs by file name.
    """
    walk = Walk(outputs, speaker, _answered(lines), copied=copied)
    walk.turn = walk.lane.leaf = walk.lane.turns[0]
    for line in lines:
        walk.turn = turn_of(walk, line)
        _READERS.get(line.type, _aside)(walk, line)
        if line.uuid is not None:
            walk.turn_of[line.uuid] = walk.turn
    for response in walk.lane.responses:
        finish(response, copied=response.lines[0].number in copied)
    return walk.lane


def _answered(lines: list[Line]) -> set[str]:
    return {
        str(block.get("tool_use_id"))
        for line in lines
        for block in blocks(line.content)
        if block["type"].endswith("tool_result")
    }


def _assistant(walk: Walk, line: Line) -> None:
    if is_synthetic(line):
        _synthetic(walk, line)
        return
    message_id = line.object("message").get("id")
    response = walk.by_message.get(message_id) if isinstance(message_id, str) else None
    if response is None:
        key = message_id if isinstance(message_id, str) else line.uuid
        placeholder = Step(step_id=0, source="agent", message="")
        response = Response(add_step(walk, line, StepDraft("agent", placeholder), key))
        response.extra = identity(walk, line, "requestId")
        if walk.failed_attempts:
            response.extra["failed_attempts"] = walk.failed_attempts
            walk.failed_attempts = 0
        walk.lane.responses.append(response)
        walk.turn.last, walk.turn.end, walk.turn.closed = response, None, False
        if isinstance(message_id, str):
            walk.by_message[message_id] = response
    response.add(line)
    walk.by_call |= dict.fromkeys(response.calls, response)
    _results(walk, line)


def _synthetic(walk: Walk, line: Line) -> None:
    """The program wrote an answer itself: it was no model call and nobody paid for it."""
    said = joined(part(block, walk.lane.gathered) for block in blocks(line.content))
    failed = line.flag("isApiErrorMessage")
    extra: Extra = {"kind": "api_error" if failed else "synthetic"}
    if (error := line.text("error")) is not None:
        extra["error"] = error
    add_system(walk, line, Step(step_id=0, source="system", message=said), extra)
    walk.turn.closed = True
    if failed:
        walk.turn.end = ("failed", "\n".join(texts(line.content)) or "api_error")


def _user(walk: Walk, line: Line) -> None:
    _results(walk, line)
    said = texts(line.content)
    if is_summary(line, said):
        _summary(walk, line)
    else:
        _message(walk, line, line.content)


def _message(walk: Walk, line: Line, content: Json, part: Part | None = None) -> None:
    """Add what somebody said: a prompt, or a steer where the agent is at work."""
    message = spoken(line, content, walk.lane.gathered, walk.speaker)
    if message is None:
        if not any(block["type"] == "tool_result" for block in blocks(content)):
            walk.lane.gathered.keep_aside("empty")
        return
    if message.origin is None:
        step = Step(step_id=0, source="system", message=message.content)
        add_system(walk, line, step, message.extra)
        if message.interrupts:
            walk.turn.end, walk.turn.closed = ("canceled", "interrupted"), True
        return
    if part is None:
        waited = any(text in walk.queued for text in texts(content))
        part = "steer" if waited and is_working(walk) else "prompt"
    if part == "prompt":
        walk.turn = Turn(turn_before(walk, line))
        walk.lane.turns.append(walk.turn)
        walk.queued.clear()
    own = identity(walk, line, "promptId", "permissionMode") | message.extra
    step = Step(step_id=0, source="user", message=message.content, timestamp=line.timestamp)
    step.extra = {"claude_code": own} if own else None
    add_step(walk, line, StepDraft(part, step, origin=message.origin), line.uuid)


def _results(walk: Walk, line: Line) -> None:
    """Put the results of a line where their calls are; one without a call becomes a step."""
    structured = line.fields.get("toolUseResult")
    for block in blocks(line.content):
        if not block["type"].endswith("tool_result"):
            continue
        call_id = str(block.get("tool_use_id"))
        response = walk.by_call.get(call_id)
        arguments = {} if response is None else response.calls[call_id].arguments
        found = result(block, structured, arguments, walk.outputs, walk.lane.gathered)
        if response is None:
            _orphan(walk, line, found)
            continue
        known = response.results.setdefault(call_id, [])
        if found in known:
            continue
        known.append(found)
        if block.get("is_error") is True:
            response.draft.failed_calls |= {call_id}
        if line.timestamp is not None:
            response.draft.result_times.setdefault(call_id, line.timestamp)
        agent = structured.get("agentId") if isinstance(structured, dict) else None
        if isinstance(agent, str):
            walk.lane.agent_results.setdefault(agent, []).append(found)


def _orphan(walk: Walk, line: Line, found: ObservationResult) -> None:
    walk.lane.gathered.warnings.append(
        f"Line {line.number} holds a result of {found.source_call_id}, a call that is not here"
    )
    extra: Extra = {"kind": "orphan_result", "tool_use_id": found.source_call_id}
    found.source_call_id = None
    step = Step(step_id=0, source="system", message="", observation=Observation(results=[found]))
    add_system(walk, line, step, extra)


def _summary(walk: Walk, line: Line) -> None:
    """Add what a compaction left to the step of its boundary, or be that step."""
    draft, walk.compaction = walk.compaction, None
    if draft is None:
        draft = _compaction(walk, line, _COMPACTED, {})
    elif draft.step.extra is not None and line.uuid is not None:
        draft.step.extra["claude_code"]["summary_uuid"] = line.uuid
    content = joined(part(block, walk.lane.gathered) for block in blocks(line.content))
    draft.step.observation = Observation(results=[ObservationResult(content=content)])


def _compaction(walk: Walk, line: Line, message: str, extra: Extra) -> StepDraft:
    step = Step(step_id=0, source="system", message=message)
    step.extra = {"context_management": {"type": "compaction", "boundary": "replace"}}
    return add_system(walk, line, step, {"kind": "compaction"} | extra)


def _program(walk: Walk, line: Line) -> None:
    """A `system` line: a boundary of the context, a failed attempt, or only a note."""
    subtype = line.text("subtype")
    if subtype == "compact_boundary":
        about = line.object("compactMetadata")
        facts = {k: v for k, v in about.items() if isinstance(v, str | int | float)}
        walk.compaction = _compaction(walk, line, line.text("content") or _COMPACTED, facts)
    elif subtype == "microcompact_boundary":
        step = Step(step_id=0, source="system", message=line.text("content") or _COMPACTED)
        step.extra = {"context_management": {"type": "pruning", "boundary": "truncate"}}
        add_system(walk, line, step, {"kind": "pruning"})
    else:
        walk.failed_attempts += subtype == "api_error"
        _aside(walk, line)


def _attachment(walk: Walk, line: Line) -> None:
    """What was put beside the conversation; a message typed while the agent worked is in it."""
    about = line.object("attachment")
    if about.get("type") != "queued_command":
        _aside(walk, line)
        return
    speaker = {"type": "user", "origin": about.get("origin"), "isMeta": about.get("isMeta")}
    if about.get("commandMode") == "task-notification":
        speaker["origin"] = {"kind": "task-notification"}
    _message(walk, Line(line.number, "user", line.fields | speaker), about.get("prompt"), "steer")


def _queue(walk: Walk, line: Line) -> None:
    """Remember what was typed while the agent worked: it may come as a user line later."""
    content = line.text("content")
    if line.text("operation") == "enqueue" and content is not None and is_working(walk):
        walk.queued.add(content)
    _aside(walk, line)


def _aside(walk: Walk, line: Line) -> None:
    walk.lane.gathered.keep_aside(line.type)


_READERS = {
    "assistant": _assistant,
    "user": _user,
    "system": _program,
    "attachment": _attachment,
    "queue-operation": _queue,
}
