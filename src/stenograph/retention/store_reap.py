"""The SQL of reaping: which tombstones are due, what forks read of them, what is taken away."""

from stenograph.storage.database import Tx, among

#: Tombstones that are looked up at once.
PAGE = 100

#: All tables that a deletion reaches.
TOUCHED = (
    "conversations", "conversation_access", "ancestries", "inputs", "attachments", "turns",
    "turn_overrides", "variants", "variant_details", "runs", "tasks", "task_details", "approvals",
    "dispatches", "invocations", "invocation_details", "usage_receipts", "usage_totals", "steps",
    "messages", "sessions", "session_secrets", "session_targets", "tool_sets", "imports",
    "originals", "media", "events", "workspaces",
)  # fmt: skip


def due(tx: Tx, cutoff: int, before: int) -> list[int]:
    """Return the next conversations that were deleted by `cutoff`, the newest record first."""
    rows = tx.rows(
        "SELECT id FROM conversations WHERE deleted_at IS NOT NULL AND deleted_at <= :cutoff"
        " AND id < :before ORDER BY id DESC LIMIT :limit",
        cutoff=cutoff,
        before=before,
        limit=PAGE,
    )
    return [row[0] for row in rows]


def last_read(tx: Tx, conversation_id: int, cutoff: int) -> int:
    """Return the last position that a fork reads of a conversation; -1: none does.

    Forks that are due themselves read nothing.
    """
    found = tx.value(
        "SELECT max(a.boundary_position) FROM ancestries a"
        " JOIN conversations f ON f.id = a.conversation_id"
        " WHERE a.ancestor_id = :id AND (f.deleted_at IS NULL OR f.deleted_at > :cutoff)",
        id=conversation_id,
        cutoff=cutoff,
    )
    return -1 if found is None else int(found)


def is_held(tx: Tx, conversation_id: int) -> bool:
    """Tell whether a conversation is an ancestor of one that is there."""
    return bool(
        tx.value("SELECT 1 FROM ancestries WHERE ancestor_id = :id LIMIT 1", id=conversation_id)
    )


def delete_events(tx: Tx, conversation_id: int, limit: int) -> int:
    """Delete some events; those of a tombstone are nobody's to read."""
    return tx.run(
        "DELETE FROM events WHERE id IN"
        " (SELECT id FROM events WHERE conversation_id = :id ORDER BY sequence LIMIT :limit)",
        id=conversation_id,
        limit=limit,
    )


def delete_turns(tx: Tx, conversation_id: int, last: int, limit: int) -> int:
    """Delete the newest turns behind a position, at most `limit`, with all that hangs on them.

    No row id that is free again stays written anywhere, for the next row may get it.
    """
    turns = [
        row[0]
        for row in tx.rows(
            "SELECT id FROM turns WHERE conversation_id = :id AND position > :last"
            " ORDER BY position DESC LIMIT :limit",
            id=conversation_id,
            last=last,
            limit=limit,
        )
    ]
    if not turns:
        return 0
    variants = [r[0] for r in tx.rows(f"SELECT id FROM variants WHERE {among('turn_id', turns)}")]
    forget_origin(tx, conversation_id, turns, variants)
    tx.run(
        "DELETE FROM usage_receipts WHERE conversation_id = :id"
        f" AND {among('variant_id', variants)}",
        id=conversation_id,
    )
    tx.run(f"UPDATE turns SET input_id = NULL WHERE {among('id', turns)}")
    tx.run(
        f"DELETE FROM inputs WHERE conversation_id = :id AND {among('turn_id', turns)}",
        id=conversation_id,
    )
    tx.run(f"DELETE FROM turns WHERE {among('id', turns)}")
    tx.run(
        "UPDATE conversations SET active_turn_id = NULL, next_position = coalesce("
        " (SELECT max(t.position) + 1 FROM turns t WHERE t.conversation_id = :id),"
        " (SELECT a.boundary_position + 1 FROM ancestries a"
        "  WHERE a.conversation_id = :id AND a.depth = 1), 0) WHERE id = :id",
        id=conversation_id,
    )
    return len(turns)


