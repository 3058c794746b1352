"""The SQL of Reasons."""

from collections.abc import Collection, Iterable

from stenograph.storage.database import Row, Tx, among

_REASONS = """
SELECT r.id, r.public_id, r.owner_id, p.public_id, r.name, r.instructions, r.default_model,
  r.repositories, r.is_main, r.conversation_id, c.public_id, r.created_at, r.updated_at
FROM reasons r JOIN principals p ON p.id = r.owner_id
LEFT JOIN conversations c ON c.id = r.conversation_id
WHERE r.organization_id = :organization_id AND r.deleted_at IS NULL AND (
  r.owner_id = :principal_id OR EXISTS (SELECT 1 FROM reason_shares h
    WHERE h.reason_id = r.id AND h.principal_id = :principal_id))
"""


def find(tx: Tx, organization_id: int, principal_id: int, public_id: str) -> Row | None:
    """Find a Reason of the principal, or one shared with them."""
    return tx.row(
        f"{_REASONS} AND r.public_id = :public_id",
        organization_id=organization_id,
        principal_id=principal_id,
        public_id=public_id,
    )


def listed(tx: Tx, organization_id: int, principal_id: int, after: int, limit: int) -> list[Row]:
    """List the principal's Reasons and those shared with them, oldest first."""
    return tx.rows(
        f"{_REASONS} AND r.id > :after ORDER BY r.id LIMIT :limit",
        organization_id=organization_id,
        principal_id=principal_id,
        after=after,
        limit=limit,
    )


def has_main(tx: Tx, owner_id: int) -> bool:
    """Tell whether a person has a main Reason; holds the person until the transaction ends."""
    tx.row(f"SELECT id FROM principals WHERE id = :id{tx.for_update}", id=owner_id)
    return bool(
        tx.value(
            "SELECT 1 FROM reasons WHERE owner_id = :owner_id AND is_main = 1"
            " AND deleted_at IS NULL",
            owner_id=owner_id,
        )
    )


def update(tx: Tx, reason_id: int, **columns: object) -> None:
    """Set columns of a Reason."""
    sets = ", ".join(f"{name} = :{name}" for name in columns)
    tx.run(f"UPDATE reasons SET {sets} WHERE id = :id", id=reason_id, **columns)


def hold(tx: Tx, reason_id: int) -> int | None:
    """Hold a Reason until the transaction ends, and return its conversation now."""
    found = tx.value(
        f"SELECT conversation_id FROM reasons WHERE id = :id{tx.for_update}", id=reason_id
    )
    return None if found is None else int(found)


def shares(tx: Tx, reason_ids: Collection[int]) -> list[Row]:
    """Return (Reason, public id of a person) of everyone that these are shared with."""
    return tx.rows(
        "SELECT h.reason_id, p.public_id FROM reason_shares h"
        f" JOIN principals p ON p.id = h.principal_id WHERE {among('h.reason_id', reason_ids)}"
        " ORDER BY h.reason_id, p.id"
    )


def replace_shares(tx: Tx, reason_id: int, principal_ids: Iterable[int]) -> None:
    """Share a Reason, and all its sessions' conversations, with these people and nobody else."""
    tx.run("DELETE FROM reason_shares WHERE reason_id = :id", id=reason_id)
    rows = [(reason_id, principal_id) for principal_id in principal_ids]
    if rows:
        tx.insert_many("reason_shares", ("reason_id", "principal_id"), rows)
    tx.run(
        "DELETE FROM conversation_access WHERE conversation_id IN"
        " (SELECT conversation_id FROM sessions WHERE reason_id = :id)",
        id=reason_id,
    )
    tx.run(
        "INSERT INTO conversation_access (conversation_id, principal_id, level)"
        " SELECT s.conversation_id, h.principal_id, 'read' FROM sessions s"
        " JOIN reason_shares h ON h.reason_id = s.reason_id WHERE s.reason_id = :id",
        id=reason_id,
    )


def copy_shares(tx: Tx, reason_id: int, conversation_id: int) -> None:
    """Let the people that a Reason is shared with read one more conversation."""
    tx.run(
        "INSERT INTO conversation_access (conversation_id, principal_id, level)"
        " SELECT :conversation_id, principal_id, 'read' FROM reason_shares"
        " WHERE reason_id = :reason_id",
        conversation_id=conversation_id,
        reason_id=reason_id,
    )


def running(tx: Tx, reason_id: int) -> list[int]:
    """Return the sessions of a Reason that have not ended."""
    rows = tx.rows(
        "SELECT conversation_id FROM sessions WHERE reason_id = :id"
        " AND status IN ('running', 'suspended') ORDER BY conversation_id",
        id=reason_id,
    )
    return [row[0] for row in rows]


def delete(tx: Tx, reason_id: int, at: int) -> None:
    """Conceal a Reason and the conversations of all its sessions."""
    update(tx, reason_id, deleted_at=at, updated_at=at)
    tx.run(
        "UPDATE conversations SET deleted_at = :at, updated_at = :at WHERE deleted_at IS NULL"
        " AND id IN (SELECT conversation_id FROM sessions WHERE reason_id = :id)",
        id=reason_id,
        at=at,
    )
