"""The tools a thread could use, in OpenAI's function shape."""

from stenograph.trajectories.atif.format import Json


def tool_definitions(tools: list[Json]) -> list[dict[str, Json]]:
    """Return definitions as ATIF wants them; tools of a namespace name it."""
    found: list[dict[str, Json]] = []
    for tool in tools:
        if not isinstance(tool, dict):
            continue
        inner = tool.get("tools")
        if tool.get("type") == "namespace" and isinstance(inner, list):
            found += [{"namespace": tool.get("name")} | one for one in tool_definitions(inner)]
        elif tool.get("type") == "function" and "function" not in tool:
            about = {name: value for name, value in tool.items() if name != "type"}
            found.append({"type": "function", "function": about})
        else:
            found.append(tool)
    return found