def forget_origin(tx: Tx, conversation_id: int, turns: list[int], variants: list[int]) -> None:
    """Let forks forget which turn and candidate they began with, for these go."""
    forks = "SELECT conversation_id FROM ancestries WHERE ancestor_id = :id"
    tx.run(
        "UPDATE conversations SET source_turn_id = NULL, source_variant_id = NULL"
        f" WHERE id IN ({forks}) AND {among('source_turn_id', turns)}",
        id=conversation_id,
    )
    tx.run(
        "UPDATE variants SET origin_variant_id = NULL WHERE turn_id IN"
        " (SELECT t.id FROM ancestries a JOIN turns t ON t.conversation_id = a.conversation_id"
        f"  AND t.position = a.boundary_position + 1 WHERE a.ancestor_id = :id)"
        f" AND {among('origin_variant_id', variants)}",
        id=conversation_id,
    )


def strip(tx: Tx, conversation_id: int) -> None:
    """Delete of a tombstone all but the turns that are left, and what shows them: its steps,
    images, and the secrets that must be masked in them."""
    tx.run(
        "UPDATE conversations SET title = NULL, metadata = '{}', billing_subject = NULL,"
        " label = NULL, next_sequence = 1 WHERE id = :id",
        id=conversation_id,
    )
    tx.run("DELETE FROM conversation_access WHERE conversation_id = :id", id=conversation_id)
    tx.run(
        "DELETE FROM inputs WHERE conversation_id = :id AND NOT EXISTS"
        " (SELECT 1 FROM turns t WHERE t.input_id = inputs.id)",
        id=conversation_id,
    )
    tx.run(
        "DELETE FROM attachments WHERE conversation_id = :id AND variant_id IS NULL",
        id=conversation_id,
    )
    tx.run(
        "UPDATE originals SET compressed = NULL WHERE compressed IS NOT NULL AND import_id IN"
        " (SELECT id FROM imports WHERE conversation_id = :id)",
        id=conversation_id,
    )
    tx.run(
        "UPDATE sessions SET recorded = 0, tags = '[]', options = '{}', document = NULL"
        " WHERE conversation_id = :id",
        id=conversation_id,
    )


def let_go(tx: Tx, conversation_id: int) -> None:
    """Let whatever names a conversation from outside forget it."""
    for table, column in (
        ("conversations", "parent_id"),
        ("sessions", "parent_conversation_id"),
        ("reasons", "conversation_id"),
        ("tasks", "child_conversation_id"),
    ):
        tx.run(f"UPDATE {table} SET {column} = NULL WHERE {column} = :id", id=conversation_id)
    tx.run(
        "UPDATE conversations SET source_id = NULL, source_turn_id = NULL,"
        " source_variant_id = NULL WHERE source_id = :id",
        id=conversation_id,
    )


def delete(tx: Tx, conversation_id: int) -> None:
    """Delete a conversation with everything that is its own."""
    tx.run("DELETE FROM conversations WHERE id = :id", id=conversation_id)


def delete_workspaces(tx: Tx, cutoff: int) -> int:
    """Delete workspaces that were deleted by `cutoff` and hold nothing any more."""
    empty = [
        row[0]
        for row in tx.rows(
            "SELECT w.id FROM workspaces w WHERE w.deleted_at IS NOT NULL"
            " AND w.deleted_at <= :cutoff"
            " AND NOT EXISTS (SELECT 1 FROM conversations c WHERE c.workspace_id = w.id)"
            " AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.workspace_id = w.id)",
            cutoff=cutoff,
        )
    ]
    tx.run(f"DELETE FROM workspace_members WHERE {among('workspace_id', empty)}")
    return tx.run(f"DELETE FROM workspaces WHERE {among('id', empty)}")
