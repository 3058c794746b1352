"""Which files are logs of Claude Code, and which belong together."""

import re
from collections.abc import Iterable
from pathlib import PurePosixPath

from stenograph.errors import InvalidInputError
from stenograph.trajectories.atif.format import Json
from stenograph.trajectories.atif.reading import read_json, read_lines
from stenograph.trajectories.importers.claude_code.lines import WRAPPED

#: Types that no other program's log has, with the field that is always beside them.
_TYPES = {
    "summary": "leafUuid",
    "queue-operation": "sessionId",
    "file-history-snapshot": "snapshot",
    "attachment": "attachment",
    "progress": "parentUuid",
    "last-prompt": "sessionId",
    "mode": "sessionId",
    "permission-mode": "sessionId",
    "custom-title": "customTitle",
    "ai-title": "aiTitle",
}
_AGENT_FILE = re.compile(r"agent-([^/]+)\.jsonl")


def looks_like(first_lines: bytes) -> bool:
    """Whether a file that begins like this is a session log of Claude Code.

    The program's own JSON stream (`session_id`) and Codex rollouts (`payload`) are not.
    """
    if WRAPPED.match(first_lines):
        return True
    for _, line in read_lines(first_lines):
        try:
            value = read_json(line, replace_invalid=True).value
        except InvalidInputError:
            continue
        if isinstance(value, dict) and _is_line(value):
            return True
    return False


def _is_line(value: dict[str, Json]) -> bool:
    kind = value.get("type")
    if kind in ("user", "assistant"):
        message = value.get("message")
        role = message.get("role") if isinstance(message, dict) else None
        return role in ("user", "assistant") and "session_id" not in value
    if kind == "system":
        return "parentUuid" in value and "sessionId" in value
    return isinstance(kind, str) and _TYPES.get(kind, "type") in value and kind in _TYPES


def agent_id(path: str) -> str | None:
    """Return the id of the subagent whose log this file is, by its name."""
    name = _AGENT_FILE.fullmatch(PurePosixPath(path).name)
    return None if name is None else name[1]


def side_files(paths: Iterable[str]) -> dict[str, list[str]]:
    """Return the session files among `paths` (relative, POSIX), each with what belongs to it.

    `<uuid>.jsonl` owns the folder `<uuid>/` beside it: `subagents/agent-*.jsonl` with their
    `.meta.json`, and `tool-results/*.txt`. Before 2.1 subagents lay in the project folder itself:
    those go with every session there, and `read` takes the ones that name its session. One that
    no session is there for stands for itself.
    """
    every = sorted(set(paths))
    logs = [path for path in every if path.endswith(".jsonl")]
    roots = [path for path in logs if agent_id(path) is None]
    owned: dict[str, list[str]] = {root: [] for root in roots}
    for path in every:
        if path in owned:
            continue
        owners = [root for root in roots if path.startswith(root.removesuffix(".jsonl") + "/")]
        if not owners and agent_id(path) is not None:
            folder = PurePosixPath(path).parent
            owners = [root for root in roots if PurePosixPath(root).parent == folder]
            if not owners:
                owned[path] = [
                    other for other in every if other == path.removesuffix("jsonl") + "meta.json"
                ]
        for owner in owners:
            owned[owner].append(path)
    return owned
