"""The SQL of snapshots of candidates that are under way."""

from collections.abc import Sequence

from stenograph.storage.database import Row, Tx, among


def rounds(tx: Tx, variant_id: int, limit: int) -> list[Row]:
    """Return the newest answered mainline rounds of a candidate in order: task, place, message."""
    rows = tx.rows(
        "SELECT k.id, coalesce(s.position, 0), d.message FROM runs r"
        " JOIN tasks k ON k.run_id = r.id"
        " LEFT JOIN steps s ON s.variant_id = r.variant_id AND s.task_id = k.id"
        " LEFT JOIN invocation_details d ON d.invocation_id = k.selected_invocation_id"
        " WHERE r.variant_id = :id AND k.kind = 'model_task' AND k.mainline = 1"
        " AND k.transcript_visibility <> 'hidden' AND k.status = 'completed'"
        " ORDER BY k.id DESC LIMIT :limit",
        id=variant_id,
        limit=limit,
    )
    return rows[::-1]


def calls(tx: Tx, round_ids: Sequence[int], size: int) -> list[Row]:
    """Return what rounds called, in order: round, name, status, and the beginnings of arguments
    and result."""
    return tx.rows(
        "SELECT k.round_id, k.name, k.status, substr(d.input, 1, :size), substr(d.output, 1, :size)"
        " FROM tasks k LEFT JOIN task_details d ON d.task_id = k.id"
        f" WHERE {among('k.round_id', round_ids)} AND k.transcript_visibility <> 'hidden'"
        " ORDER BY k.round_id, k.call_index",
        size=size,
    )


def steers(tx: Tx, variant_id: int) -> list[tuple[int, str]]:
    """Return place and text of what was said to a candidate while it worked."""
    rows = tx.rows(
        "SELECT position, text FROM steps WHERE variant_id = :id AND part = 'steer'"
        " AND text IS NOT NULL ORDER BY position",
        id=variant_id,
    )
    return [(row[0], row[1]) for row in rows]
