"""What the server tells of runs and their tasks; see `records`."""

from collections.abc import Mapping
from typing import Any

from stenograph.client.records import DefaultRunner, Record, RunnerEffects, UsageSummary
from stenograph.client.turn_records import Model


class TaskLine(Record, frozen=True, kw_only=True):
    """A task in short."""

    task_key: str
    kind: str
    status: str
    visibility: str
    mainline: bool
    name: str | None = None
    started_at: str | None = None
    completed_at: str | None = None


class TaskProgress(Record, frozen=True, kw_only=True):
    """How many tasks there are and have ended, and how many stand how."""

    total: int
    settled: int
    statuses: Mapping[str, int]


class RunTurn(Record, frozen=True, kw_only=True):
    """The turn and the candidate that a run answers."""

    public_id: str
    position: int
    kind: str
    status: str
    variant_public_id: str


class Attention(Record, frozen=True, kw_only=True):
    """Why a run waits for a person: `approval`, of the calls named, or what held it."""

    reason: str | None = None
    task_keys: tuple[str, ...] | None = None


class Run(Record, frozen=True, kw_only=True):
    """A run at a glance: its newest tasks in order of creation, hidden ones left out."""

    public_id: str
    status: str
    approval_mode: str
    details_pruned_at: str | None = None
    failure_reason: str | None = None
    turn: RunTurn | None = None
    deliverable_task_key: str | None = None
    tasks: tuple[TaskLine, ...]
    task_progress: TaskProgress
    started_at: str | None = None
    paused_at: str | None = None
    completed_at: str | None = None
    attention: Attention | None = None
    runner_effects: RunnerEffects
    prompt_mechanism: Any = None
    default_runner: DefaultRunner | None = None
    created_at: str
    updated_at: str


class TaskUsage(Record, frozen=True, kw_only=True):
    """What a model call took, in tokens; what is not known is None."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost_amount: str | None = None


class CallLine(TaskLine, frozen=True, kw_only=True):
    """A call of a round; `script_task_key` names the call whose script made it."""

    tool_call_id: str | None = None
    script_task_key: str | None = None
    child_conversation_public_id: str | None = None
    error: str | None = None


class Calls(Record, frozen=True, kw_only=True):
    """How many calls a round has, and the first of them."""

    count: int
    items: tuple[CallLine, ...]


class TranscriptRound(Record, frozen=True, kw_only=True):
    """A round; `branches` are the calls beneath which a branch hangs: read it by `prefix`."""

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
    branches: tuple[str, ...]


class Task(TaskLine, frozen=True, kw_only=True):
    """A task in full. Of a round, `output` is its message."""

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


# A run as a whole


class Node(Record, frozen=True, kw_only=True):
    """A task in a graph."""

    task_key: str
    kind: str
    status: str
    visibility: str
    mainline: bool
    name: str | None = None


class Edge(Record, frozen=True, kw_only=True, rename={"source": "from", "target": "to"}):
    """An edge between two tasks, by key. `structural`: the second lies in the first; else it reads
    what came of it."""

    source: str
    target: str
    structural: bool


class Graph(Record, frozen=True, kw_only=True):
    """A run's newest tasks, hidden ones too; `mermaid` is the same as a flowchart.

    `truncated`: there are older ones.
    """

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    mermaid: str
    truncated: bool = False


class Phase(Record, frozen=True, kw_only=True):
    """A mainline round with what it calls, by status.

    `step`: `waiting`, `model` while it speaks, `calls` while they are made, or `settled`.
    """

    task_key: str
    status: str
    step: str
    calls: Mapping[str, int]
    started_at: str | None = None
    completed_at: str | None = None


class Background(Record, frozen=True, kw_only=True):
    """A task that goes on beside the current phase."""

    task_key: str
    kind: str
    status: str
    name: str | None = None


class Phases(Record, frozen=True, kw_only=True):
    """A run's newest phases, in order; `current` is the key of the one that goes on."""

    phases: tuple[Phase, ...]
    current: str | None = None
    background: tuple[Background, ...]
    spend: UsageSummary


class Approval(Record, frozen=True, kw_only=True):
    """A call that somebody was asked about; `status` is how its task stands."""

    task_key: str
    run_public_id: str
    name: str | None = None
    status: str
    decision: str | None = None
    decided_by_user_public_id: str | None = None
    note: str | None = None
    requested_at: str | None = None
    decided_at: str | None = None
