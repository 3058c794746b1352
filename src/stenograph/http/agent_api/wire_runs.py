"""The shapes of runs and tasks; see `wire` for how absence and null differ."""

from typing import Any, Literal

from stenograph.http.agent_api.wire import BackwardPagination, DefaultRunner, Shape, UsageSummary
from stenograph.http.agent_api.wire_turns import Model, RunnerEffects


class TaskLine(Shape, kw_only=True):
    """A task in short."""

    task_key: str
    kind: str
    status: str
    visibility: str
    mainline: bool
    name: str | None = None
    started_at: str | None = None
    completed_at: str | None = None


class TaskProgress(Shape, kw_only=True):
    """How many of a run's newest 5,000 tasks there are and have ended, and how each stands."""

    total: int
    settled: int
    statuses: dict[str, int]


class RunTurn(Shape, kw_only=True):
    """The turn and the candidate that a run answers."""

    public_id: str
    position: int
    kind: str
    status: str
    variant_public_id: str


class Attention(Shape, kw_only=True):
    """Why a run waits for a person: `approval`, of the calls named, or what held it."""

    reason: str | None
    task_keys: list[str] | None = None


class Run(Shape, kw_only=True):
    """A run at a glance: its newest tasks in order of creation, hidden ones left out."""

    public_id: str
    status: str
    approval_mode: str
    details_pruned_at: str | None = None
    failure_reason: str | None = None
    turn: RunTurn
    deliverable_task_key: str | None = None
    tasks: list[TaskLine]
    task_progress: TaskProgress
    started_at: str | None = None
    paused_at: str | None = None
    completed_at: str | None = None
    attention: Attention | None = None
    runner_effects: RunnerEffects
    prompt_mechanism: None
    default_runner: DefaultRunner | None
    created_at: str
    updated_at: str


class RunAnswer(Shape, kw_only=True):
    """One run."""

    run: Run


class TaskUsage(Shape, kw_only=True):
    """What a model call took; what is not known is absent."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost_amount: str | None = None


class CallLine(TaskLine, kw_only=True):
    """A call of a round; `script_task_key` names the call whose script made it."""

    tool_call_id: str | None = None
    script_task_key: str | None = None
    child_conversation_public_id: str | None = None
    error: str | None = None


class Calls(Shape, kw_only=True):
    """How many calls a round has, and the first of them."""

    count: int
    items: list[CallLine]


class TranscriptRound(Shape, kw_only=True):
    """A round; `branches` are the calls beneath which something hangs (`?prefix=`).

    `compacted_before`: what was before it was summed up for it; `pruned_before`: the model was told
    less than all of it.
    """

    task_key: str
    mainline: bool
    status: str
    visibility: str
    text_preview: str | None = None
    text_bytes: int | None = None
    usage: TaskUsage | None = None
    error: str | None = None
    compacted_before: bool = False
    pruned_before: bool = False
    started_at: str | None = None
    completed_at: str | None = None
    calls: Calls
    branches: list[str]


class Transcript(Shape, kw_only=True):
    """A page of rounds, in order of creation."""

    rounds: list[TranscriptRound]
    pagination: BackwardPagination


class Task(TaskLine, kw_only=True):
    """A task in full. Of a round, `output` is its message; its reasoning is read elsewhere."""

    tool_call_id: str | None = None
    parent_task_key: str | None = None
    round_task_key: str | None = None
    call_index: int | None = None
    child_conversation_public_id: str | None = None
    model: Model | None = None
    usage: TaskUsage | None = None
    input: Any = None
    output: str | None = None
    error: str | None = None


class TaskAnswer(Shape, kw_only=True):
    """One task."""

    task: Task


# A run as a whole


class Node(Shape, kw_only=True):
    """A task in a graph."""

    task_key: str
    kind: str
    status: str
    visibility: str
    mainline: bool
    name: str | None = None


class Edge(Shape, kw_only=True, rename={"source": "from", "target": "to"}):
    """An edge between two tasks. `structural`: the second lies in the first; else it reads what
    came of it."""

    source: str
    target: str
    structural: bool


class Graph(Shape, kw_only=True):
    """A run's newest 2,000 tasks, hidden ones too; `mermaid` is the same as a flowchart.

    `truncated`: there are older ones.
    """

    nodes: list[Node]
    edges: list[Edge]
    mermaid: str
    truncated: bool = False


class Phase(Shape, kw_only=True):
    """A mainline round with what it calls, by status; `status` is the round's.

    `step`: the round waits, its model speaks, its calls are made, or all has its end.
    """

    task_key: str
    status: str
    step: Literal["waiting", "model", "calls", "settled"]
    calls: dict[str, int]
    started_at: str | None = None
    completed_at: str | None = None


class Background(Shape, kw_only=True):
    """A task that goes on beside the current phase."""

    task_key: str
    kind: str
    status: str
    name: str | None = None


class Phases(Shape, kw_only=True):
    """A run's newest 200 phases, in order; `current` is the key of the one that goes on.

    `spend` counts all its model calls, superseded ones too.
    """

    phases: list[Phase]
    current: str | None
    background: list[Background]
    spend: UsageSummary
