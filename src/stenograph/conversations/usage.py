"""What the model calls of a conversation took.

The sums are kept beside the receipts (`usage_totals`), so that reading them costs the same after
one call and after a million. What pruning and undo take away, they do not.
"""

from dataclasses import dataclass

from stenograph.conversations import store_usage as store
from stenograph.storage.database import Tx


@dataclass(frozen=True, slots=True)
class Usage:
    """Prompt tokens hold the cached ones.

    `cost_usd` sums the calls whose cost is known; `uncosted` is how many have none.
    """

    requests: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    completion_tokens: int = 0
    reasoning_tokens: int = 0
    cost_usd: float = 0.0
    uncosted: int = 0


@dataclass(frozen=True, slots=True)
class Context:
    """What the newest model call took, and which model it was."""

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    provider_id: str | None
    model_ref: str | None


def total(tx: Tx, conversation_id: int) -> Usage:
    """Return what all model calls took together."""
    row = store.totals(tx, conversation_id)
    return Usage() if row is None else Usage(*row)


def context(tx: Tx, conversation_id: int) -> Context | None:
    """Return what the newest model call took; None before the first."""
    row = store.last_receipt(tx, conversation_id)
    if row is None:
        return None
    prompt, completion, cached, provider_id, model_ref = row
    return Context(prompt or 0, completion or 0, cached or 0, provider_id, model_ref)
