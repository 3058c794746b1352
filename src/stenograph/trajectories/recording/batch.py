"""Rows of many steps at once: ids taken together, one insert a table.

A session of 100,000 steps is half a million rows; one by one they would take minutes on a
database behind a network.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from stenograph.clock import now, parse_iso
from stenograph.events.journal import Event, append_all
from stenograph.sessions.messages import Message
from stenograph.sessions.messages import append_all as append_messages
from stenograph.storage.database import Row, Tx
from stenograph.trajectories.importers.draft import StepDraft
from stenograph.trajectories.recording import store
from stenograph.trajectories.recording.columns import CallColumns, StepColumns

#: Steps per flush: enough to make statements few, few enough to hold.
SIZE = 500


@dataclass(slots=True)
class Place:
    """Where a step belongs: the open turn's rows, and the round that its key names."""

    conversation_id: int
    turn_id: int | None = None
    variant_id: int | None = None
    run_id: int | None = None
    round: int = 0


@dataclass(slots=True)
class Batch:
    """Rows that wait to be written together, by table."""

    tx: Tx
    conversation_id: int
    ids: dict[str, Iterator[int]] = field(default_factory=dict)
    rows: dict[str, list[Row]] = field(default_factory=dict)
    messages: list[Message] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)

    def reserve(self, columns: Iterable[StepColumns | None]) -> None:
        """Take the ids that these steps need (None: a step without a model call)."""
        steps = list(columns)
        calls = sum(len(c.calls) for c in steps if c is not None)
        model = sum(c is not None for c in steps)
        wanted = {"steps": len(steps), "tasks": model + calls, "invocations": model}
        self.ids = {t: iter(self.tx.allocate(t, n)) for t, n in wanted.items()}

    def step(
        self, place: Place, position: int, draft: StepDraft, columns: StepColumns, *, text: bool
    ) -> int:
        """Add the row of a step, and for a model call its task, calls and usage.

        `text`: the message lies with the step itself, not with a turn or an invocation.
        """
        step_id = next(self.ids["steps"])
        task_id = None
        if draft.part == "agent":
            task_id = self._round(place, draft, columns)
        self._add(
            "steps",
            (
                step_id, place.conversation_id, position, draft.part, draft.step.source,
                place.turn_id, place.variant_id, task_id, draft.origin, draft.key,
                store.digest(draft), columns.occurred_at, columns.text if text else None,
                None if draft.part == "agent" else columns.rest,
            ),
        )  # fmt: skip
        return step_id

    def flush(self) -> None:
        """Write everything, in an order that no reference points ahead of."""
        for table, names in store.BULK.items():
            if rows := self.rows.pop(table, None):
                self.tx.insert_many(table, names, rows)
        if self.messages:
            append_messages(self.tx, self.conversation_id, self.messages)
            self.messages = []
        if self.events:
            append_all(self.tx, self.conversation_id, self.events)
            self.events = []

    def _add(self, table: str, row: Row) -> None:
        self.rows.setdefault(table, []).append(row)

    def _round(self, place: Place, draft: StepDraft, columns: StepColumns) -> int:
        """Add a model task `r<n>` with its selected invocation and its calls `r<n+1>t<i>`.

        A log gives a step one time, so no task has a beginning and an end of it: a call has begun
        then, and ended when its result came, where that is told.
        """
        at = columns.occurred_at or now()
        task_id, invocation_id = next(self.ids["tasks"]), next(self.ids["invocations"])
        self._add(
            "tasks",
            (
                task_id, place.run_id, f"r{place.round}", "model_task", "completed", "visible", 1,
                None, None, None, None, None, invocation_id, None, at, at,
            ),
        )  # fmt: skip
        self._add(
            "invocations",
            (
                invocation_id, task_id, "completed", draft.provider_id, columns.model,
                draft.reasoning_enabled, columns.effort, columns.llm_call_count, at, at, at,
            ),
        )  # fmt: skip
        self._add(
            "invocation_details",
            (invocation_id, columns.text, columns.reasoning, draft.reasoning_trace, columns.rest),
        )
        if columns.usage is not None:
            prompt, completion, cached, cost = columns.usage
            self._add(
                "usage_receipts",
                (
                    place.conversation_id, place.run_id, place.variant_id, invocation_id,
                    draft.provider_id, columns.model, prompt, completion, cached,
                    draft.cache_write_tokens, draft.reasoning_tokens, cost, at,
                ),
            )  # fmt: skip
        self.events.append(
            Event(
                "round_result",
                turn_id=place.turn_id,
                variant_id=place.variant_id,
                run_id=place.run_id,
                task_id=task_id,
                payload={"task_key": f"r{place.round}", "status": "completed"},
                occurred_at=at,
            )
        )
        self._calls(place, task_id, draft, columns.calls, at)
        return task_id

    def _calls(
        self, place: Place, round_id: int, draft: StepDraft, calls: list[CallColumns], at: int
    ) -> None:
        parents: dict[str, int] = {}
        extras = {c.tool_call_id: c.extra or {} for c in draft.step.tool_calls or ()}
        for index, call in enumerate(calls):
            task_id = next(self.ids["tasks"])
            parents.setdefault(call.tool_call_id, task_id)
            script = extras[call.tool_call_id].get("parent_tool_call_id")
            parent = parents.get(script) if isinstance(script, str) else None
            status = _status(draft, call)
            done = _time(draft, call)
            key = f"r{place.round + 1}t{index}"
            self._add(
                "tasks",
                (
                    task_id, place.run_id, key, "tool_task", status, "collapsed", 1,
                    round_id if parent in (None, task_id) else parent, round_id, index,
                    call.tool_call_id, call.name, None, at, done, at,
                ),
            )  # fmt: skip
            self._add("task_details", (task_id, call.input, call.output, call.rest))
            self.events.append(
                Event(
                    "task_status",
                    turn_id=place.turn_id,
                    variant_id=place.variant_id,
                    run_id=place.run_id,
                    task_id=task_id,
                    payload={"task_key": key, "status": status},
                    occurred_at=at if done is None else done,
                )
            )


def _status(draft: StepDraft, call: CallColumns) -> str:
    """How a call ended, as far as the log tells; a call nobody saw the end of is `uncertain`."""
    failed = call.tool_call_id in draft.failed_calls
    if call.answered:
        return "failed" if failed else "completed"
    return "canceled" if failed else "uncertain"


def _time(draft: StepDraft, call: CallColumns) -> int | None:
    text = draft.result_times.get(call.tool_call_id)
    return None if text is None else parse_iso(text)
