"""The SQL of approvals."""

from stenograph.storage.database import Row, Tx

_APPROVAL = (
    "SELECT a.task_id, r.public_id, k.key, coalesce(k.name, ''), k.status, d.input, a.decision,"
    " p.public_id, a.note, a.requested_at, a.decided_at FROM approvals a"
    " JOIN tasks k ON k.id = a.task_id JOIN runs r ON r.id = k.run_id"
    " LEFT JOIN task_details d ON d.task_id = k.id LEFT JOIN principals p ON p.id = a.decider_id"
)


def add(tx: Tx, task_id: int, at: int) -> None:
    """Ask about a task."""
    tx.insert_many("approvals", ("task_id", "requested_at"), [(task_id, at)])


def decide(tx: Tx, task_id: int, decision: str, decider_id: int, note: str | None, at: int) -> None:
    """Write what was decided."""
    tx.run(
        "UPDATE approvals SET decision = :decision, decider_id = :decider_id, note = :note,"
        " decided_at = :at WHERE task_id = :id",
        id=task_id,
        decision=decision,
        decider_id=decider_id,
        note=note,
        at=at,
    )


def decision(tx: Tx, task_id: int) -> Row | None:
    """Return decision and note about a task."""
    return tx.row("SELECT decision, note FROM approvals WHERE task_id = :id", id=task_id)


def find(tx: Tx, task_id: int) -> Row | None:
    """Return what was asked about a task, and decided."""
    return tx.row(f"{_APPROVAL} WHERE a.task_id = :id", id=task_id)


def listed(tx: Tx, conversation_id: int, before: int | None, limit: int) -> list[Row]:
    """List what was asked in a conversation, the newest first."""
    return tx.rows(
        f"{_APPROVAL} WHERE r.conversation_id = :id"
        f"{'' if before is None else ' AND a.task_id < :before'}"
        " ORDER BY a.task_id DESC LIMIT :limit",
        id=conversation_id,
        limit=limit,
        **({} if before is None else {"before": before}),
    )


def newest(tx: Tx, conversation_id: int, key: str) -> int | None:
    """Return the run of the newest call with a key that was asked about."""
    found = tx.value(
        "SELECT r.id FROM runs r JOIN tasks k ON k.run_id = r.id AND k.key = :key"
        " JOIN approvals a ON a.task_id = k.id WHERE r.conversation_id = :id"
        " ORDER BY k.id DESC LIMIT 1",
        id=conversation_id,
        key=key,
    )
    return None if found is None else int(found)


def waiting(tx: Tx, run_id: int) -> list[str]:
    """Return the keys of a run's tasks that nobody has decided about."""
    rows = tx.rows(
        "SELECT k.key FROM tasks k JOIN approvals a ON a.task_id = k.id WHERE k.run_id = :id"
        " AND k.status = 'needs_approval' AND a.decision IS NULL ORDER BY k.id",
        id=run_id,
    )
    return [row[0] for row in rows]


def is_settled(tx: Tx, candidate: str, task_id: int) -> bool:
    """Tell whether a call need not wait any longer: it was decided, or its candidate has its end.

    Also true when the task is not there any more.
    """
    return not tx.value(
        "SELECT 1 FROM approvals a JOIN variants v ON v.public_id = :candidate"
        " WHERE a.task_id = :id AND a.decision IS NULL AND v.status IN ('pending', 'running')",
        id=task_id,
        candidate=candidate,
    )
