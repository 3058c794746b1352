"""A run as a graph: its tasks, hidden ones too, what lies in what, and what reads what.

A *structural* edge leads from a task to one that lies in it: from a round to its calls, from a
script to the calls it makes, from a call to the rounds of its branch. Any other leads from a task
to a round that reads what came of it: from the calls of a round (or, where it called nothing, from
the round itself) to the next round beside it, and from a compaction to the round it makes room for.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from stenograph.runs import store_graph as store
from stenograph.runs.run import Run
from stenograph.runs.task import Kind, Status, Visibility
from stenograph.storage.database import Row, Tx

#: How many of a run's newest tasks are drawn.
TASKS = 2_000


@dataclass(frozen=True, slots=True)
class Node:
    """A task. `parent_id` and `round_id` are row ids, as in `task.Task`."""

    id: int
    key: str
    kind: Kind
    status: Status
    visibility: Visibility
    mainline: bool
    name: str | None
    parent_id: int | None
    round_id: int | None


@dataclass(frozen=True, slots=True)
class Edge:
    """An edge between two tasks, by their keys."""

    source: str
    target: str
    structural: bool


@dataclass(frozen=True, slots=True)
class Graph:
    """Nodes in order of making; `truncated`: older tasks are left out."""

    nodes: Sequence[Node]
    edges: Sequence[Edge]
    truncated: bool


def of(tx: Tx, run: Run) -> Graph:
    """Return the graph of a run's newest tasks. One query."""
    rows = store.tasks(tx, run.id, TASKS + 1)
    kept = [_node(row) for row in rows[:TASKS]][::-1]
    return Graph(kept, edges(kept), len(rows) > TASKS)


def _node(row: Row) -> Node:
    row_id, key, kind, status, visibility, mainline, name, parent_id, round_id = row
    return Node(
        row_id, key, kind, status, visibility, bool(mainline), name, parent_id, round_id
    )  # fmt: skip


def edges(nodes: Sequence[Node]) -> list[Edge]:
    """Return the edges between tasks in order of making; none leads to a task that is not among
    them, none closes a circle."""
    known = {node.id: node for node in nodes}
    found = [edge for node in nodes for edge in _above(node, known)]
    calls: dict[int, list[Node]] = {}
    rounds: dict[int | None, list[Node]] = {}
    for node in nodes:
        if node.kind != "model_task" and node.round_id is not None:
            if node.parent_id == node.round_id:
                calls.setdefault(node.round_id, []).append(node)
        elif node.kind == "model_task" and _stands_in_line(node, known):
            rounds.setdefault(None if node.mainline else node.parent_id, []).append(node)
    for beside in rounds.values():
        found += _read(beside, calls)
    return found


def _above(node: Node, known: dict[int, Node]) -> Iterator[Edge]:
    parent = known.get(node.parent_id or 0)
    if parent is None:
        return
    if _makes_room(node, known):
        yield Edge(node.key, parent.key, structural=False)
    else:
        yield Edge(parent.key, node.key, structural=True)


def _stands_in_line(node: Node, known: dict[int, Node]) -> bool:
    """Tell whether a round is one of the mainline's or of a branch's; one that hangs nowhere is
    beside nothing."""
    return not _makes_room(node, known) and (node.mainline or node.parent_id is not None)


def _makes_room(node: Node, known: dict[int, Node]) -> bool:
    """Tell whether a task is a compaction before a round: no branch hangs under a round."""
    parent = known.get(node.parent_id or 0)
    return node.kind == "model_task" and parent is not None and parent.kind == "model_task"


def _read(beside: Sequence[Node], calls: dict[int, list[Node]]) -> Iterable[Edge]:
    for before, after in pairwise(beside):
        for read in calls.get(before.id) or [before]:
            yield Edge(read.key, after.key, structural=False)
