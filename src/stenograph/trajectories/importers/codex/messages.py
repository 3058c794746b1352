"""Who speaks in a message that went to the model in the user's or developer's role.

Most of them are the program's: what the person typed, the environment, instructions, reports of
subagents. Since 0.150 a log says where each content item is from; before, only its text tells.
"""

from typing import Literal, TypeAlias

from stenograph.trajectories.importers.codex.content import texts
from stenograph.trajectories.importers.codex.lines import Line

Speaker: TypeAlias = Literal["person", "program", "child"]

NOTIFICATION = "<subagent_notification>"
ABORTED = "<turn_aborted>"
#: What the program puts in the user's mouth begins with one of these.
_PROGRAM = (
    ABORTED,
    "<environment_context>",
    "<user_instructions>",
    "# AGENTS.md instructions for ",
    "<INSTRUCTIONS>",
    "<permissions instructions>",
    "<collaboration_mode>",
    "<user_shell_command>",
    "<skill>",
    "<skills_instructions>",
    "<apps_instructions>",
    "<hook_prompt",
)


def speaker(line: Line) -> Speaker:
    """Return who wrote a message; `child`: a subagent that reports."""
    said = texts(line.payload.get("content"))
    kinds = _strings(line.about.get("content_item_kinds"))
    if any(kind.endswith("subagent_notification") for kind in kinds):
        return "child"
    if line.payload.get("role") != "user":
        return "program"
    if said and said[0].startswith(NOTIFICATION):
        return "child"
    if (origins := _origins(line)) or kinds:
        typed = "user" in origins or any(kind.startswith("user.") for kind in kinds)
        return "person" if typed else "program"
    return "program" if said and all(text.startswith(_PROGRAM) for text in said) else "person"


def spoken(content: object) -> str:
    """Return the text of a message as a key: events repeat it without the frames of images."""
    return "".join(text for text in texts(content) if not text.startswith(("<image", "</image")))


def _origins(line: Line) -> list[str]:
    every = line.about.get("content_item_metadata")
    found = []
    for item in every if isinstance(every, list) else []:
        provenance = item.get("provenance") if isinstance(item, dict) else None
        kind = provenance.get("type") if isinstance(provenance, dict) else None
        if isinstance(kind, str):
            found.append(kind)
    return found


def _strings(value: object) -> list[str]:
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []
