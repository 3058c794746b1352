"""A thread of Codex, from its rollout file to a draft."""

import hashlib
import re
from collections import Counter
from pathlib import PurePosixPath

from stenograph.clock import parse_iso
from stenograph.errors import InvalidInputError
from stenograph.trajectories.atif.format import Agent, Extra, Json
from stenograph.trajectories.importers.codex.forks import copied
from stenograph.trajectories.importers.codex.lines import Line, Log, parent, read_log
from stenograph.trajectories.importers.codex.response import finish
from stenograph.trajectories.importers.codex.tools import tool_definitions
from stenograph.trajectories.importers.codex.turns import ends
from stenograph.trajectories.importers.codex.walk import Walk, read_thread
from stenograph.trajectories.importers.draft import SessionDraft

AGENT = "codex"
#: Who is asked where the log names no provider: the program's default.
PROVIDER = "openai"
_THREAD_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
#: What the first line says that has a place of its own in the draft.
_PLACED = {
    "id",
    "session_id",
    "parent_thread_id",
    "timestamp",
    "cli_version",
    "base_instructions",
    "instructions",
    "dynamic_tools",
    "agent_nickname",
}


def read(data: bytes, name: str) -> SessionDraft:
    """Read one rollout; `name` is its file name, which holds the thread's id.

    A log that is cut off anywhere is read as far as it goes. A subagent's draft names its parent
    in `parent_key`. Raises InvalidInputError where nothing can be read as a log.
    """
    log = read_log(data)
    if not log.lines:
        raise InvalidInputError(
            f"{name} holds no line that can be read as a Codex log", code="invalid_format"
        )
    first = next((line for line in log.lines if line.type == "session_meta"), None)
    meta = first or Line(0, "session_meta", {}, None)
    key = meta.text("id") or _key(name, data)
    metas = [n for n in log.lines if n.type == "session_meta" and n.text("id") == meta.text("id")]
    above = parent(meta)
    history, doubt = copied(log.lines)
    walk = read_thread(
        log.lines,
        prompter="person" if above is None else "agent",
        copied=history,
        instructions=_instructions(meta),
    )
    steps = [step for turn in walk.turns for step in turn.steps]
    if not steps and not walk.abandoned:
        raise InvalidInputError(
            f"{name} holds no message of a Codex session", code="invalid_format"
        )
    provider = meta.text("model_provider") or PROVIDER
    for response in walk.responses:
        finish(response, provider)
    return SessionDraft(
        format="codex",
        agent=_agent(metas or [meta], walk),
        steps=steps,
        key=key,
        trajectory_id=key,
        session_id=meta.text("session_id") or key,
        parent_key=above,
        title=walk.title or _nickname(meta),
        started_at=_started_at(meta, log.lines),
        turn_ends=ends(walk.turns),
        abandoned=walk.abandoned,
        media=list(walk.gathered.media.values()),
        document=_origin(meta),
        kept_aside=_kept_aside(log, walk),
        warnings=_warnings(name, log, doubt) + walk.gathered.warnings,
        replaced_characters=log.replaced_characters,
        originals={name: data},
    )


def _key(name: str, data: bytes) -> str:
    """Return the id in a file's name; a log without any is known by how it begins."""
    named = _THREAD_ID.findall(PurePosixPath(name).name)
    start = data.lstrip().partition(b"\n")[0]
    return named[-1] if named else f"codex-{hashlib.sha256(start).hexdigest()[:24]}"


def _instructions(meta: Line) -> str | None:
    """Return the system prompt; logs before 0.60 held the person's instructions there."""
    text = meta.object("base_instructions").get("text") or meta.payload.get("instructions")
    return text if isinstance(text, str) and text else None


def _started_at(meta: Line, lines: list[Line]) -> str | None:
    made = meta.text("timestamp")
    times = [made if parse_iso(made or "") is not None else None, *(n.timestamp for n in lines)]
    return next((at for at in times if at is not None), None)


def _agent(metas: list[Line], walk: Walk) -> Agent:
    """Describe the program: the release that wrote last, the model that answered most."""
    models = Counter(r.model for r in walk.responses if r.model is not None)
    facts: Extra = {}
    for line in metas:
        facts |= {n: v for n, v in line.payload.items() if n not in _PLACED and v is not None}
    dynamic: Json = metas[0].payload.get("dynamic_tools")
    tools = [*(dynamic if isinstance(dynamic, list) else []), *walk.tools]
    versions = [line.text("cli_version") for line in metas]
    return Agent(
        name=AGENT,
        version=next((v for v in reversed(versions) if v is not None), "unknown"),
        model_name=models.most_common(1)[0][0] if models else walk.model,
        tool_definitions=tool_definitions(tools) or None,
        extra={"codex": facts} if facts else None,
    )


def _nickname(meta: Line) -> str | None:
    source: Json = meta.object("source").get("subagent")
    spawn = source.get("thread_spawn") if isinstance(source, dict) else None
    named = spawn.get("agent_nickname") if isinstance(spawn, dict) else None
    return meta.text("agent_nickname") or (named if isinstance(named, str) else None)


def _origin(meta: Line) -> dict[str, object]:
    """Return where copied history is from, as root fields of the document."""
    forked = meta.text("forked_from_id")
    return {} if forked is None else {"extra": {"codex": {"forked_from_id": forked}}}


def _kept_aside(log: Log, walk: Walk) -> dict[str, int]:
    unreadable = {"unreadable": len(log.unreadable)} if log.unreadable else {}
    return walk.gathered.kept_aside | unreadable


def _warnings(name: str, log: Log, doubt: str | None) -> list[str]:
    found = [] if doubt is None else [doubt]
    if log.unreadable:
        first, *more = log.unreadable
        others = f" and {len(more)} more" if more else ""
        found.append(f"{name}: line {first}{others} could not be read")
    return found
