"""Subagents: whose log is whose, and which call started it."""

from dataclasses import dataclass, field

from stenograph.trajectories.atif.format import Json, SubagentTrajectoryRef
from stenograph.trajectories.importers.claude_code.content import Gathered
from stenograph.trajectories.importers.claude_code.lines import Line
from stenograph.trajectories.importers.claude_code.messages import texts
from stenograph.trajectories.importers.claude_code.walk import Lane
from stenograph.trajectories.importers.draft import SessionDraft


@dataclass(slots=True)
class Subagent:
    """A subagent: its lines, what the program noted about it, and the files it is from."""

    id: str
    lines: list[Line]
    meta: dict[str, Json] = field(default_factory=dict)
    originals: dict[str, bytes] = field(default_factory=dict)
    gathered: Gathered = field(default_factory=Gathered)

    @property
    def prompt(self) -> str | None:
        first = next((line for line in self.lines if line.type == "user"), None)
        found = [] if first is None else texts(first.content)
        return found[0] if found else None


def sidechains(lines: list[Line]) -> list[Subagent]:
    """Return the subagents whose lines lie in the session's own file (before 2.0.40).

    A chain begins with a line that has no parent among the sidechains.
    """
    found: dict[str, Subagent] = {}
    chain_of: dict[str, str] = {}
    last: str | None = None
    for line in lines:
        own = line.text("agentId") or chain_of.get(line.text("parentUuid") or "")
        begins = own is None and (last is None or "parentUuid" in line.fields)
        name = own or (line.uuid or f"line-{line.number}" if begins else last) or ""
        last = name
        if line.uuid is not None:
            chain_of[line.uuid] = name
        found.setdefault(name, Subagent(name, [])).lines.append(line)
    return list(found.values())


def place(
    agents: dict[str, Subagent],
    lanes: dict[str, Lane],
    drafts: dict[str, SessionDraft],
    root: str,
) -> None:
    """Hang each subagent's draft under the one that started it, and point at it from the result.

    `lanes` and `drafts` are by agent id, `root` is the session's own entry in them.
    """
    parents: dict[str, str] = {}
    taken: set[str] = set()
    for agent in agents.values():
        parent, call_id = _started_by(agent, lanes, taken)
        above = agent.meta.get("parentAgentId") or _parent_named(agent)
        if parent is None and isinstance(above, str) and above in lanes:
            parent = above
        elif parent is None:
            drafts[root].warnings.append(
                f"Nothing here tells which call started the subagent {agent.id}"
            )
        if call_id is not None:
            taken.add(call_id)
        parents[agent.id] = parent or root
        _point(agent.id, lanes, drafts[agent.id], parents[agent.id], call_id)
    for name in agents:
        if _is_under_itself(name, parents, root):
            drafts[root].warnings.append(f"The subagent {name} is said to have started itself")
            parents[name] = root
        drafts[parents[name]].children.append(drafts[name])
    for draft in drafts.values():
        draft.children.sort(key=lambda child: child.started_at or "")


def _parent_named(agent: Subagent) -> str | None:
    return next((p for line in agent.lines if (p := line.text("parentAgentId"))), None)


def _started_by(
    agent: Subagent, lanes: dict[str, Lane], taken: set[str]
) -> tuple[str | None, str | None]:
    """Return the lane and call that started a subagent: by its result, its note, or its prompt."""
    others = {name: lane for name, lane in lanes.items() if name != agent.id}
    for name, lane in others.items():
        for found in lane.agent_results.get(agent.id, ()):
            return name, found.source_call_id
    noted = agent.meta.get("toolUseId")
    if isinstance(noted, str):
        for name, lane in others.items():
            if lane.call(noted) is not None:
                return name, noted
    prompt = agent.prompt
    for name, lane in others.items():
        for response in lane.responses if prompt is not None else ():
            for call in response.calls.values():
                if call.tool_call_id not in taken and call.arguments.get("prompt") == prompt:
                    return name, call.tool_call_id
    return None, None


def _point(
    agent_id: str, lanes: dict[str, Lane], child: SessionDraft, parent: str, call_id: str | None
) -> None:
    """Name the child in every result that is its answer; a text stays beside the reference."""
    lane = lanes[parent]
    results = list(lane.agent_results.get(agent_id, ()))
    response = None if call_id is None else lane.call(call_id)
    if not results and response is not None and call_id is not None:
        results = response.results.get(call_id, [])
    for found in results:
        found.subagent_trajectory_ref = [SubagentTrajectoryRef(trajectory_id=child.trajectory_id)]
        if not found.content:
            answers = [step.step.message for step in child.steps if step.part == "agent"]
            found.content = answers[-1] if answers else None


def _is_under_itself(name: str, parents: dict[str, str], root: str) -> bool:
    seen = {name}
    while (name := parents.get(name, root)) != root:
        if name in seen:
            return True
        seen.add(name)
    return False
