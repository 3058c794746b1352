"""A session of Claude Code with its subagents, from its files to a draft."""

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

from stenograph.errors import InvalidInputError
from stenograph.trajectories.atif.format import Agent, Extra
from stenograph.trajectories.atif.reading import read_json
from stenograph.trajectories.importers.claude_code.content import Gathered
from stenograph.trajectories.importers.claude_code.files import agent_id
from stenograph.trajectories.importers.claude_code.lane import read_lane
from stenograph.trajectories.importers.claude_code.lines import Line, Log, read_log
from stenograph.trajectories.importers.claude_code.subagents import Subagent, place, sidechains
from stenograph.trajectories.importers.claude_code.turns import abandoned, ends, path_to
from stenograph.trajectories.importers.claude_code.walk import Lane
from stenograph.trajectories.importers.draft import SessionDraft

AGENT = "claude-code"
#: Lines that name the session, the word of a person before that of a model.
_TITLES = {"custom-title": "customTitle", "ai-title": "aiTitle", "summary": "summary"}


def read(files: Mapping[str, bytes], root: str) -> SessionDraft:
    """Read one session.

    `files` holds relative POSIX paths: `root`, the session's own log, and its side files
    (`side_files`); others are passed over. A log that is cut off anywhere is read as far as it
    goes. Raises InvalidInputError where nothing in `root` can be read as a log.
    """
    found = Gathered()
    log = _read(files[root], root, found)
    own_agent = _agent_of(log.lines, root)
    lines = [line for line in log.lines if own_agent or not line.flag("isSidechain")]
    session_id = _session_id(lines or log.lines, root)
    key = own_agent or session_id
    outputs = _outputs(files, found)
    agents = {} if own_agent else _subagents(files, root, session_id, log.lines, found)
    lane = read_lane(
        lines,
        outputs,
        speaker="agent" if own_agent else "person",
        copied=_copied(lines, session_id),
    )
    draft = _draft(key, session_id, lines, lane, found)
    if not draft.steps and not agents:
        raise InvalidInputError(f"{root} holds no message of a Claude Code session")
    lanes, drafts = {key: lane}, {key: draft}
    for name, agent in agents.items():
        lanes[name] = read_lane(agent.lines, outputs, speaker="agent", copied=set())
        drafts[name] = _child(agent, session_id, lanes[name])
    place(agents, lanes, drafts, key)
    draft.title = _title(log.lines)
    draft.parent_key = session_id if own_agent else None
    draft.document |= _origin(lines, session_id)
    theirs = {name for agent in agents.values() for name in agent.originals}
    draft.originals = {name: data for name, data in files.items() if name not in theirs}
    return draft


def _read(data: bytes, name: str, gathered: Gathered) -> Log:
    log = read_log(data)
    gathered.replaced_characters += log.replaced_characters
    gathered.keep_aside("repeated", log.repeated)
    gathered.keep_aside("unreadable", len(log.unreadable))
    if not log.lines:
        raise InvalidInputError(f"{name} holds no line that can be read as a log")
    if log.unreadable:
        first, *more = log.unreadable
        others = f" and {len(more)} more" if more else ""
        gathered.warnings.append(f"{name}: line {first}{others} could not be read")
    return log


def _agent_of(lines: list[Line], root: str) -> str | None:
    """Return whose log a file is, where it is a subagent's that came without its session."""
    if not all(line.flag("isSidechain") for line in lines):
        return None
    return agent_id(root) or next((a for line in lines if (a := line.text("agentId"))), None)


def _session_id(lines: list[Line], root: str) -> str:
    """Return the id of the session that wrote a file: history it copied may name another."""
    named = [name for line in lines if (name := line.text("sessionId"))]
    stem = PurePosixPath(root).stem
    return stem if stem in named or not named else named[-1]


def _copied(lines: list[Line], session_id: str) -> set[int]:
    """Return the numbers of lines that were brought from another session, at the file's start."""
    copied = {line.number for line in lines if line.object("forkedFrom")}
    for line in lines:
        if (named := line.text("sessionId")) == session_id:
            break
        if named is not None:
            copied.add(line.number)
    return copied


def _origin(lines: list[Line], session_id: str) -> dict[str, object]:
    """Return where copied history is from, as root fields of the document."""
    for line in lines:
        named = line.object("forkedFrom").get("sessionId") or line.text("sessionId")
        if isinstance(named, str) and named != session_id:
            return {"extra": {"claude_code": {"forkedFrom": named}}}
    return {}


