"""Reading a journal in order, with the names of the rows that its events point at."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from stenograph.events import store
from stenograph.storage.database import Row, Tx


@dataclass(frozen=True, slots=True)
class Entry:
    """An event as it is read. `*_id` are row ids; what was deleted since is None.

    `concealed`: its turn or candidate is, so that nothing may be told of what was said in it.
    """

    public_id: str
    sequence: int
    type: str
    turn_id: int | None
    turn_public_id: str | None
    turn_position: int | None
    variant_id: int | None
    run_public_id: str | None
    task_id: int | None
    task_key: str | None
    task_kind: str | None
    step_id: int | None
    payload: dict[str, Any]
    occurred_at: int
    concealed: bool


def page(
    tx: Tx, conversation_id: int, after: int, limit: int, types: Sequence[str] | None = None
) -> list[Entry]:
    """Return up to `limit` events behind the sequence number `after`, ascending.

    With `types`, only events of these words, and none of a concealed or hidden turn, of a hidden
    task, or of the state of a model call; without, all there are.
    """
    return [_entry(row) for row in store.entries(tx, conversation_id, after, limit, types)]


def last(tx: Tx, conversation_id: int) -> Entry | None:
    """Return the newest event, if it is kept."""
    found = store.entries(tx, conversation_id, watermark(tx, conversation_id) - 1, 1, None)
    return _entry(found[0]) if found else None


def watermark(tx: Tx, conversation_id: int) -> int:
    """Return the number of the newest event that there ever was; 0: there was none."""
    return store.watermark(tx, conversation_id)


def is_shown(tx: Tx, turn_id: int, variant_id: int) -> bool:
    """Tell whether who may read the conversation sees this candidate of its own."""
    return store.is_shown(tx, turn_id, variant_id)


def _entry(row: Row) -> Entry:
    (public_id, sequence, kind, turn_id, turn, position, variant_id, run, task_id, key, task_kind,
     step_id, payload, occurred_at, concealed) = row  # fmt: skip
    return Entry(
        public_id=public_id,
        sequence=sequence,
        type=kind,
        turn_id=turn_id,
        turn_public_id=turn,
        turn_position=position,
        variant_id=variant_id,
        run_public_id=run,
        task_id=task_id,
        task_key=key,
        task_kind=task_kind,
        step_id=step_id,
        payload=msgspec.json.decode(payload),
        occurred_at=occurred_at,
        concealed=bool(concealed),
    )
