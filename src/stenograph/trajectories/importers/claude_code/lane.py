"""One agent's lines, in file order, as steps: the session's own, or those of one subagent."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from stenograph.trajectories.atif.format import Extra, Json, Observation, ObservationResult, Step
from stenograph.trajectories.importers.claude_code.content import (
    Gathered,
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
from stenograph.trajectories.importers.draft import Origin, Part, StepDraft

#: Where and in what the program ran; a step says it when it has changed.
_SETTING = ("cwd", "gitBranch", "version")
_COMPACTED = "Conversation compacted"


@dataclass(slots=True)
class Lane:
    """What a lane's lines came to."""

    turns: list[Turn] = field(default_factory=lambda: [Turn()])
    responses: list[Response] = field(default_factory=list)
    #: Results that say which subagent they are the answer of, by its id.
    agent_results: dict[str, list[ObservationResult]] = field(default_factory=dict)
    #: The turn of the lane's last step.
    leaf: Turn = field(default_factory=Turn)
    gathered: Gathered = field(default_factory=Gathered)

    def call(self, call_id: str) -> Response | None:
        """Return the response that made a call."""
        return next((r for r in reversed(self.responses) if call_id in r.calls), None)


@dataclass(slots=True)
class _Walk:
    """Where the reading of a lane stands."""

    outputs: Mapping[str, str]
    speaker: Origin
    #: Ids of calls that have a result somewhere in the lane.
    answered: set[str]
    lane: Lane = field(default_factory=Lane)
    turn: Turn = field(default_factory=Turn)
    turn_of: dict[str, Turn] = field(default_factory=dict)
    #: Some lines name a parent that is here; an answer names none. In a log where all are linked,
    #: a prompt without a parent begins anew.
    linked: bool = False
    loose: bool = False
    by_message: dict[str, Response] = field(default_factory=dict)
    by_call: dict[str, Response] = field(default_factory=dict)
    #: Messages that were typed while the agent worked in this turn.
    queued: set[str] = field(default_factory=set)
    compaction: StepDraft | None = None
    failed_attempts: int = 0
    setting: dict[str, str] = field(default_factory=dict)
    keys: set[str] = field(default_factory=set)
    copied: set[int] = field(default_factory=set)


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
    walk = _Walk(outputs, speaker, _answered(lines), copied=copied)
    walk.turn = walk.lane.leaf = walk.lane.turns[0]
    for line in lines:
        walk.turn = _turn_of(walk, line)
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


def _turn_of(walk: _Walk, line: Line) -> Turn:
    """Return the turn that a line continues: its parent's, else the one before it in the file."""
    for name in ("parentUuid", "logicalParentUuid"):
        parent = line.text(name)
        if parent is not None and parent in walk.turn_of:
            walk.linked = True
            return walk.turn_of[parent]
    walk.loose = walk.loose or line.type == "assistant"
    return walk.turn


def _step(walk: _Walk, line: Line, draft: StepDraft, key: str | None) -> StepDraft:
    """Give a step its key and its place."""
    while key is not None and key in walk.keys:
        key += "+"
    if key is not None:
        walk.keys.add(key)
    draft.key = key
    if line.number in walk.copied:
        draft.step.is_copied_context = True
    walk.turn.steps.append(draft)
    walk.lane.leaf = walk.turn
    return draft


def _setting(walk: _Walk, line: Line) -> Extra:
    changed = {
        name: value
        for name in _SETTING
        if (value := line.text(name)) is not None and value != walk.setting.get(name)
    }
    walk.setting |= changed
    return dict(changed)


def _system(walk: _Walk, line: Line, step: Step, extra: Extra) -> StepDraft:
    """Add a system step with the identity of its line."""
    found = {name: line.text(name) for name in ("uuid", "parentUuid")}
    own = {k: v for k, v in found.items() if v is not None} | extra | _setting(walk, line)
    step.extra = (step.extra or {}) | ({"claude_code": own} if own else {})
    step.timestamp = line.timestamp
    return _step(walk, line, StepDraft("system", step), line.uuid)


def _assistant(walk: _Walk, line: Line) -> None:
    if is_synthetic(line):
        _synthetic(walk, line)
        return
    message_id = line.object("message").get("id")
    response = walk.by_message.get(message_id) if isinstance(message_id, str) else None
    if response is None:
        key = message_id if isinstance(message_id, str) else line.uuid
        placeholder = Step(step_id=0, source="agent", message="")
        response = Response(_step(walk, line, StepDraft("agent", placeholder), key))
        response.extra = _setting(walk, line)
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


def _synthetic(walk: _Walk, line: Line) -> None:
    """The program wrote an answer itself: it was no model call and nobody paid for it."""
    said = joined(part(block, walk.lane.gathered) for block in blocks(line.content))
    failed = line.flag("isApiErrorMessage")
    extra: Extra = {"kind": "api_error" if failed else "synthetic"}
    if (error := line.text("error")) is not None:
        extra["error"] = error
    _system(walk, line, Step(step_id=0, source="system", message=said), extra)
    walk.turn.closed = True
    if failed:
        walk.turn.end = ("failed", "\n".join(texts(line.content)) or "api_error")


def _user(walk: _Walk, line: Line) -> None:
    _results(walk, line)
    said = texts(line.content)
    if is_summary(line, said):
        _summary(walk, line)
    else:
        _message(walk, line, line.content)