def _outputs(files: Mapping[str, bytes], gathered: Gathered) -> dict[str, str]:
    """Return the large outputs by file name; what is no UTF-8 becomes U+FFFD, and is counted."""
    outputs = {}
    for name, data in files.items():
        path = PurePosixPath(name)
        if path.parent.name != "tool-results":
            continue
        text = data.decode("utf-8", "replace")
        gathered.replaced_characters += text.count("\ufffd") - data.count(b"\xef\xbf\xbd")
        outputs[path.name] = text
    return outputs


def _subagents(
    files: Mapping[str, bytes],
    root: str,
    session_id: str,
    lines: Iterable[Line],
    found: Gathered,
) -> dict[str, Subagent]:
    """Return the subagents whose lines or files are here, by id."""
    agents = {agent.id: agent for agent in sidechains([n for n in lines if n.flag("isSidechain")])}
    folder = root.removesuffix(".jsonl") + "/"
    for name in sorted(files):
        if name == root or (agent := agent_id(name)) is None:
            continue
        own = Gathered()
        try:
            log = _read(files[name], name, own)
        except InvalidInputError as error:
            found.warnings.append(error.message)
            continue
        if name.startswith(folder) or any(n.text("sessionId") == session_id for n in log.lines):
            about = name.removesuffix("jsonl") + "meta.json"
            originals = {n: files[n] for n in (name, about) if n in files}
            agents[agent] = Subagent(agent, log.lines, _meta(files, about, own), originals, own)
    return agents


def _meta(files: Mapping[str, bytes], name: str, gathered: Gathered) -> Extra:
    if name not in files:
        return {}
    try:
        value = read_json(files[name], replace_invalid=True).value
    except InvalidInputError:
        gathered.warnings.append(f"{name} could not be read")
        return {}
    return value if isinstance(value, dict) else {}


def _draft(
    key: str, session_id: str, lines: list[Line], lane: Lane, found: Gathered
) -> SessionDraft:
    """Return a lane as a draft; `found` is what its file held beside the lines of the lane."""
    path = path_to(lane.leaf)
    times = (line.timestamp for line in lines)
    for kind, count in found.kept_aside.items():
        lane.gathered.keep_aside(kind, count)
    return SessionDraft(
        format="claude-code",
        agent=_agent(lines, lane),
        steps=[step for turn in path for step in turn.steps],
        key=key,
        trajectory_id=key,
        session_id=session_id,
        started_at=next((at for at in times if at is not None), None),
        turn_ends=ends(path),
        abandoned=abandoned(lane.turns, path),
        media=list(lane.gathered.media.values()),
        kept_aside=lane.gathered.kept_aside,
        warnings=found.warnings + lane.gathered.warnings,
        replaced_characters=found.replaced_characters,
    )


def _child(agent: Subagent, session_id: str, lane: Lane) -> SessionDraft:
    draft = _draft(agent.id, session_id, agent.lines, lane, agent.gathered)
    description = agent.meta.get("description")
    draft.title = description if isinstance(description, str) and description else None
    if agent.meta:
        own = (draft.agent.extra or {}).get("claude_code", {})
        draft.agent.extra = {"claude_code": own | agent.meta}
    draft.originals = agent.originals
    return draft


def _agent(lines: list[Line], lane: Lane) -> Agent:
    """Describe the program: the release that wrote last, the model that answered most."""
    models = Counter(r.draft.step.model_name for r in lane.responses if r.draft.step.model_name)
    latest = {
        name: value
        for line in lines
        for name in ("version", "cwd", "gitBranch", "entrypoint")
        if (value := line.text(name)) is not None
    }
    version = latest.pop("version", "unknown")
    return Agent(
        name=AGENT,
        version=version,
        model_name=models.most_common(1)[0][0] if models else None,
        extra={"claude_code": latest} if latest else None,
    )


def _title(lines: list[Line]) -> str | None:
    """Return the latest title. A summary counts where it is of this log: many are of others."""
    uuids = {line.uuid for line in lines}
    titles: dict[str, str] = {}
    for line in lines:
        name = _TITLES.get(line.type)
        if name is None or (line.type == "summary" and line.text("leafUuid") not in uuids):
            continue
        if (title := line.text(name)) is not None:
            titles[line.type] = title
    return next((titles[kind] for kind in _TITLES if kind in titles), None)
