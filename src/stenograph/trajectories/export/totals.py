"""Token and cost accounts of a document: what its own steps add up to, and with its children.

Unknown is absent and zero is 0. A cost is given only when every model call that was billed here
has one, since a partial sum would read as the whole. Copied context is not counted again.
"""

from dataclasses import dataclass, field

from stenograph.trajectories.atif.format import FinalMetrics, Json


@dataclass(slots=True)
class Totals:
    """Sums in the order of the steps, so that a reader who adds up gets the same floats."""

    prompt: int | None = None
    completion: int | None = None
    cached: int | None = None
    cost: float | None = None
    cost_known: bool = True
    steps: int = 0
    children: "list[Totals]" = field(default_factory=list)

    def add(
        self, prompt: int | None, completion: int | None, cached: int | None, cost: float | None
    ) -> None:
        """Count one model call."""
        self.prompt = _plus(self.prompt, prompt)
        self.completion = _plus(self.completion, completion)
        self.cached = _plus(self.cached, cached)
        if cost is None:
            self.cost_known = False
        else:
            self.cost = (self.cost or 0.0) + cost

    def with_children(self) -> "Totals":
        """Return the account of this session and of every session below it."""
        whole = Totals(self.prompt, self.completion, self.cached, self.cost, self.cost_known)
        for child in self.children:
            below = child.with_children()
            whole.prompt = _plus(whole.prompt, below.prompt)
            whole.completion = _plus(whole.completion, below.completion)
            whole.cached = _plus(whole.cached, below.cached)
            whole.cost_known = whole.cost_known and below.cost_known
            if below.cost is not None:
                whole.cost = (whole.cost or 0.0) + below.cost
        whole.steps = self.steps
        return whole

    def metrics(self) -> FinalMetrics:
        """Return these sums as `final_metrics` has them; US dollars."""
        return FinalMetrics(
            total_prompt_tokens=self.prompt,
            total_completion_tokens=self.completion,
            total_cached_tokens=self.cached,
            total_cost_usd=self.cost if self.cost_known else None,
            total_steps=self.steps,
        )


def final_metrics(own: Totals, extra: dict[str, Json] | None) -> FinalMetrics:
    """Return the totals of a document, its own apart under `extra.session_totals`."""
    metrics = own.with_children().metrics()
    metrics.extra = {
        **(extra or {}),
        "session_totals": own.metrics(),
        "includes_subagents": True,
        "excludes_copied_context": True,
    }
    return metrics


def _plus(total: int | None, part: int | None) -> int | None:
    return total if part is None else (total or 0) + part
