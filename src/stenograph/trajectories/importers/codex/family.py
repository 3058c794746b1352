"""Threads that were read together: each under the one that started it, named by its call."""

from collections.abc import Iterable, Iterator

from stenograph.trajectories.atif.format import Json, ObservationResult, ToolCall
from stenograph.trajectories.importers.codex.calls import refer
from stenograph.trajectories.importers.draft import SessionDraft

_SPAWN = "spawn_agent"


def join(drafts: Iterable[SessionDraft]) -> list[SessionDraft]:
    """Hang threads under their parents; returns those whose parent is not among them."""
    by_key: dict[str, SessionDraft] = {}
    for draft in drafts:
        by_key.setdefault(draft.key, draft)
    roots = []
    for draft in sorted(by_key.values(), key=lambda draft: draft.started_at or ""):
        parent = None if draft.parent_key is None else by_key.get(draft.parent_key)
        if parent is None:
            roots.append(draft)
        else:
            parent.children.append(draft)
            _name(parent, draft)
    return roots


def _name(parent: SessionDraft, child: SessionDraft) -> None:
    """Make sure that the call which started a child refers to it.

    Mostly its result named the thread. Multi-agent v2 says only the task's name, which is the last
    part of the child's path.
    """
    results = list(_answered(parent))
    for _, result in results:
        refs = result.subagent_trajectory_ref or ()
        if any(ref.trajectory_id == child.trajectory_id for ref in refs):
            return
    task = _agent_path(child).rpartition("/")[2]
    for call, result in results:
        named = call.function_name == _SPAWN and call.arguments.get("task_name") == task
        if named and task and not result.subagent_trajectory_ref:
            refer(result, [child.key])
            return
    parent.warnings.append(f"Nothing here tells which call started the thread {child.key}")


def _answered(draft: SessionDraft) -> Iterator[tuple[ToolCall, ObservationResult]]:
    for step in draft.steps:
        results = step.step.observation.results if step.step.observation else []
        for call in step.step.tool_calls or ():
            yield from ((call, r) for r in results if r.source_call_id == call.tool_call_id)


def _agent_path(draft: SessionDraft) -> str:
    """Return a thread's name in multi-agent v2, `/root/a/b`."""
    found: Json = (draft.agent.extra or {}).get("codex")
    for name in ("source", "subagent", "thread_spawn", "agent_path"):
        found = found.get(name) if isinstance(found, dict) else None
    return found if isinstance(found, str) else ""
