"""How much a turn may take: rounds, time, money. A budget of 0 lets nothing begin."""

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from stenograph.clock import now
from stenograph.engine import store, store_children
from stenograph.engine.work import Work
from stenograph.errors import InvalidInputError
from stenograph.storage.database import Tx

#: Rounds of a turn when nothing else was said: a model that goes in circles ends here.
ROUNDS = 200
#: Milliseconds beyond which a limit is none: 30,000 years.
_EVER_MS = 10**15


class Budget(msgspec.Struct, frozen=True):
    """`execution_budget` of a session; None: no limit.

    Time counts in milliseconds from when the turn's run began, or was last taken up again; money
    over the whole session with its subagents in US dollars, as far as costs are known.
    """

    wall_clock_max_ms: Annotated[int, Meta(ge=0)] | None = None
    steps_max: Annotated[int, Meta(ge=0)] | None = ROUNDS
    cost_max_usd: Annotated[float, Meta(ge=0)] | None = None


def read(options: Mapping[str, Any]) -> Budget:
    """Read the budget of what a session was created with.

    Raises `InvalidInputError` `invalid_execution_budget`.
    """
    try:
        return msgspec.convert(options.get("execution_budget") or {}, Budget)
    except msgspec.ValidationError as error:
        message = f"/execution_budget: {error}"
        raise InvalidInputError(message, code="invalid_execution_budget") from None


def exceeded(tx: Tx, work: Work, budget: Budget) -> str | None:
    """Return which limit stops the next round: `steps`, `wall_clock` or `cost`; None: it may."""
    made = 0 if work.run is None else store.rounds_made(tx, work.run.id)
    if budget.steps_max is not None and made >= budget.steps_max:
        return "steps"
    left = seconds_left(work, budget)
    if left is not None and left <= 0:
        return "wall_clock"
    return "cost" if _is_spent(tx, work) else None


def _is_spent(tx: Tx, work: Work) -> bool:
    """Tell whether the money of a session, or of one above it, is spent by all below that one."""
    for conversation_id, options in store_children.line(tx, work.conversation.id):
        limit = read(msgspec.json.decode(options)).cost_max_usd
        if limit is not None and store_children.spent_usd(tx, conversation_id) >= limit:
            return True
    return False


def seconds_left(work: Work, budget: Budget) -> float | None:
    """Return the time that is left to a turn; None: it is not limited."""
    if budget.wall_clock_max_ms is None:
        return None
    begun = now() if work.run is None else work.run.started_at or work.run.created_at
    return min(budget.wall_clock_max_ms, _EVER_MS) / 1000 - (now() - begun) / 1e6
