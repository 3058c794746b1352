"""Tasks: the steps of a run. A *round* is a model task; what it calls are tool tasks and others.

Keys (agent-api.md 4.2): the first round is `r1`; its calls take the next number, `r2t0`, `r2t1`;
the round that reads their results is `r2`. A branch hangs under the call that delegated it: the
call is the parent of each of the branch's rounds, which are not mainline.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from stenograph.clock import now
from stenograph.errors import NotFoundError
from stenograph.events import catalogue
from stenograph.events.journal import Event, append
from stenograph.runs import store
from stenograph.runs.run import Run
from stenograph.storage.database import Tx

Kind: TypeAlias = Literal["model_task", "tool_task", "await_task", "join_task", "delegation_task"]
Status: TypeAlias = Literal[
    "queued", "needs_approval", "running", "dispatched", "awaiting_input",
    "completed", "failed", "canceled", "timed_out", "uncertain", "skipped",
]  # fmt: skip
Visibility: TypeAlias = Literal["visible", "collapsed", "hidden"]

TERMINAL: tuple[Status, ...] = (
    "completed", "failed", "canceled", "timed_out", "uncertain", "skipped",
)  # fmt: skip
_DEFAULTS: dict[Kind, Visibility] = {
    "model_task": "visible",
    "tool_task": "collapsed",
    "await_task": "hidden",
    "join_task": "hidden",
    "delegation_task": "collapsed",
}


@dataclass(frozen=True, slots=True)
class Task:
    """A task of a run. `round_id` is the model task that called it, `parent_id` what it hangs
    under: that round, the script that made the call, or for a branch's round the call."""

    id: int
    run_id: int
    key: str
    kind: Kind
    status: Status
    visibility: Visibility
    mainline: int
    parent_id: int | None
    round_id: int | None
    call_index: int | None
    tool_call_id: str | None
    name: str | None
    selected_invocation_id: int | None
    child_conversation_id: int | None
    error: str | None
    started_at: int | None
    completed_at: int | None


@dataclass(frozen=True, slots=True)
class Call:
    """What a round calls: a function's name and its arguments as JSON.

    `script` is the key of an earlier call of the same round whose script makes this one.
    """

    name: str
    input: str
    tool_call_id: str | None = None
    kind: Kind = "tool_task"
    visibility: Visibility | None = None
    script: str | None = None


def public_status(status: Status) -> str:
    """Return the word for a status that leaves the house."""
    return "waiting" if status == "queued" else status


def find(tx: Tx, run: Run, key: str) -> Task:
    """Return a task of a run, hidden or not. Raises `NotFoundError`."""
    row = store.task(tx, run.id, key)
    if row is None:
        raise NotFoundError("Not found")
    return Task(*row)


def add_round(
    tx: Tx,
    run: Run,
    *,
    after: Sequence[Task] = (),
    branch: Task | None = None,
    key: str | None = None,
    visibility: Visibility = "visible",
) -> Task:
    """Add a model task that waits to be asked.

    `after`: the calls whose results it reads; it takes their number. `branch`: the call that
    delegated it. `key`: a key of its own instead.
    """
    if key is None:
        key = after[0].key.partition("t")[0] if after else f"r{store.take_round(tx, run.id)}"
    return _add(
        tx,
        run,
        key,
        "model_task",
        visibility=visibility,
        mainline=branch is None,
        parent_id=None if branch is None else branch.id,
    )


def add_calls(tx: Tx, run: Run, round: Task, calls: Sequence[Call]) -> list[Task]:
    """Add what a round calls, in order; they share the next round's number."""
    number = store.take_round(tx, run.id)
    made: list[Task] = []
    for index, call in enumerate(calls):
        scripts = {task.key: task.id for task in made}
        made.append(
            _add(
                tx,
                run,
                f"r{number}t{index}",
                call.kind,
                visibility=call.visibility or _DEFAULTS[call.kind],
                mainline=bool(round.mainline),
                parent_id=round.id if call.script is None else scripts[call.script],
                round_id=round.id,
                call_index=index,
                tool_call_id=call.tool_call_id,
                name=call.name,
                input=call.input,
            )
        )
    return made


def add_beneath(tx: Tx, run: Run, script: Task, call: Call) -> Task:
    """Add a call that a running script makes, behind all other calls of its round."""
    assert script.round_id is not None
    index = store.last_index(tx, script.round_id) + 1
    return _add(
        tx,
        run,
        f"{script.key.partition('t')[0]}t{index}",
        call.kind,
        visibility=call.visibility or _DEFAULTS[call.kind],
        mainline=bool(script.mainline),
        parent_id=script.id,
        round_id=script.round_id,
        call_index=index,
        tool_call_id=call.tool_call_id,
        name=call.name,
        input=call.input,
    )


def _add(
    tx: Tx,
    run: Run,
    key: str,
    kind: Kind,
    *,
    visibility: Visibility,
    mainline: bool,
    input: str | None = None,
    **columns: int | str | None,
) -> Task:
    store.add_task(
        tx,
        input,
        run_id=run.id,
        key=key,
        kind=kind,
        status="queued",
        transcript_visibility=visibility,
        mainline=mainline,
        created_at=now(),
        **columns,
    )
    added = find(tx, run, key)
    _tell(tx, run, added, "task_status")
    return added


def start(tx: Tx, run: Run, task: Task, status: Status = "running") -> Task:
    """Say that a task is being worked on, or waits for someone."""
    begun = {} if status == "needs_approval" else {"started_at": task.started_at or now()}
    store.update_task(tx, task.id, status=status, **begun)
    started = find(tx, run, task.key)
    _tell(tx, run, started, "task_status")
    return started


def settle(
    tx: Tx,
    run: Run,
    task: Task,
    status: Status = "completed",
    *,
    output: str | None = None,
    error: str | None = None,
) -> Task:
    """End a task with what it returned; a round's message lies with its model call instead."""
    store.update_task(tx, task.id, status=status, error=error, completed_at=now())
    if output is not None:
        store.set_output(tx, task.id, output)
    settled = find(tx, run, task.key)
    _tell(tx, run, settled, "round_result" if task.kind == "model_task" else "task_status")
    return settled


def reopen(tx: Tx, run: Run, task: Task) -> Task:
    """Let a round that gave no answer wait to be asked again, by a model call of its own."""
    store.update_task(tx, task.id, status="queued", error=None, completed_at=None)
    reopened = find(tx, run, task.key)
    _tell(tx, run, reopened, "task_status")
    return reopened


def _tell(tx: Tx, run: Run, task: Task, event: catalogue.Type) -> None:
    payload = {"task_key": task.key, "status": public_status(task.status)}
    append(
        tx,
        run.conversation_id,
        Event(event, run.turn_id, run.variant_id, run.id, task.id, payload=payload),
    )
