"""The SQL of requests that were sealed."""

from stenograph.storage.database import Tx


def seal(tx: Tx, invocation_id: int, request: str) -> None:
    """Keep what was sent to the model, as JSON."""
    tx.run(
        "INSERT INTO invocation_details (invocation_id, request) VALUES (:id, :request)"
        " ON CONFLICT (invocation_id) DO UPDATE SET request = excluded.request",
        id=invocation_id,
        request=request,
    )


def before(tx: Tx, run_id: int, invocation_id: int) -> tuple[int, str] | None:
    """Return (model call, request) of the newest of a run's requests before one of its calls."""
    row = tx.row(
        "SELECT d.invocation_id, d.request FROM invocation_details d WHERE d.request IS NOT NULL"
        " AND d.invocation_id = (SELECT max(i.id) FROM tasks t"
        "  JOIN invocations i ON i.task_id = t.id WHERE t.run_id = :run_id AND i.id < :id)",
        run_id=run_id,
        id=invocation_id,
    )
    return None if row is None else (int(row[0]), str(row[1]))


def chain(tx: Tx, invocation_id: int) -> dict[int, str]:
    """Return, by model call, its request and those of its run before it."""
    rows = tx.rows(
        "SELECT d.invocation_id, d.request FROM invocation_details d"
        " WHERE d.request IS NOT NULL AND (d.invocation_id = :id OR d.invocation_id IN ("
        "  SELECT i.id FROM invocations o JOIN tasks t ON t.id = o.task_id"
        "  JOIN tasks a ON a.run_id = t.run_id JOIN invocations i ON i.task_id = a.id"
        "  WHERE o.id = :id AND i.id < :id))",
        id=invocation_id,
    )
    return {int(row_id): str(request) for row_id, request in rows}
