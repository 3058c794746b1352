"""What the timeline says of the runs behind its candidates."""

from collections.abc import Sequence

from msgspec import Struct

from stenograph.conversations.variant import Model, Variant, model_of
from stenograph.runs import store_reads
from stenograph.runs.task import Status, Visibility
from stenograph.storage.database import Tx

#: How many of a run's newest rounds a turn shows; the transcript pages through all.
ROUNDS = 24


class Round(Struct, frozen=True):
    """A round in short; `text` is the beginning of its message."""

    key: str
    status: Status
    visibility: Visibility
    text: str | None


class Summary(Struct, frozen=True):
    """A candidate's run: `model` is that of the newest mainline call, None before the first."""

    run_public_id: str
    details_pruned_at: int | None
    model: Model | None
    rounds: Sequence[Round]


def of(tx: Tx, candidates: Sequence[Variant], size: int) -> dict[int, Summary]:
    """Return the runs of candidates by the candidate's row id; texts cut after `size` characters.

    One query, however many candidates.
    """
    rows = store_reads.newest_rounds(tx, [it.id for it in candidates], ROUNDS, size)
    runs: dict[int, tuple[str, int | None]] = {}
    rounds: dict[int, list[Round]] = {}
    models: dict[int, Model] = {}
    for variant_id, public_id, pruned_at, key, status, visibility, selected, *model, text in rows:
        runs[variant_id] = (public_id, pruned_at)
        if key is not None:
            rounds.setdefault(variant_id, []).append(Round(key, status, visibility, text))
        if selected is not None:
            models[variant_id] = model_of(*model)
    return {it: Summary(*run, models.get(it), rounds.get(it, [])) for it, run in runs.items()}
