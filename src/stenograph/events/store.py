"""The SQL of journals."""

from collections.abc import Sequence

from stenograph.storage.database import Row, Tx

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
