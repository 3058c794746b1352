"""Tool calls and what came back: items of the conversation, and the events beside them.

An item tells what the model wrote and was sent; the event with the same id what the program did
(exit code, duration, status). Only the former is content; of the latter the small facts are kept.
"""

import re
from typing import Any, NamedTuple

from stenograph.errors import InvalidInputError
from stenograph.trajectories.atif.format import (
    Content,
    Extra,
    Json,
    ObservationResult,
    SubagentTrajectoryRef,
    ToolCall,
)
from stenograph.trajectories.atif.reading import read_json
from stenograph.trajectories.importers.codex.content import Gathered, as_json, image, joined, parts
from stenograph.trajectories.importers.codex.lines import Line

#: Events of the program's own work on a call, by the item that later logs write instead.
_EVENTS = {
    "exec_command_end": "CommandExecution",
    "patch_apply_end": "FileChange",
    "mcp_tool_call_end": "McpToolCall",
    "web_search_end": "WebSearch",
    "view_image_tool_call": "ImageView",
    "collab_agent_spawn_end": "CollabAgentToolCall",
}
_WORK = {*_EVENTS.values(), "DynamicToolCall", "ImageGeneration"}
_FACTS = ("status", "duration", "cwd", "source", "server", "error", "agent_nickname")
_EXIT_CODE = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d{1,9})$", re.MULTILINE)
#: The code-mode tool: its JavaScript calls other tools.
SCRIPT = "exec"


class Outcome(NamedTuple):
    """What an output says: its content, and what is known beside it."""

    content: Content | None
    extra: Extra
    children: list[str]


def call(item: dict[str, Json], call_id: str) -> ToolCall:
    """Return a `…_call` item as a tool call; free text and what is no object go under `input`."""
    kind = str(item["type"])
    name = item.get("name")
    own = {n: v for n in ("id", "namespace") if isinstance(v := item.get(n), str)}
    if item.get("status") not in (None, "completed"):
        own["status"] = item["status"]
    arguments = _arguments(item)
    if not isinstance(arguments, dict):
        if isinstance(item.get("arguments"), str):
            own["raw_arguments"] = item["arguments"]
        arguments = {"input": arguments}
    return ToolCall(
        tool_call_id=call_id,
        function_name=name if isinstance(name, str) and name else kind.removesuffix("_call"),
        arguments=arguments,
        extra={"codex": own} if own else None,
    )


def _arguments(item: dict[str, Json]) -> Json:
    if item["type"] == "image_generation_call":
        return {"prompt": item.get("revised_prompt")}
    given = (item[name] for name in ("arguments", "input", "action") if name in item)
    found: Json = next(given, {})
    if not isinstance(found, str) or item["type"] == "custom_tool_call":
        return found
    if not found.strip():
        return {}
    try:
        value = read_json(found.encode()).value
    except InvalidInputError:
        return found
    return value if isinstance(value, dict) else found


def answer_within(item: dict[str, Json], gathered: Gathered) -> Outcome | None:
    """Return the result of a call that the provider answered itself, in the same item."""
    if item["type"] == "image_generation_call" and isinstance(item.get("result"), str):
        return Outcome([image(f"data:image/png;base64,{item['result']}", gathered)], {}, [])
    if item["type"] == "web_search_call" and item.get("status") in (None, "completed"):
        return Outcome(None, {"codex": {"status": "completed"}}, [])
    return None


def output(item: dict[str, Json], gathered: Gathered) -> Outcome:
    """Return a `…_output` item: exactly what the model was sent, and what that tells."""
    native = item.get("output", item.get("tools", item.get("result")))
    extra: Extra = {}
    if isinstance(native, dict) and "content" in native:
        if native.get("success") is False:
            extra["is_error"] = True
        native = native["content"]
    if isinstance(native, str):
        content: Content | None = native
    elif isinstance(native, list) and item["type"] != "tool_search_output":
        content = joined(parts(native, gathered))
    else:
        content = None if native is None else as_json(native)
    text = content if isinstance(content, str) else ""
    said = _object(text)
    metadata = said.get("metadata")
    told = metadata.get("exit_code") if isinstance(metadata, dict) else None
    if type(told) is int:
        extra["exit_code"] = told
    else:
        head, mark, _ = f"\n{text[:500]}".partition("\nOutput:\n")
        if mark and (code := _EXIT_CODE.search(head)):
            extra["exit_code"] = int(code[1])
    child = said.get("agent_id")
    return Outcome(content, extra, [child] if isinstance(child, str) else [])


