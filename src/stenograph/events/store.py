"""The SQL of journals."""

from collections.abc import Sequence

from stenograph.ids import first_id
from stenograph.storage.database import Row, Tx, among

_ENTRIES = """
SELECT e.public_id, e.sequence, e.type, e.turn_id, t.public_id, t.position, e.variant_id,
  r.public_id, e.task_id, k.key, k.kind, e.step_id, e.payload, e.occurred_at,
  CASE WHEN t.deleted_at IS NOT NULL OR t.visibility = 'hidden'
    OR v.deleted_at IS NOT NULL THEN 1 ELSE 0 END
FROM events e
LEFT JOIN turns t ON t.id = e.turn_id
LEFT JOIN variants v ON v.id = e.variant_id
LEFT JOIN runs r ON r.id = e.run_id
LEFT JOIN tasks k ON k.id = e.task_id
WHERE e.conversation_id = :id AND e.sequence > :after
"""
# What a reader of the conversation sees nothing of: concealed and hidden turns, hidden tasks.
_SHOWN = """
AND (t.id IS NULL OR (t.deleted_at IS NULL AND t.visibility <> 'hidden'))
AND v.deleted_at IS NULL AND (k.id IS NULL OR k.transcript_visibility <> 'hidden')
"""
# What a model call does beside its result is of no interest to who reads the conversation.
_TOOLS = "AND (e.type <> 'task_status' OR k.id IS NULL OR k.kind = 'tool_task')"


def take_sequences(tx: Tx, conversation_id: int, count: int) -> int:
    """Return the first of `count` event numbers that are this transaction's from now on."""
    first = tx.value(
        "UPDATE conversations SET next_sequence = next_sequence + :count"
        " WHERE id = :id RETURNING next_sequence - :count",
        count=count,
        id=conversation_id,
    )
    return int(first)


def entries(
    tx: Tx, conversation_id: int, after: int, limit: int, types: Sequence[str] | None
) -> list[Row]:
    """Return events behind `after`, in order; with `types`, only those words and what is shown."""
    chosen = ""
    if types is not None:
        words = ", ".join(f":type_{n}" for n in range(len(types)))
        chosen = f"{_SHOWN} {_TOOLS} AND e.type IN ({words})"
    return tx.rows(
        f"{_ENTRIES} {chosen} ORDER BY e.sequence LIMIT :limit",
        id=conversation_id,
        after=after,
        limit=limit,
        **{f"type_{n}": word for n, word in enumerate(types or ())},
    )


def is_shown(tx: Tx, turn_id: int, variant_id: int) -> bool:
    """Tell whether a turn and its candidate are there, neither hidden nor concealed."""
    found = tx.value(
        "SELECT 1 FROM variants v JOIN turns t ON t.id = v.turn_id WHERE v.id = :variant_id"
        " AND t.id = :turn_id AND v.deleted_at IS NULL AND t.deleted_at IS NULL"
        " AND t.visibility <> 'hidden'",
        turn_id=turn_id,
        variant_id=variant_id,
    )
    return found is not None


def watermark(tx: Tx, conversation_id: int) -> int:
    """Return the number of the newest event that there ever was; 0: there is no such journal."""
    found = tx.value(
        "SELECT next_sequence - 1 FROM conversations WHERE id = :id", id=conversation_id
    )
    return int(found or 0)


def delete_before(tx: Tx, before: int, batch: int) -> int:
    """Delete the oldest events that were written before a moment, at most `batch`.

    Ids are UUIDv7 and sort by the time of writing, whenever it is that an event tells of.
    """
    ids = tx.rows(
        "SELECT id FROM events WHERE public_id < :bound ORDER BY public_id LIMIT :batch",
        bound=first_id(before),
        batch=batch,
    )
    return tx.run(f"DELETE FROM events WHERE {among('id', (row[0] for row in ids))}") if ids else 0
