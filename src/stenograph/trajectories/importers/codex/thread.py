"""Where the reading of a thread stands, and how a step gets its place."""

from collections import Counter
from dataclasses import dataclass, field

from stenograph.trajectories.atif.format import Extra, Json, Step
from stenograph.trajectories.importers.codex.content import Gathered
from stenograph.trajectories.importers.codex.lines import Line
from stenograph.trajectories.importers.codex.response import Response
from stenograph.trajectories.importers.codex.turns import Turn
from stenograph.trajectories.importers.codex.usage import Meter
from stenograph.trajectories.importers.draft import Abandoned, Origin, StepDraft


@dataclass(slots=True)
class Walk:
    """The state between two lines, and what the lines came to."""

    #: Who its prompts are from: a person, or the agent that started this thread.
    prompter: Origin
    #: Texts of the items of the conversation, by who said them: events repeat them.
    said: Counter[tuple[str, str]]
    #: What events of each type have said so far.
    heard: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    #: Numbers of the lines that were brought from another thread.
    copied: range = range(0)
    gathered: Gathered = field(default_factory=Gathered)
    meter: Meter = field(default_factory=Meter)
    turns: list[Turn] = field(default_factory=lambda: [Turn()])
    abandoned: list[Abandoned] = field(default_factory=list)
    responses: list[Response] = field(default_factory=list)
    #: The response that the next item of the model belongs to.
    open: Response | None = None
    by_call: dict[str, Response] = field(default_factory=dict)
    #: Calls of scripts that have not come back yet, and the last one there was.
    scripts: list[str] = field(default_factory=list)
    last_script: str | None = None
    #: A task of the program is running; `prompted`: its prompt was there.
    running: bool = False
    prompted: bool = False
    model: str | None = None
    effort: str | float | None = None
    #: Where and how the program runs, and what of it no step has said yet.
    setting: dict[str, Json] = field(default_factory=dict)
    changed: Extra = field(default_factory=dict)
    failed_attempts: int = 0
    keys: set[str] = field(default_factory=set)
    tools: list[Json] = field(default_factory=list)
    title: str | None = None

    @property
    def turn(self) -> Turn:
        return self.turns[-1]

    @property
    def at_work(self) -> bool:
        """Whether what is said now goes into a turn that is under way."""
        return self.running and self.prompted


def place(walk: Walk, line: Line, draft: StepDraft, key: str | None) -> StepDraft:
    """Give a step its key and its place."""
    while key is not None and key in walk.keys:
        key += "+"
    if key is not None:
        walk.keys.add(key)
    draft.key = key
    if line.number in walk.copied:
        draft.step.is_copied_context = True
    walk.turn.steps.append(draft)
    return draft


def system(walk: Walk, line: Line, step: Step, own: Extra, key: str | None) -> StepDraft:
    """Add a system step with `own` as its extra."""
    step.timestamp = line.timestamp
    step.extra = (step.extra or {}) | {"codex": own}
    walk.open = None
    return place(walk, line, StepDraft("system", step), key)


def respond(walk: Walk, line: Line, key: str | None = None) -> Response:
    """Return the response that a line belongs to; a new one where the last was closed."""
    if walk.open is not None and not walk.open.closed:
        return walk.open
    draft = place(walk, line, StepDraft("agent", Step(step_id=0, source="agent", message="")), key)
    copied = line.number in walk.copied
    response = Response(draft, line.timestamp, walk.model, walk.effort, copied)
    if line.turn_id is not None:
        response.extra["turn_id"] = line.turn_id
    if walk.failed_attempts:
        response.extra["failed_attempts"] = walk.failed_attempts
        walk.failed_attempts = 0
    response.extra |= walk.changed
    walk.changed = {}
    walk.responses.append(response)
    walk.open = walk.turn.last = response
    if walk.turn.end is not None and walk.turn.end[0] == "failed":
        walk.turn.end = None  # it went on
    return response
