"""The SQL of access lists."""

from collections.abc import Collection

from stenograph.conversations.store import BELONGS
from stenograph.storage.database import Row, Tx


def entries(tx: Tx, conversation_id: int) -> list[Row]:
    """List the named access of a conversation: public id, handle, level.

    Creator and answerer are left out: what they may do is no entry's to say.
    """
    return tx.rows(
        "SELECT p.public_id, p.handle, a.level FROM conversation_access a"
        " JOIN principals p ON p.id = a.principal_id"
        " JOIN conversations c ON c.id = a.conversation_id WHERE a.conversation_id = :id"
        " AND p.id <> c.creator_id AND (c.answerer_id IS NULL OR p.id <> c.answerer_id)"
        " ORDER BY p.id",
        id=conversation_id,
    )


def clear(tx: Tx, conversation_id: int) -> None:
    """Name nobody any more."""
    tx.run("DELETE FROM conversation_access WHERE conversation_id = :id", id=conversation_id)


def members_named(tx: Tx, workspace_id: int, names: Collection[str]) -> dict[str, int]:
    """Return those who belong to a workspace, by each public id and handle they were named by."""
    wanted = {f"name_{n}": name for n, name in enumerate(dict.fromkeys(names))}
    if not wanted:
        return {}
    listed = ", ".join(f":{mark}" for mark in wanted)
    rows = tx.rows(
        f"SELECT p.id, p.public_id, p.handle FROM workspaces w JOIN principals p ON {BELONGS}"
        f" WHERE w.id = :id AND (p.public_id IN ({listed}) OR p.handle IN ({listed}))",
        id=workspace_id,
        **wanted,
    )
    return {name: row[0] for row in rows for name in row[1:] if name in names}