def _object(text: str) -> dict[str, Json]:
    if not text.startswith("{"):
        return {}
    try:
        value = read_json(text.encode()).value
    except InvalidInputError:
        return {}
    return value if isinstance(value, dict) else {}


def work(line: Line) -> dict[str, Json] | None:
    """Return what an event tells of the program's work on a call; None for other events."""
    if line.kind == "item_completed":
        item = line.object("item")
        kind = item.get("type")
        known = isinstance(kind, str) and kind in _WORK and isinstance(item.get("id"), str)
        return item if known else None
    if line.kind in _EVENTS and (call_id := line.text("call_id")):
        return line.payload | {"type": _EVENTS[line.kind], "id": call_id}
    return None


def facts(item: dict[str, Json]) -> Extra:
    """Return the small facts of a work item as the extra of a result."""
    own: Extra = {n: v for n in _FACTS if (v := item.get(n)) is not None and _is_small(v)}
    if isinstance(changes := item.get("changes"), dict):
        own["files"] = list(changes)
    extra: Extra = {"codex": own} if own else {}
    if type(code := item.get("exit_code")) is int:
        extra["exit_code"] = code
    # A command that failed is for the model to read; other tools fail as tools.
    failed = item["type"] != "CommandExecution" and item.get("status") == "failed"
    if failed or item.get("success") is False or _mcp(item).get("isError") is True:
        extra["is_error"] = True
    return extra


def children(item: dict[str, Json]) -> list[str]:
    """Return the ids of the threads that this call started."""
    if item["type"] != "CollabAgentToolCall" or item.get("tool", "spawn_agent") != "spawn_agent":
        return []
    named = item.get("receiver_thread_ids", [item.get("new_thread_id")])
    return [name for name in named if isinstance(name, str)] if isinstance(named, list) else []


def nested(item: dict[str, Json], parent: str | None) -> tuple[ToolCall, ObservationResult]:
    """Return work that a script asked for as a call of its own, with what came back."""
    name, arguments = _nested_call(item)
    result = ObservationResult(source_call_id=item["id"], content=_nested_content(item))
    made = ToolCall(
        tool_call_id=item["id"],
        function_name=name,
        arguments=arguments,
        extra=None if parent is None else {"parent_tool_call_id": parent},
    )
    return made, result


def _nested_call(item: dict[str, Json]) -> tuple[str, dict[str, Json]]:
    kind, command = item["type"], item.get("command")
    if kind == "CommandExecution":
        shell = isinstance(command, list) and len(command) == 3 and command[1] in ("-lc", "-c")
        return "exec_command", {"cmd": command[2] if shell and command else command}
    if kind == "FileChange":
        return "apply_patch", {"changes": item.get("changes")}
    if kind == "McpToolCall":
        invocation = item.get("invocation")
        told = invocation if isinstance(invocation, dict) else item
        arguments = told.get("arguments")
        given = arguments if isinstance(arguments, dict) else {"input": arguments}
        return str(told.get("tool")), given
    name = item.get("tool")
    fields = ("prompt", "query", "action", "path", "arguments")
    given = {n: v for n in fields if (v := item.get(n)) is not None}
    snake = re.sub(r"(?<!^)(?=[A-Z])", "_", kind).lower()
    return (name if isinstance(name, str) else snake), given


def _nested_content(item: dict[str, Json]) -> str | None:
    for name in ("aggregated_output", "stdout"):
        if isinstance(text := item.get(name), str):
            return text
    result = item.get("result")
    return None if result is None else as_json(result)


def _mcp(item: dict[str, Json]) -> dict[str, Any]:
    result = item.get("result")
    if isinstance(result, dict):
        result = result.get("Ok", result)
    return result if isinstance(result, dict) else {}


def _is_small(value: Json) -> bool:
    return len(as_json(value)) <= 1_000


def refer(result: ObservationResult, threads: list[str]) -> None:
    """Point a result at the threads that its call started, each once."""
    refs = result.subagent_trajectory_ref or []
    known = {ref.trajectory_id for ref in refs}
    refs += [SubagentTrajectoryRef(trajectory_id=t) for t in threads if t not in known]
    result.subagent_trajectory_ref = refs or None


def merged(extra: Extra | None, more: Extra) -> Extra | None:
    """Add facts to the extra of a result, `codex` by its fields."""
    both = (extra or {}) | more
    own = {**(extra or {}).get("codex", {}), **more.get("codex", {})}
    return (both | ({"codex": own} if own else {})) or None
