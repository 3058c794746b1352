"""What came of tasks, for who follows a conversation."""

from collections.abc import Collection
from dataclasses import dataclass

from stenograph.runs import store_settled as store
from stenograph.storage.database import Tx


@dataclass(frozen=True, slots=True)
class Settled:
    """A task as it stands. `text` is what a round said; `usage` its tokens, as far as known."""

    key: str
    mainline: bool
    name: str | None
    tool_call_id: str | None
    error: str | None
    text: str | None
    usage: dict[str, int | float] | None


def tasks(tx: Tx, ids: Collection[int]) -> dict[int, Settled]:
    """Return tasks by row id; those that retention has deleted are not there. One query."""
    if not ids:
        return {}
    found = {}
    for row_id, key, mainline, name, call_id, error, text, *counts in store.tasks(tx, ids):
        names = ("input_tokens", "cache_read_tokens", "output_tokens", "cost_usd")
        usage = {n: count for n, count in zip(names, counts, strict=True) if count is not None}
        found[row_id] = Settled(key, bool(mainline), name, call_id, error, text, usage or None)
    return found