def _message(walk: _Walk, line: Line, content: Json, part: Part | None = None) -> None:
    """Add what somebody said: a prompt, or a steer where the agent is at work."""
    message = spoken(line, content, walk.lane.gathered, walk.speaker)
    if message is None:
        if not any(block["type"] == "tool_result" for block in blocks(content)):
            walk.lane.gathered.keep_aside("empty")
        return
    if message.origin is None:
        step = Step(step_id=0, source="system", message=message.content)
        _system(walk, line, step, message.extra)
        if message.interrupts:
            walk.turn.end, walk.turn.closed = ("canceled", "interrupted"), True
        return
    if part is None:
        waited = any(text in walk.queued for text in texts(content))
        part = "steer" if waited and _is_working(walk) else "prompt"
    if part == "prompt":
        walk.turn = Turn(_before(walk, line))
        walk.lane.turns.append(walk.turn)
        walk.queued.clear()
    found = {n: line.text(n) for n in ("uuid", "parentUuid", "promptId", "permissionMode")}
    own = {k: v for k, v in found.items() if v is not None} | message.extra | _setting(walk, line)
    step = Step(step_id=0, source="user", message=message.content, timestamp=line.timestamp)
    step.extra = {"claude_code": own} if own else None
    _step(walk, line, StepDraft(part, step, origin=message.origin), line.uuid)


def _is_working(walk: _Walk) -> bool:
    """Whether the model is at work, or has asked for tools and is about to go on.

    A call without a result anywhere means that the program ended: what comes then is a new turn.
    """
    turn = walk.turn
    if turn.closed or turn.parent is None:
        return False
    if turn.last is None:
        return True
    return bool(turn.last.calls) and turn.last.calls.keys() <= walk.answered


def _before(walk: _Walk, line: Line) -> Turn:
    """Return the turn that a prompt follows."""
    unlinked = "parentUuid" in line.fields and line.text("parentUuid") is None
    begins_anew = unlinked and walk.linked and not walk.loose
    return walk.lane.turns[0] if begins_anew else walk.turn


def _results(walk: _Walk, line: Line) -> None:
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


def _orphan(walk: _Walk, line: Line, found: ObservationResult) -> None:
    walk.lane.gathered.warnings.append(
        f"Line {line.number} holds a result of {found.source_call_id}, a call that is not here"
    )
    extra: Extra = {"kind": "orphan_result", "tool_use_id": found.source_call_id}
    found.source_call_id = None
    step = Step(step_id=0, source="system", message="", observation=Observation(results=[found]))
    _system(walk, line, step, extra)


def _summary(walk: _Walk, line: Line) -> None:
    """Add what a compaction left to the step of its boundary, or be that step."""
    draft, walk.compaction = walk.compaction, None
    if draft is None:
        draft = _compaction(walk, line, _COMPACTED, {})
    elif draft.step.extra is not None and line.uuid is not None:
        draft.step.extra["claude_code"]["summary_uuid"] = line.uuid
    content = joined(part(block, walk.lane.gathered) for block in blocks(line.content))
    draft.step.observation = Observation(results=[ObservationResult(content=content)])


def _compaction(walk: _Walk, line: Line, message: str, extra: Extra) -> StepDraft:
    step = Step(step_id=0, source="system", message=message)
    step.extra = {"context_management": {"type": "compaction", "boundary": "replace"}}
    return _system(walk, line, step, {"kind": "compaction"} | extra)


def _program(walk: _Walk, line: Line) -> None:
    """A `system` line: a boundary of the context, a failed attempt, or only a note."""
    subtype = line.text("subtype")
    if subtype == "compact_boundary":
        about = line.object("compactMetadata")
        facts = {k: v for k, v in about.items() if isinstance(v, str | int | float)}
        walk.compaction = _compaction(walk, line, line.text("content") or _COMPACTED, facts)
    elif subtype == "microcompact_boundary":
        step = Step(step_id=0, source="system", message=line.text("content") or _COMPACTED)
        step.extra = {"context_management": {"type": "pruning", "boundary": "truncate"}}
        _system(walk, line, step, {"kind": "pruning"})
    else:
        walk.failed_attempts += subtype == "api_error"
        _aside(walk, line)


def _attachment(walk: _Walk, line: Line) -> None:
    """What was put beside the conversation; a message typed while the agent worked is in it."""
    about = line.object("attachment")
    if about.get("type") != "queued_command":
        _aside(walk, line)
        return
    speaker = {"type": "user", "origin": about.get("origin"), "isMeta": about.get("isMeta")}
    if about.get("commandMode") == "task-notification":
        speaker["origin"] = {"kind": "task-notification"}
    _message(walk, Line(line.number, "user", line.fields | speaker), about.get("prompt"), "steer")


def _queue(walk: _Walk, line: Line) -> None:
    """Remember what was typed while the agent worked: it may come as a user line later."""
    content = line.text("content")
    if line.text("operation") == "enqueue" and content is not None and _is_working(walk):
        walk.queued.add(content)
    _aside(walk, line)


def _aside(walk: _Walk, line: Line) -> None:
    walk.lane.gathered.keep_aside(line.type)


_READERS = {
    "assistant": _assistant,
    "user": _user,
    "system": _program,
    "attachment": _attachment,
    "queue-operation": _queue,
}
