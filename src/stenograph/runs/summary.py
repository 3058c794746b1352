"""What the timeline says of the runs behind its candidates."""

from collections.abc import Sequence
from dataclasses import dataclass

from stenograph.conversations.variant import Model, Variant, model_of
from stenograph.runs import store_reads
from stenograph.runs.task import Status, Visibility
from stenograph.storage.database import Tx

#: How many of a run's newest rounds a turn shows; the transcript pages through all.
ROUNDS = 24


@dataclass(frozen=True, slots=True)
class Round:
    """A round in short; `text` is the beginning of its message."""

    key: str
    status: Status
    visibility: Visibility
    text: str | None


@dataclass(frozen=True, slots=True)
class Summary:
    """A candidate's run: `model` is that of the newest mainline call, None before the first."""

    run_public_id: str
    details_pruned_at: int | None
    model: Model | None
    rounds: Sequence[Round]


def of(tx: Tx, candidates: Sequence[Variant], size: int) -> dict[int, Summary]:
    """Return the runs of candidates by the candidate's row id; texts cut after `size` characters.

    Two queries, however many candidates.
    """
    runs = store_reads.runs_of(tx, [candidate.id for candidate in candidates])
    rounds: dict[int, list[Round]] = {}
    models: dict[int, Model] = {}
    if runs:
        rows = store_reads.newest_rounds(tx, [row[1] for row in runs], ROUNDS, size)
        for run_id, _, key, status, visibility, selected, *model, text in rows:
            rounds.setdefault(run_id, []).append(Round(key, status, visibility, text))
            if selected is not None:
                models[run_id] = model_of(*model)
    return {
        variant_id: Summary(public_id, pruned_at, models.get(run_id), rounds.get(run_id, []))
        for variant_id, run_id, public_id, pruned_at in runs
    }
