"""The transcript of a run: its rounds and what they called, without reasoning."""

from collections.abc import Sequence
from dataclasses import dataclass

from stenograph.runs import store_reads
from stenograph.runs.run import Run
from stenograph.runs.task import Kind, Status, Task, Visibility
from stenograph.storage.database import Row, Tx

#: How many calls of a round are listed; the others are counted.
CALLS = 24


@dataclass(frozen=True, slots=True)
class Tokens:
    """What a call took, as far as it is known."""

    prompt: int | None
    completion: int | None
    cached: int | None
    reasoning: int | None
    cost_usd: float | None


@dataclass(frozen=True, slots=True)
class CallLine:
    """A call in short. `script` is the key of the call whose script made it, `child` the public
    id of the conversation it started."""

    key: str
    kind: Kind
    status: Status
    visibility: Visibility
    name: str | None
    tool_call_id: str | None
    script: str | None
    error: str | None
    started_at: int | None
    completed_at: int | None
    child: str | None


@dataclass(frozen=True, slots=True)
class RoundLine:
    """A round: the beginning of its message, its first calls, and which of them have branches.

    `compacted`: what was before it was summed up for it; `pruned`: it was asked with less than all
    that was before it. Beneath a script each of its calls stands like a round, and says what came
    of it.
    """

    key: str
    mainline: bool
    status: Status
    visibility: Visibility
    error: str | None
    started_at: int | None
    completed_at: int | None
    text_bytes: int | None
    text: str | None
    compacted: bool
    pruned: bool
    tokens: Tokens | None
    call_count: int
    calls: Sequence[CallLine]
    branches: Sequence[str]


@dataclass(frozen=True, slots=True)
class Page:
    """Rounds in order of making; `next_before` is the row id to page on from, None at the end."""

    rounds: Sequence[RoundLine]
    next_before: int | None


def page(
    tx: Tx, run: Run, *, branch: Task | None = None, before: int = 0, limit: int = 20, size: int
) -> Page:
    """Return the newest rounds before a row id (0: from the newest on), texts cut after `size`.

    The mainline's, or what lies beneath a call: the rounds of its branch, a script's calls. Hidden
    rounds and calls are left out. Three queries, however many rounds.
    """
    rows = store_reads.rounds(
        tx,
        run.id,
        branch=None if branch is None else branch.id,
        before=before,
        limit=limit + 1,
        size=size,
    )
    kept = rows[:limit][::-1]
    ids = [row[0] for row in kept]
    calls: dict[int, list[Row]] = {}
    for row in store_reads.calls(tx, ids, CALLS):
        calls.setdefault(row[0], []).append(row)
    branches: dict[int, list[str]] = {}
    for round_id, key in store_reads.branches(tx, ids):
        branches.setdefault(round_id, []).append(key)
    rounds = [_round(row, calls.get(row[0], []), branches.get(row[0], [])) for row in kept]
    return Page(rounds, ids[0] if len(rows) > limit else None)


def _round(row: Row, calls: Sequence[Row], branches: Sequence[str]) -> RoundLine:
    _, key, mainline, status, visibility, error, started_at, completed_at, size, text = row[:10]
    compacted, pruned, receipt_id, *tokens = row[10:]
    return RoundLine(
        key=key,
        mainline=bool(mainline),
        status=status,
        visibility=visibility,
        error=error,
        started_at=started_at,
        completed_at=completed_at,
        text_bytes=size,
        text=text,
        compacted=bool(compacted),
        pruned=bool(pruned),
        tokens=None if receipt_id is None else Tokens(*tokens),
        call_count=calls[0][1] if calls else 0,
        calls=[CallLine(*call[2:]) for call in calls],
        branches=branches,
    )
