"""Tokens of model calls: one `token_usage_record` per call, in older logs `token_count` events.

A `token_count` is shown again and again. Its total grows over the life of a thread, past the end
of a process and into forks, so a call is where the total grows; what it took is `last_token_usage`,
or the growth where that is missing. Codex's `input_tokens` include cached ones, its
`output_tokens` reasoning.
"""

from dataclasses import dataclass, field

from stenograph.trajectories.atif.format import Json, Metrics
from stenograph.trajectories.importers.draft import StepDraft

_BIGGEST = 2**63 - 1
_COUNTS = (
    "input_tokens",
    "cached_input_tokens",
    "cache_write_input_tokens",
    "output_tokens",
    "reasoning_output_tokens",
)


@dataclass(slots=True)
class Meter:
    """Follows the counts of one log."""

    total: dict[str, Json] | None = None
    last: dict[str, Json] | None = None
    #: Response ids of the calls that have a record. From the first on, `token_count` is repetition.
    recorded: set[str | None] = field(default_factory=set)

    def record(self, payload: dict[str, Json]) -> dict[str, int] | None:
        """Return the tokens of a `token_usage_record`; None where that response had one before."""
        response_id = payload.get("response_id")
        if isinstance(response_id, str):
            if response_id in self.recorded:
                return None
            self.recorded.add(response_id)
        else:
            self.recorded.add(None)
        return _counts(payload.get("usage"))

    def count(self, info: Json) -> dict[str, int] | None:
        """Return the tokens of the call that a `token_count` ends; None where it ends none."""
        if not isinstance(info, dict) or self.recorded:
            return None
        total, last = info.get("total_token_usage"), info.get("last_token_usage")
        before, self.total = self.total, total if isinstance(total, dict) else self.total
        repeated = last == self.last if total is None else total == before
        self.last = last if isinstance(last, dict) else None
        if repeated:
            return None
        counts = _counts(last) if isinstance(last, dict) else _growth(before, total)
        # After a compaction the program estimates how full the context is: no call was made.
        return counts if counts.get("input_tokens") or counts.get("output_tokens") else None


def _counts(usage: Json) -> dict[str, int]:
    if not isinstance(usage, dict):
        return {}
    return {
        name: value
        for name in _COUNTS
        if type(value := usage.get(name)) is int and 0 <= value <= _BIGGEST
    }


def _growth(before: Json, total: Json) -> dict[str, int]:
    """Return what was added to the total; a total that is smaller begins anew."""
    start, end = _counts(before), _counts(total)
    if any(end.get(name, 0) < value for name, value in start.items()):
        start = {}
    return {name: value - start.get(name, 0) for name, value in end.items()}


def bill(draft: StepDraft, counts: dict[str, int] | None) -> None:
    """Write the tokens of a call into its step; what the log does not tell stays unknown."""
    if not counts:
        return
    draft.cache_write_tokens = counts.get("cache_write_input_tokens")
    draft.reasoning_tokens = counts.get("reasoning_output_tokens")
    extra = {
        "cache_write_tokens": draft.cache_write_tokens,
        "reasoning_tokens": draft.reasoning_tokens,
    }
    draft.step.metrics = Metrics(
        prompt_tokens=counts.get("input_tokens"),
        completion_tokens=counts.get("output_tokens"),
        cached_tokens=counts.get("cached_input_tokens"),
        extra={name: value for name, value in extra.items() if value is not None} or None,
    )
