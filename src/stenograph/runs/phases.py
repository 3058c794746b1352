"""A run by its phases: each is a round of the mainline with what it calls, from the question to
the last result."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from stenograph.conversations.usage import Usage
from stenograph.runs import store_graph as store
from stenograph.runs.run import TERMINAL, Run
from stenograph.runs.task import TERMINAL as ENDED
from stenograph.runs.task import Kind, Status
from stenograph.storage.database import Row, Tx

#: How many of a run's newest phases are told, and how many tasks that go on beside them.
PHASES = 200
BESIDE = 100
#: What a phase does: it waits to be asked, a model speaks, its calls are made, or it has its end.
Step: TypeAlias = Literal["waiting", "model", "calls", "settled"]


@dataclass(frozen=True, slots=True)
class Phase:
    """A round and its calls. `calls`: how many there are by status; times in microseconds, the end
    is that of the last of them."""

    key: str
    status: Status
    step: Step
    calls: Mapping[Status, int]
    started_at: int | None
    completed_at: int | None


@dataclass(frozen=True, slots=True)
class Beside:
    """A task that has no end and belongs to no current phase."""

    key: str
    kind: Kind
    status: Status
    name: str | None


@dataclass(frozen=True, slots=True)
class Phases:
    """The newest phases in order; `current` is the key of the one that goes on, None: the run has
    its end, or has not begun."""

    phases: Sequence[Phase]
    current: str | None
    background: Sequence[Beside]
    spend: Usage


def of(tx: Tx, run: Run) -> Phases:
    """Return how far a run has come. Four queries, however many phases."""
    rows = store.mainline(tx, run.id, PHASES)[::-1]
    calls: dict[int, list[Row]] = {}
    for round_id, *about in store.calls(tx, [row[0] for row in rows]):
        calls.setdefault(round_id, []).append(tuple(about))
    phases = [_phase(row, calls.get(row[0], [])) for row in rows]
    goes_on = bool(phases) and run.status not in TERMINAL
    since = rows[-1][0] if goes_on else 0
    return Phases(
        phases,
        phases[-1].key if goes_on else None,
        [Beside(*row) for row in store.under_way(tx, run.id, since, BESIDE)],
        Usage(*store.spend(tx, run.id)),
    )


def _phase(row: Row, calls: Sequence[Row]) -> Phase:
    _, key, status, started_at, completed_at = row
    counts = {call[0]: int(call[1]) for call in calls}
    ends = [call[2] for call in calls if call[2] is not None]
    step = _step(status, counts)
    ended = max([completed_at or 0, *ends]) or None
    return Phase(key, status, step, counts, started_at, ended if step == "settled" else None)


def _step(status: Status, calls: Mapping[Status, int]) -> Step:
    if status not in ENDED:
        return "waiting" if status == "queued" else "model"
    return "settled" if all(one in ENDED for one in calls) else "calls"
