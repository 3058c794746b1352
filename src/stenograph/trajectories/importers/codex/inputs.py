"""What went to the model beside results: prompts, steers, context, compactions."""

from stenograph.trajectories.atif.format import (
    ContentPart,
    Extra,
    Observation,
    ObservationResult,
    Step,
)
from stenograph.trajectories.importers.codex.content import joined, parts
from stenograph.trajectories.importers.codex.lines import Line
from stenograph.trajectories.importers.codex.messages import ABORTED, speaker
from stenograph.trajectories.importers.codex.thread import Walk, place, system
from stenograph.trajectories.importers.codex.turns import Turn
from stenograph.trajectories.importers.draft import Origin, StepDraft

_COMPACTED = "Context compacted"


def message(walk: Walk, line: Line) -> None:
    """Read a message in the user's, developer's or system's role.

    The report of a subagent is a steer of origin `child` where the agent is at work, for that is
    where the model reads it; between turns nobody waits for it, and it is context.
    """
    content = [*parts(line.payload.get("content") or [], walk.gathered)]
    who = speaker(line)
    if not content:
        walk.gathered.keep_aside("empty")
    elif who == "person":
        speak(walk, line, content, walk.prompter)
    elif who == "child" and walk.at_work:
        speak(walk, line, content, "child", {"kind": "subagent_notification"})
    else:
        _context(walk, line, content)
        if (content[0].text or "").startswith(ABORTED):
            walk.turn.end = walk.turn.end or ("canceled", "interrupted")


def speak(
    walk: Walk,
    line: Line,
    content: list[ContentPart],
    origin: Origin,
    own: Extra | None = None,
) -> None:
    """Add somebody's message: it opens a turn, or is a steer in a task that had its prompt."""
    steers = walk.at_work
    walk.open = None
    if not steers:
        walk.turns.append(Turn(task="running" if walk.running else "untold"))
        walk.prompted = True
    own = (own or {}) | ({"turn_id": line.turn_id} if line.turn_id else {})
    step = Step(step_id=0, source="user", message=joined(content), timestamp=line.timestamp)
    step.extra = {"codex": own} if own else None
    draft = StepDraft("steer" if steers else "prompt", step, origin=origin)
    place(walk, line, draft, line.text("id"))


def _context(walk: Walk, line: Line, content: list[ContentPart]) -> None:
    """Add what the program put in. Messages that follow each other are one step of many parts."""
    item: Extra = {"role": line.payload.get("role"), "parts": len(content)}
    if (own_id := line.text("id")) is not None:
        item["id"] = own_id
    step = walk.turn.steps[-1].step if walk.turn.steps else None
    items = ((step and step.extra) or {}).get("codex", {}).get("items")
    copied = True if line.number in walk.copied else None
    if step is not None and step.source == "system" and step.is_copied_context == copied and items:
        said = step.message
        known = [ContentPart(type="text", text=said)] if isinstance(said, str) else said
        step.message = joined([*known, *content])
        items.append(item)
    else:
        system(
            walk,
            line,
            Step(step_id=0, source="system", message=joined(content)),
            {"items": [item]},
            own_id,
        )


def from_agent(walk: Walk, line: Line) -> None:
    """Read a message between agents: one from above gives the thread its task."""
    content = [*parts(line.payload.get("content") or [], walk.gathered)]
    author, recipient = line.text("author") or "", line.text("recipient") or ""
    own: Extra = {"kind": "agent_message", "author": author, "recipient": recipient}
    if not content:
        walk.gathered.keep_aside(line.kind)
    elif not author.startswith(recipient.rstrip("/") + "/"):
        speak(walk, line, content, "agent", own)
    elif walk.at_work:
        speak(walk, line, content, "child", own)
    else:
        _context(walk, line, content)


def compacted(walk: Walk, line: Line) -> None:
    """Read a compaction: what came before is replaced by a summary, or by what was kept of it."""
    summary, history = line.text("message"), line.payload.get("replacement_history")
    content = [ContentPart(type="text", text=summary)] if summary else []
    own: Extra = {"kind": "compaction"}
    if isinstance(history, list):
        own["replacement_items"] = len(history)
        for item in history if not summary else []:
            kept = item.get("content") if isinstance(item, dict) else None
            content += parts(kept, walk.gathered) if kept else []
    step = Step(step_id=0, source="system", message=_COMPACTED)
    step.extra = {"context_management": {"type": "compaction", "boundary": "replace"}}
    step.observation = Observation(results=[ObservationResult(content=joined(content))])
    system(walk, line, step, own, line.text("window_id"))


def tools(walk: Walk, line: Line) -> None:
    """Read tools that were given to the model as an item of the conversation."""
    given = line.payload.get("tools")
    walk.tools += given if isinstance(given, list) else []
