"""A run's graph in the language of Mermaid, which draws it (https://mermaid.js.org, flowcharts)."""

from collections.abc import Callable, Iterator

from stenograph.runs.graph import Graph, Node
from stenograph.runs.task import Kind, public_status

#: By kind: what stands before and behind the label, which makes the shape.
_SHAPES: dict[Kind, tuple[str, str]] = {
    "model_task": ("[", "]"),
    "tool_task": ("(", ")"),
    "await_task": ("{{", "}}"),
    "join_task": ("{{", "}}"),
    "delegation_task": ("[[", "]]"),
}
#: Letters of a name that are shown.
_LONGEST = 60


def flowchart(graph: Graph, cover: Callable[[str], str]) -> str:
    """Write a graph as a flowchart; names are masked by `cover`.

    Nodes are `n0`, `n1`, … in order of making. A structural edge is dotted, a hidden task has the
    class `hidden`.
    """
    return "\n".join(_lines(graph, cover)) + "\n"


def _lines(graph: Graph, cover: Callable[[str], str]) -> Iterator[str]:
    ids = {node.key: f"n{number}" for number, node in enumerate(graph.nodes)}
    yield "flowchart TD"
    for node in graph.nodes:
        before, behind = _SHAPES[node.kind]
        marked = ":::hidden" if node.visibility == "hidden" else ""
        yield f'  {ids[node.key]}{before}"{_label(node, cover)}"{behind}{marked}'
    for edge in graph.edges:
        arrow = "-.->" if edge.structural else "-->"
        yield f"  {ids[edge.source]} {arrow} {ids[edge.target]}"
    if any(node.visibility == "hidden" for node in graph.nodes):
        yield "  classDef hidden stroke-dasharray: 4 4"


def _label(node: Node, cover: Callable[[str], str]) -> str:
    name = f" {_cut(cover(node.name))}" if node.name else ""
    return escape(f"{node.key}{name}: {public_status(node.status)}")


def _cut(name: str) -> str:
    return name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"


def escape(text: str) -> str:
    """Write a text so that Mermaid reads it as a label in quotes, and as nothing else.

    Only letters and digits of any script, spaces and a few marks stand for themselves; all else is
    written by its number (`#35;`).
    """
    return "".join(it if it.isalnum() or it in " .,:-_…" else f"#{ord(it)};" for it in text)
