"""The SQL of changing workspaces."""

from stenograph.storage.database import Tx


def hold(tx: Tx, workspace_id: int, owner_id: int) -> bool:
    """Hold a workspace until the transaction ends; False: it is not this person's."""
    return bool(
        tx.value(
            f"SELECT 1 FROM workspaces WHERE id = :id AND owner_id = :owner_id{tx.for_update}",
            id=workspace_id,
            owner_id=owner_id,
        )
    )


def update(tx: Tx, workspace_id: int, **columns: object) -> None:
    """Set columns of a workspace."""
    sets = ", ".join(f"{name} = :{name}" for name in columns)
    tx.run(f"UPDATE workspaces SET {sets} WHERE id = :id", id=workspace_id, **columns)


def clear_members(tx: Tx, workspace_id: int) -> None:
    """Let nobody in any more but the owner."""
    tx.run("DELETE FROM workspace_members WHERE workspace_id = :id", id=workspace_id)


def holds_others(tx: Tx, workspace_id: int, principal_id: int) -> bool:
    """Tell whether a workspace has a conversation that a person may not change."""
    return bool(
        tx.value(
            "SELECT 1 FROM conversations c LEFT JOIN conversation_access a"
            "  ON a.conversation_id = c.id AND a.principal_id = :principal_id"
            " WHERE c.workspace_id = :id AND c.deleted_at IS NULL"
            " AND c.creator_id <> :principal_id"
            " AND (c.answerer_id IS NULL OR c.answerer_id <> :principal_id)"
            " AND COALESCE(a.level, c.access_default) <> 'full' LIMIT 1",
            id=workspace_id,
            principal_id=principal_id,
        )
    )


def is_live(tx: Tx, workspace_id: int) -> bool:
    """Tell whether anything is being answered, or a run goes on, in a workspace."""
    return bool(
        tx.value(
            "SELECT 1 FROM variants v CROSS JOIN turns t CROSS JOIN conversations c"
            " WHERE v.status IN ('pending', 'running') AND t.id = v.turn_id"
            " AND c.id = t.conversation_id AND c.workspace_id = :id LIMIT 1",
            id=workspace_id,
        )
        or tx.value(
            "SELECT 1 FROM runs r JOIN conversations c ON c.id = r.conversation_id"
            " WHERE c.workspace_id = :id AND r.status NOT IN ('completed', 'canceled') LIMIT 1",
            id=workspace_id,
        )
    )


def bury(tx: Tx, workspace_id: int, at: int) -> None:
    """Make tombstones of a workspace and of all its conversations."""
    tx.run("UPDATE workspaces SET deleted_at = :at WHERE id = :id", id=workspace_id, at=at)
    tx.run(
        "UPDATE reasons SET conversation_id = NULL WHERE conversation_id IN"
        " (SELECT id FROM conversations WHERE workspace_id = :id)",
        id=workspace_id,
    )
    tx.run(
        "UPDATE conversations SET deleted_at = :at, updated_at = :at"
        " WHERE workspace_id = :id AND deleted_at IS NULL",
        id=workspace_id,
        at=at,
    )
