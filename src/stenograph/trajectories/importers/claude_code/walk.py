"""Where the reading of one agent's lines stands, and how steps find their place."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from stenograph.trajectories.atif.format import Extra, ObservationResult, Step
from stenograph.trajectories.importers.claude_code.content import Gathered
from stenograph.trajectories.importers.claude_code.lines import Line
from stenograph.trajectories.importers.claude_code.response import Response
from stenograph.trajectories.importers.claude_code.turns import Turn
from stenograph.trajectories.importers.draft import Origin, StepDraft

#: Where and in what the program ran; a step says it when it has changed.
_SETTING = ("cwd", "gitBranch", "version")


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
class Walk:
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
    keys: dict[str, int] = field(default_factory=dict)
    copied: set[int] = field(default_factory=set)


def turn_of(walk: Walk, line: Line) -> Turn:
    """Return the turn that a line continues: its parent's, else the one before it in the file."""
    for name in ("parentUuid", "logicalParentUuid"):
        parent = line.text(name)
        if parent is not None and parent in walk.turn_of:
            walk.linked = True
            return walk.turn_of[parent]
    walk.loose = walk.loose or line.type == "assistant"
    return walk.turn


def turn_before(walk: Walk, line: Line) -> Turn:
    """Return the turn that a prompt follows."""
    unlinked = "parentUuid" in line.fields and line.text("parentUuid") is None
    begins_anew = unlinked and walk.linked and not walk.loose
    return walk.lane.turns[0] if begins_anew else walk.turn


def is_working(walk: Walk) -> bool:
    """Whether the model is at work, or has asked for tools and is about to go on.

    A call without a result anywhere means that the program ended: what comes then is a new turn.
    """
    turn = walk.turn
    if turn.closed or turn.parent is None:
        return False
    if turn.last is None:
        return True
    return bool(turn.last.calls) and turn.last.calls.keys() <= walk.answered


def add_step(walk: Walk, line: Line, draft: StepDraft, key: str | None) -> StepDraft:
    """Give a step its place and its key, which a log that repeats an id gets a number to."""
    if key is not None:
        before = walk.keys.get(key, 0)
        walk.keys[key] = before + 1
        draft.key = f"{key}+{before}" if before else key
    if line.number in walk.copied:
        draft.step.is_copied_context = True
    walk.turn.steps.append(draft)
    walk.lane.leaf = walk.turn
    return draft


def identity(walk: Walk, line: Line, *names: str) -> Extra:
    """Return the named fields of a line, and where the program ran, where that has changed."""
    found = {name: line.text(name) for name in ("uuid", "parentUuid", *names)}
    changed = {
        name: value
        for name in _SETTING
        if (value := line.text(name)) is not None and value != walk.setting.get(name)
    }
    walk.setting |= changed
    return {name: value for name, value in (found | changed).items() if value is not None}


def add_system(walk: Walk, line: Line, step: Step, extra: Extra) -> StepDraft:
    """Add a system step with the identity of its line."""
    own = identity(walk, line) | extra
    step.extra = (step.extra or {}) | ({"claude_code": own} if own else {})
    step.timestamp = line.timestamp
    return add_step(walk, line, StepDraft("system", step), line.uuid)
