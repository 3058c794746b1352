"""What the steps of a document add up to (`atif.md` section 6).

Copied context is never counted: its metrics belong to the document it was copied from. Unknown is
None: a cost to which one inference gave none is unknown, not a partial sum.
"""

from collections.abc import Iterator
from itertools import chain
from math import fsum, inf, isclose

from stenograph.trajectories.atif.format import FinalMetrics, Metrics, Trajectory

_FIELDS = ("prompt_tokens", "completion_tokens", "cached_tokens", "cost_usd")


def own(trajectory: Trajectory) -> FinalMetrics:
    """Return the totals of a document's own steps, without its children. US dollars."""
    return _totals([trajectory])


def run(trajectory: Trajectory) -> FinalMetrics:
    """Return the totals of a document with its children and theirs. US dollars."""
    return _totals(list(_tree(trajectory)))


def contradictions(trajectory: Trajectory) -> Iterator[tuple[str, str]]:
    """Return the fields of `final_metrics` that the steps contradict, each with a sentence.

    A claim may hold the document's own sum or the run's (producers differ, known fault 41). A field
    to which some inference gave no number cannot be contradicted.
    """
    claim = trajectory.final_metrics
    if claim is None:
        return
    steps = len(trajectory.steps)
    if claim.total_steps is not None and claim.total_steps != steps and not trajectory.notes:
        yield "total_steps", f"says {claim.total_steps}, and no notes say why it is not {steps}"
    documents = list(_tree(trajectory))
    for field in _FIELDS:
        claimed = getattr(claim, f"total_{field}")
        if claimed is None:
            continue
        own, *children = [_values([document], field) for document in documents]
        if None in own or any(None in values for values in children):
            continue
        sums = _sum(own, field), _sum([*own, *chain.from_iterable(children)], field)
        if not any(total == claimed or _rounds_to(total, claimed) for total in sums):
            yield f"total_{field}", f"says {claimed}, the steps add up to {sums[0]}"


def _tree(trajectory: Trajectory) -> Iterator[Trajectory]:
    yield trajectory
    for child in trajectory.subagent_trajectories or ():
        yield from _tree(child)


def _inferences(trajectory: Trajectory) -> Iterator[Metrics | None]:
    """Return the metrics of every step that stands for model calls made in this document."""
    for step in trajectory.steps:
        if step.source == "agent" and not step.is_copied_context and step.llm_call_count != 0:
            yield step.metrics


def _values(documents: list[Trajectory], field: str) -> list[float | None]:
    return [getattr(m, field, None) for document in documents for m in _inferences(document)]


def _sum(values: list[float | None], field: str) -> float:
    known = [value for value in values if value is not None]
    try:
        return fsum(known) if field == "cost_usd" else sum(known)
    except OverflowError:
        return inf


def _rounds_to(total: float, claimed: float) -> bool:
    """Whether a cost is the claimed one up to rounding."""
    return isinstance(total, float) and isclose(claimed, total, rel_tol=1e-6, abs_tol=1e-6)


def _totals(documents: list[Trajectory]) -> FinalMetrics:
    totals = FinalMetrics(total_steps=len(documents[0].steps))
    for field in _FIELDS:
        values = _values(documents, field)
        partial = field == "cost_usd" and None in values
        if any(value is not None for value in values) and not partial:
            setattr(totals, f"total_{field}", _sum(values, field))
    return totals
