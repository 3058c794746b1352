"""The SQL of message feeds."""

from collections.abc import Sequence

from stenograph.storage.database import Row, Tx

COLUMNS = (
    "public_id", "conversation_id", "cursor", "kind", "role", "source", "turn_id", "variant_id",
    "step_id", "status", "outcome", "content", "attachments", "created_at",
)  # fmt: skip


def take_cursors(tx: Tx, conversation_id: int, count: int) -> int:
    """Return the first of `count` cursors that are this transaction's from now on.

    It holds the conversation's row until the commit, so that cursors commit in their order.
    """
    first = tx.value(
        "UPDATE conversations SET next_cursor = next_cursor + :count WHERE id = :id"
        " RETURNING next_cursor - :count",
        count=count,
        id=conversation_id,
    )
    return int(first)


def next_cursor(tx: Tx, conversation_id: int) -> int:
    """Return the cursor that the next row of a conversation gets."""
    return int(tx.value("SELECT next_cursor FROM conversations WHERE id = :id", id=conversation_id))


def insert(tx: Tx, rows: Sequence[Row]) -> None:
    """Insert rows of `COLUMNS`."""
    tx.insert_many("messages", COLUMNS, rows)


def reply_of(tx: Tx, conversation_id: int, turn_id: int) -> int | None:
    """Return the row that holds the reply of a turn."""
    found = tx.value(
        "SELECT id FROM messages WHERE turn_id = :turn_id AND kind = 'reply'"
        " AND conversation_id = :id",
        turn_id=turn_id,
        id=conversation_id,
    )
    return None if found is None else int(found)


def update(tx: Tx, row_id: int, **columns: object) -> None:
    """Set columns of a row."""
    sets = ", ".join(f"{name} = :{name}" for name in columns)
    tx.run(f"UPDATE messages SET {sets} WHERE id = :row_id", row_id=row_id, **columns)


# A prompt lies with its candidate, a steer with its step, an answer with its candidate.
_ITEM = """
SELECT m.public_id, m.cursor, m.kind, m.role,
  coalesce(m.content, CASE
    WHEN m.step_id IS NOT NULL THEN s.text
    WHEN m.kind = 'reply' OR t.kind = 'message' THEN v.content
    ELSE v.prompt END, ''),
  m.status, m.outcome, m.source, m.attachments, m.created_at
FROM messages m
LEFT JOIN turns t ON t.id = m.turn_id
LEFT JOIN variants v ON v.id = m.variant_id
LEFT JOIN steps s ON s.id = m.step_id
"""
_OWN = """
WHERE m.conversation_id = :id AND m.cursor > :after
  AND (t.id IS NULL OR (t.deleted_at IS NULL AND t.visibility <> 'hidden'))
  AND (v.id IS NULL OR v.deleted_at IS NULL)
ORDER BY m.cursor LIMIT :limit
"""
_INHERITED = """
LEFT JOIN turn_overrides o ON o.turn_id = m.turn_id AND o.conversation_id = :viewer
WHERE m.conversation_id = :id AND m.cursor > :after AND t.position <= :boundary
  AND o.deleted_at IS NULL AND (o.visibility IS NULL OR o.visibility <> 'hidden')
  AND (v.id IS NULL OR v.deleted_at IS NULL)
ORDER BY m.cursor LIMIT :limit
"""


def own(tx: Tx, conversation_id: int, after: int, limit: int) -> list[Row]:
    """Return what a conversation shows of its own rows, behind `after`."""
    return tx.rows(_ITEM + _OWN, id=conversation_id, after=after, limit=limit)


def inherited(
    tx: Tx, viewer: int, conversation_id: int, boundary: int, after: int, limit: int
) -> list[Row]:
    """Return what the fork `viewer` shows of an ancestor's rows, up to turn `boundary`.

    What the ancestor conceals or hides does not count here, only what the fork does itself.
    """
    return tx.rows(
        _ITEM + _INHERITED,
        viewer=viewer,
        id=conversation_id,
        boundary=boundary,
        after=after,
        limit=limit,
    )


def inherits_from(tx: Tx, conversation_id: int, boundary: int, cursor: int) -> bool:
    """Tell whether an ancestor has a row at `cursor` or behind it that is inherited."""
    return bool(
        tx.value(
            "SELECT 1 FROM messages m JOIN turns t ON t.id = m.turn_id"
            " WHERE m.conversation_id = :id AND m.cursor >= :cursor AND t.position <= :boundary"
            " LIMIT 1",
            id=conversation_id,
            cursor=cursor,
            boundary=boundary,
        )
    )


def by_id(tx: Tx, conversation_id: int, public_id: str) -> Row | None:
    """Return one of a conversation's own rows, as `own` has it."""
    return tx.row(
        _ITEM + "WHERE m.conversation_id = :id AND m.public_id = :public_id",
        id=conversation_id,
        public_id=public_id,
    )


def by_cursor(tx: Tx, conversation_id: int, cursor: int) -> Row | None:
    """As `by_id`, by its place."""
    return tx.row(
        _ITEM + "WHERE m.conversation_id = :id AND m.cursor = :cursor",
        id=conversation_id,
        cursor=cursor,
    )
