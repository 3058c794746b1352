"""Stored reasoning: what a candidate's model calls said they thought, page by page.

The rules are those of seeds/stored-conversation-reasoning.md and agent-api.md 5.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from stenograph.conversations.variant import Model, model_of
from stenograph.runs import store_reads
from stenograph.runs.candidate import Candidate
from stenograph.storage.database import Tx


@dataclass(frozen=True, slots=True)
class Item:
    """One model call. `text` None: it left nothing to display. `task_key`: of a run only."""

    task_key: str | None
    model: Model
    text: str | None


@dataclass(frozen=True, slots=True)
class Page:
    """Items in order of making; `next_before` is the row id to page on from, None at the end."""

    items: Sequence[Item]
    next_before: int | None


def page(tx: Tx, candidate: Candidate, *, before: int = 0, limit: int = 20) -> Page:
    """Return the newest reasoning of a candidate before a task's row id (0: from the newest on).

    Of a run: its visible model tasks that have a selected call, mainline or branch, whatever their
    status; each counts, with text or without. Of a direct reply: one item, if a model was asked.
    Whether the details are still there is for `candidate.require_details` to say, before.
    """
    if candidate.run is None:
        return Page(_reply(tx, candidate), None)
    rows = store_reads.reasoning(tx, candidate.run.id, before, limit + 1)
    kept = rows[:limit][::-1]
    items = [
        Item(key, model_of(*model), _displayable(text))
        for _, key, invocation_id, *model, text in kept
        if invocation_id is not None
    ]
    return Page(items, kept[0][0] if len(rows) > limit else None)


def _reply(tx: Tx, candidate: Candidate) -> list[Item]:
    variant = candidate.variant
    text = store_reads.reply_reasoning(tx, variant.id)
    if variant.invocation_id is None and text is None:
        return []
    return [Item(None, variant.model, _displayable(text))]


def _displayable(text: str | None) -> str | None:
    return text if text and text.strip() else None
