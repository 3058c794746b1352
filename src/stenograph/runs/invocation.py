"""Invocations: the model calls that were made for a task, one of which is selected.

A retry makes a new invocation and moves the task's pointer; the superseded one stays, and no
reading shows it.
"""

from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

from stenograph.clock import now
from stenograph.conversations.turn import Turn
from stenograph.conversations.variant import Model, Variant
from stenograph.events.journal import Event, append
from stenograph.runs import request, store, task
from stenograph.runs.run import Run
from stenograph.runs.task import Task
from stenograph.storage.database import Tx

Status: TypeAlias = Literal["queued", "running", "completed", "failed", "canceled", "timed_out"]


@dataclass(frozen=True, slots=True)
class Invocation:
    """A model call, and the rows it belongs to: a run's task, or a direct reply's candidate."""

    id: int
    conversation_id: int
    turn_id: int
    variant_id: int
    run_id: int | None
    task_id: int | None
    model: Model


@dataclass(frozen=True, slots=True)
class Usage:
    """What a call took. Prompt tokens hold the cached and the newly cached ones; None: unknown."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost_usd: float | None = None


def select(tx: Tx, run: Run, of: Task, model: Model) -> Invocation:
    """Make a model call for a task and select it; an earlier one is superseded."""
    invocation_id = _insert(
        tx, model, task_id=of.id, variant_id=None, number=store.calls_before(tx, of.id) + 1
    )
    store.update_task(tx, of.id, selected_invocation_id=invocation_id)
    task.start(tx, run, of)
    return Invocation(
        invocation_id, run.conversation_id, run.turn_id, run.variant_id, run.id, of.id, model
    )


def attach(tx: Tx, turn: Turn, variant: Variant, model: Model | None = None) -> Invocation:
    """Make the model call that answers a direct reply, with the candidate's own model or another;
    an earlier one is superseded."""
    model = model or variant.model
    number = store.replies_before(tx, variant.id) + 1
    invocation_id = _insert(tx, model, task_id=None, variant_id=variant.id, number=number)
    store.link_variant(tx, variant.id, invocation_id)
    return Invocation(invocation_id, turn.conversation_id, turn.id, variant.id, None, None, model)


def _insert(
    tx: Tx, model: Model, *, task_id: int | None, variant_id: int | None, number: int
) -> int:
    at = now()
    return store.add_invocation(
        tx,
        task_id=task_id,
        variant_id=variant_id,
        number=number,
        status="running",
        provider_id=model.provider_id,
        model_ref=model.model_ref,
        reasoning_enabled=model.reasoning_enabled,
        reasoning_effort=model.reasoning_effort,
        started_at=at,
        created_at=at,
    )


def seal(
    tx: Tx, invocation: Invocation, entries: list[Any], request_options: dict[str, Any]
) -> None:
    """Keep what is sent to the model: the messages, and the options they go with."""
    request.seal(tx, invocation.id, invocation.run_id, entries, request_options)


def settle(
    tx: Tx,
    invocation: Invocation,
    status: Status = "completed",
    *,
    message: str | None = None,
    reasoning: str | None = None,
    reasoning_trace: str | None = None,
    response: str | None = None,
    usage: Usage | None = None,
) -> None:
    """End a model call. Only a completed one leaves text (agent-api.md 4.2); any may cost.

    `reasoning` is for people, `reasoning_trace` the provider's own material, `response` its whole
    answer as JSON.
    """
    at = now()
    store.update_invocation(tx, invocation.id, status=status, terminal_at=at)
    if status == "completed":
        store.keep_answer(
            tx,
            invocation.id,
            message=message,
            reasoning=reasoning,
            reasoning_trace=reasoning_trace,
            response=response,
        )
    if usage is not None:
        charge(tx, invocation, usage)


def charge(tx: Tx, invocation: Invocation, usage: Usage, *, forgotten: bool = False) -> None:
    """Write the receipt of a model call, once; its end may have been written before.

    `forgotten`: retention has taken the call, so that nothing names it.
    """
    counts = asdict(usage)
    store.add_receipt(
        tx,
        conversation_id=invocation.conversation_id,
        run_id=invocation.run_id,
        variant_id=invocation.variant_id,
        invocation_id=None if forgotten else invocation.id,
        provider_id=invocation.model.provider_id,
        model_ref=invocation.model.model_ref,
        occurred_at=now(),
        **counts,
    )
    append(
        tx,
        invocation.conversation_id,
        Event(
            "usage",
            invocation.turn_id,
            invocation.variant_id,
            invocation.run_id,
            None if forgotten else invocation.task_id,
            payload={name: count for name, count in counts.items() if count is not None},
        ),
    )
