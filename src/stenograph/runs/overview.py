"""A run at a glance, and one of its tasks in full."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stenograph.conversations.variant import Model, model_of
from stenograph.runs import store, store_reads
from stenograph.runs.run import Run
from stenograph.runs.task import Kind, Status, Task, Visibility
from stenograph.runs.transcript import Tokens
from stenograph.storage.database import Tx

#: How many of a run's newest tasks the overview lists; the transcript pages through all.
TASKS = 200
#: How many of its newest tasks are counted: a run of 100,000 costs no more than one of these.
COUNTED = 5_000


@dataclass(frozen=True, slots=True)
class TaskLine:
    """A task in short."""

    key: str
    kind: Kind
    status: Status
    visibility: Visibility
    mainline: int
    name: str | None
    started_at: int | None
    completed_at: int | None


@dataclass(frozen=True, slots=True)
class Overview:
    """A run with its turn and its newest tasks that are not hidden, in order of making.

    `counts`: how many of its newest `COUNTED` such tasks there are, by status.
    """

    turn: str
    position: int
    turn_kind: str
    turn_status: str
    variant: str
    tasks: Sequence[TaskLine]
    counts: Mapping[Status, int]
    deliverable: str | None


@dataclass(frozen=True, slots=True)
class Detail:
    """A task in full. `input` is JSON. `model` and `tokens`: of a round's selected call."""

    parent: str | None
    round: str | None
    child: str | None
    input: str | None
    output: str | None
    model: Model | None
    tokens: Tokens | None


def of(tx: Tx, run: Run) -> Overview:
    """Return a run at a glance; once its details were collected there are no tasks."""
    turn, position, kind, status, variant = store_reads.turn_of(tx, run.turn_id, run.variant_id)
    lines = [TaskLine(*row) for row in store_reads.newest_tasks(tx, run.id, TASKS)]
    return Overview(
        turn=turn,
        position=position,
        turn_kind=kind,
        turn_status=status,
        variant=variant,
        tasks=lines[::-1],
        counts=store_reads.progress(tx, run.id, COUNTED),
        deliverable=store_reads.deliverable(tx, run.id) if run.delivered_at else None,
    )


def detail(tx: Tx, task: Task) -> Detail:
    """Return what a task was given and what came of it, whole."""
    around = [i for i in (task.parent_id, task.round_id) if i is not None]
    keys = store.keys(tx, around) if around else {}
    given, output = store.task_details(tx, task.id)
    model, tokens = None, None
    if task.selected_invocation_id is not None:
        answer = store_reads.answer(tx, task.selected_invocation_id)
        if answer is not None:
            output, *columns, receipt_id, prompt, completion, cached, reasoning, cost = answer
            model = model_of(*columns)
            if receipt_id is not None:
                tokens = Tokens(prompt, completion, cached, reasoning, cost)
    return Detail(
        parent=keys.get(task.parent_id or 0),
        round=keys.get(task.round_id or 0),
        child=_child(tx, task),
        input=given,
        output=output,
        model=model,
        tokens=tokens,
    )


def _child(tx: Tx, task: Task) -> str | None:
    if task.child_conversation_id is None:
        return None
    return store.child(tx, task.child_conversation_id)
