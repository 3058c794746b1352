"""What the program showed and noted: tasks, settings, errors, and messages once more."""

from stenograph.trajectories.atif.format import ContentPart, Extra, Json, Step
from stenograph.trajectories.importers.codex import calls, outputs
from stenograph.trajectories.importers.codex.content import texts
from stenograph.trajectories.importers.codex.inputs import speak
from stenograph.trajectories.importers.codex.lines import Line
from stenograph.trajectories.importers.codex.messages import spoken
from stenograph.trajectories.importers.codex.thread import Walk, respond, system
from stenograph.trajectories.importers.codex.turns import End, roll_back

#: What a turn's context says of where and how the program ran.
_SETTING = ("cwd", "approval_policy")
_ROLES = {
    "UserMessage": "user",
    "user_message": "user",
    "AgentMessage": "assistant",
    "agent_message": "assistant",
}
_THOUGHTS = ("summary", "content", "summary_text", "raw_content", "text")


def sayings(kind: str, item: dict[str, Json]) -> list[tuple[str, str]]:
    """Return what an item or event of this type says, as pairs of who and text."""
    if kind == "message" or kind in _ROLES:
        text = spoken(item.get("content", item.get("message")))
        return [(str(_ROLES.get(kind, item.get("role"))), text)] if text else []
    if kind.lower().removeprefix("agent_").startswith("reasoning"):
        return [("thought", text) for name in _THOUGHTS for text in _texts(item.get(name))]
    return []


def _texts(value: Json) -> list[str]:
    every = value if isinstance(value, list) else [value]
    return [text for one in every for text in texts(one if isinstance(one, str) else [one]) if text]


def event(walk: Walk, line: Line) -> None:
    """Read an event that no reader of its own is there for: a message, or work on a call."""
    kind, item = line.kind, line.payload
    if kind == "item_completed":
        item = line.object("item")
        kind = str(item.get("type"))
    if (said := sayings(kind, item)) or kind in _ROLES:
        for who, text in said:
            _repeat(walk, line, kind, item, who, text)
    elif (done := calls.work(line)) is not None:
        outputs.work(walk, line, done)
    else:
        walk.gathered.keep_aside(kind)


def _repeat(walk: Walk, line: Line, kind: str, item: dict[str, Json], who: str, text: str) -> None:
    """Take in what an event says where the conversation itself lacks it."""
    walk.heard[kind, who, text] += 1
    if walk.heard[kind, who, text] <= walk.said[who, text]:
        return
    walk.said[who, text] += 1
    if who == "user":
        speak(walk, line, [ContentPart(type="text", text=text)], walk.prompter)
        return
    own_id = item.get("id")
    response = respond(walk, line, own_id if isinstance(own_id, str) else None)
    response.kinds.append(kind)
    (response.messages if who == "assistant" else response.thoughts).append(text)


def turn_context(walk: Walk, line: Line) -> None:
    """Read what the next calls are made with."""
    mode = line.object("collaboration_mode").get("settings")
    chosen = mode.get("reasoning_effort") if isinstance(mode, dict) else None
    effort = line.payload.get("effort") or chosen
    walk.model = line.text("model") or walk.model
    walk.effort = effort if isinstance(effort, str) else None
    now = {name: value for name in _SETTING if (value := line.payload.get(name)) is not None}
    walk.changed |= {n: value for n, value in now.items() if walk.setting.get(n) != value}
    walk.setting |= now


def task_started(walk: Walk, line: Line) -> None:
    walk.running, walk.prompted, walk.open = True, False, None


def task_ended(walk: Walk, line: Line) -> None:
    if walk.at_work:
        walk.turn.task = "ended"
    if isinstance(line.payload.get("error"), dict):
        _end(walk, ("failed", str(line.payload["error"].get("message"))))
    walk.running, walk.open = False, None


def turn_aborted(walk: Walk, line: Line) -> None:
    _end(walk, ("canceled", line.text("reason") or "interrupted"))
    task_ended(walk, line)


def error(walk: Walk, line: Line) -> None:
    """Read that the turn failed; what the person was shown becomes a step."""
    message = line.text("message") or "error"
    about = line.payload.get("codex_error_info")
    own: Extra = {"kind": "error"} | ({} if about is None else {"codex_error_info": about})
    system(walk, line, Step(step_id=0, source="system", message=message), own, None)
    _end(walk, ("failed", message))


def _end(walk: Walk, end: End) -> None:
    """Note how the turn ended. A task that had no prompt is none of the turn before it."""
    if walk.at_work or not walk.running:
        walk.turn.end = end


def stream_error(walk: Walk, line: Line) -> None:
    walk.failed_attempts += 1
    walk.gathered.keep_aside(line.kind)


def rolled_back(walk: Walk, line: Line) -> None:
    """Read that the person took turns back: what was there becomes a branch that was left."""
    count = line.payload.get("num_turns")
    left = roll_back(walk.turns, count) if type(count) is int else None
    if left is not None:
        walk.abandoned.append(left)
    walk.open = None


def named(walk: Walk, line: Line) -> None:
    walk.title = line.text("thread_name") or walk.title
