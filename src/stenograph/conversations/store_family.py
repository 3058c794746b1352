"""The SQL of a conversation with its subagents, which share its fate."""

from collections.abc import Collection

from stenograph.storage.database import Tx, among


def parent(tx: Tx, conversation_id: int) -> int | None:
    """Return the conversation whose agent started this one."""
    found = tx.value("SELECT parent_id FROM conversations WHERE id = :id", id=conversation_id)
    return None if found is None else int(found)


def below(tx: Tx, conversation_id: int) -> list[int]:
    """Return a conversation and those that its agents started, at any depth, in order of making.

    Deleted ones are left out. The conversation itself comes first.
    """
    rows = tx.rows(
        "WITH RECURSIVE family (id) AS (SELECT CAST(:id AS BIGINT) UNION"
        "  SELECT c.id FROM conversations c JOIN family ON c.parent_id = family.id"
        "  WHERE c.deleted_at IS NULL)"
        " SELECT id FROM family WHERE id <> :id ORDER BY id",
        id=conversation_id,
    )
    return [conversation_id, *(row[0] for row in rows)]


def set_archived(tx: Tx, family: Collection[int], at: int | None) -> None:
    """Write when conversations were archived."""
    tx.run(
        "UPDATE conversations SET archived_at = :at, updated_at = coalesce(:at, updated_at)"
        f" WHERE {among('id', family)}",
        at=at,
    )


def bury(tx: Tx, family: Collection[int], at: int) -> None:
    """Make tombstones of conversations. A Reason whose conversation goes begins another."""
    tx.run(
        f"UPDATE conversations SET deleted_at = :at, updated_at = :at WHERE {among('id', family)}",
        at=at,
    )
    tx.run(f"UPDATE reasons SET conversation_id = NULL WHERE {among('conversation_id', family)}")


# The few candidates that are under way lead to their turns, not the many turns to them: the order
# of a CROSS JOIN is SQLite's too.
_LIVE_CANDIDATES = (
    "variants v CROSS JOIN turns t WHERE v.status IN ('pending', 'running') AND t.id = v.turn_id"
)


def is_live(tx: Tx, family: Collection[int]) -> bool:
    """Tell whether anything is being answered, or a run goes on, in one of these."""
    return bool(
        tx.value(
            f"SELECT 1 FROM {_LIVE_CANDIDATES} AND {among('t.conversation_id', family)} LIMIT 1"
        )
        or tx.value(
            f"SELECT 1 FROM runs WHERE {among('conversation_id', family)}"
            " AND status NOT IN ('completed', 'canceled') LIMIT 1"
        )
    )


def live_turns(tx: Tx, family: Collection[int]) -> list[tuple[int, str]]:
    """Return (conversation, turn's public id) of what is being answered, subagents' last."""
    rows = tx.rows(
        f"SELECT DISTINCT t.conversation_id, t.id, t.public_id FROM {_LIVE_CANDIDATES}"
        f" AND {among('t.conversation_id', family)} ORDER BY t.conversation_id, t.id"
    )
    return [(row[0], row[2]) for row in rows]
