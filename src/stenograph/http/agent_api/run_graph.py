"""A run as a whole: as a graph, and by its phases."""

from collections.abc import Mapping

from stenograph.http.agent_api import wire_runs
from stenograph.http.agent_api.common import Mask, mask, moment
from stenograph.http.agent_api.conversation_document import usage
from stenograph.http.agent_api.runs import R
from stenograph.http.agent_api.variants import EXPIRED
from stenograph.http.context import Ctx
from stenograph.http.route import Route, get
from stenograph.runs import graph, mermaid, phases
from stenograph.runs import run as runs
from stenograph.runs.phases import Phase
from stenograph.runs.task import Status, public_status
from stenograph.storage.database import Tx


@get(
    R + "/graph",
    id="getRunGraph",
    tag="Runs",
    answer=wire_runs.Graph,
    errors={410: EXPIRED},
)
async def get_graph(ctx: Ctx, workspace: str, run: str) -> wire_runs.Graph:
    """Read a run as a graph: tasks, hidden ones too, what lies in what, and what reads what."""

    def look(tx: Tx) -> wire_runs.Graph:
        conversation, found = runs.find(tx, ctx.caller, workspace, run)
        runs.require_details(found)
        cover = mask(ctx, tx, [conversation.id])
        drawn = graph.of(tx, found)
        return wire_runs.Graph(
            nodes=[
                wire_runs.Node(
                    task_key=node.key,
                    kind=node.kind,
                    status=public_status(node.status),
                    visibility=node.visibility,
                    mainline=node.mainline,
                    name=cover.text(node.name),
                )
                for node in drawn.nodes
            ],
            edges=[
                wire_runs.Edge(source=edge.source, target=edge.target, structural=edge.structural)
                for edge in drawn.edges
            ],
            mermaid=mermaid.flowchart(drawn, lambda name: cover.text(name) or ""),
            truncated=drawn.truncated,
        )

    return await ctx.read(look)


@get(
    R + "/phases",
    id="getRunPhases",
    tag="Runs",
    answer=wire_runs.Phases,
    errors={410: EXPIRED},
)
async def get_phases(ctx: Ctx, workspace: str, run: str) -> wire_runs.Phases:
    """Read how far a run has come: its mainline rounds with their calls, and what it spent."""

    def look(tx: Tx) -> wire_runs.Phases:
        conversation, found = runs.find(tx, ctx.caller, workspace, run)
        runs.require_details(found)
        return _write(phases.of(tx, found), mask(ctx, tx, [conversation.id]))

    return await ctx.read(look)


def _write(found: phases.Phases, cover: Mask) -> wire_runs.Phases:
    return wire_runs.Phases(
        phases=[_phase(one) for one in found.phases],
        current=found.current,
        background=[
            wire_runs.Background(
                task_key=one.key,
                kind=one.kind,
                status=public_status(one.status),
                name=cover.text(one.name),
            )
            for one in found.background
        ],
        spend=usage(found.spend),
    )


def _phase(found: Phase) -> wire_runs.Phase:
    return wire_runs.Phase(
        task_key=found.key,
        status=public_status(found.status),
        step=found.step,
        calls=_counted(found.calls),
        started_at=moment(found.started_at),
        completed_at=moment(found.completed_at),
    )


def _counted(calls: Mapping[Status, int]) -> dict[str, int]:
    return {public_status(status): count for status, count in calls.items()}


routes: list[Route] = [get_graph, get_phases]
