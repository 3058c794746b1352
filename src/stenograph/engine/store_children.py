"""The SQL of what a call makes: child sessions, and the calls of a script."""

from collections.abc import Collection

from stenograph.storage.database import Row, Tx, among

_UNSETTLED = "('pending', 'running')"
_OPEN_TASK = "('queued', 'needs_approval', 'running', 'dispatched', 'awaiting_input')"


# Child sessions


def child_of(tx: Tx, task_id: int) -> Row | None:
    """Return row id and public id of the session that a call started."""
    return tx.row(
        "SELECT c.id, c.public_id FROM tasks k JOIN conversations c"
        " ON c.id = k.child_conversation_id WHERE k.id = :id",
        id=task_id,
    )


def link(tx: Tx, task_id: int, child_id: int) -> None:
    """Say which session a call started."""
    tx.run(
        "UPDATE tasks SET child_conversation_id = :child_id WHERE id = :id",
        child_id=child_id,
        id=task_id,
    )


def inheritance(tx: Tx, conversation_id: int) -> Row:
    """Return what a child has from its parent: workspace, creator, answerer, billing subject,
    default access, default runner; organization, owner, Reason, mode."""
    row = tx.row(
        "SELECT c.workspace_id, c.creator_id, c.answerer_id, c.billing_subject, c.access_default,"
        " c.default_runner_id, s.organization_id, s.owner_id, s.reason_id, s.mode"
        " FROM conversations c JOIN sessions s ON s.conversation_id = c.id WHERE c.id = :id",
        id=conversation_id,
    )
    assert row is not None
    return row


def copy_access(tx: Tx, parent_id: int, child_id: int) -> None:
    """Let those read a child whom its parent names."""
    tx.run(
        "INSERT INTO conversation_access (conversation_id, principal_id, level)"
        " SELECT CAST(:child_id AS BIGINT), principal_id, level FROM conversation_access"
        " WHERE conversation_id = :parent_id",
        parent_id=parent_id,
        child_id=child_id,
    )


def depth(tx: Tx, conversation_id: int) -> int:
    """Return how many sessions stand above one."""
    return len(line(tx, conversation_id)) - 1


def line(tx: Tx, conversation_id: int) -> list[Row]:
    """Return a session and those above it, each with its options (JSON), from below upwards."""
    return tx.rows(
        "WITH RECURSIVE line (id, place) AS (SELECT CAST(:id AS BIGINT), 0 UNION ALL"
        "  SELECT s.parent_conversation_id, line.place + 1 FROM sessions s"
        "  JOIN line ON s.conversation_id = line.id"
        "  WHERE s.parent_conversation_id IS NOT NULL)"
        " SELECT s.conversation_id, s.options FROM line"
        " JOIN sessions s ON s.conversation_id = line.id ORDER BY line.place",
        id=conversation_id,
    )


def children_made(tx: Tx, run_id: int) -> int:
    """Return how many sessions the calls of a run have started."""
    return int(
        tx.value(
            "SELECT count(*) FROM tasks WHERE run_id = :id AND child_conversation_id IS NOT NULL",
            id=run_id,
        )
    )


def family_made(tx: Tx, conversation_id: int, since: int) -> int:
    """Return how many sessions there are below the topmost one of a session's line that were
    started since a moment, or since the oldest turn began that is under way in the line."""
    above = [row[0] for row in line(tx, conversation_id)]
    began = tx.value(
        "SELECT min(t.created_at) FROM conversations c JOIN turns t ON t.id = c.active_turn_id"
        f" WHERE {among('c.id', above)}"
    )
    return int(
        tx.value(
            "WITH RECURSIVE below (id, created_at) AS (SELECT CAST(:id AS BIGINT),"
            "  CAST(NULL AS BIGINT) UNION ALL"
            "  SELECT s.conversation_id, s.created_at FROM sessions s"
            "  JOIN below ON s.parent_conversation_id = below.id)"
            " SELECT count(*) FROM below WHERE created_at >= :since",
            id=above[-1],
            since=min(since, since if began is None else began),
        )
    )


def first_answer(tx: Tx, conversation_id: int) -> Row | None:
    """Return the candidate (row id) that a session's first turn shows, its status, content and
    reason of failure, and the declared outcome."""
    return tx.row(
        "SELECT v.id, v.status, v.content, v.failure_reason, m.outcome FROM turns t"
        " JOIN variants v ON v.id = t.active_variant_id"
        " LEFT JOIN messages m ON m.turn_id = t.id AND m.kind = 'reply'"
        "  AND m.conversation_id = t.conversation_id"
        " WHERE t.conversation_id = :id AND t.position = 0 AND t.deleted_at IS NULL",
        id=conversation_id,
    )


def is_reported(tx: Tx, conversation_id: int, variant_id: int) -> bool:
    """Tell whether a child's answer is in its parent's feed."""
    return bool(
        tx.value(
            "SELECT 1 FROM messages WHERE variant_id = :variant_id"
            " AND conversation_id = :id AND source = 'subagent' LIMIT 1",
            id=conversation_id,
            variant_id=variant_id,
        )
    )


def unsettled(tx: Tx, run_id: int, tasks: Collection[int] | None = None) -> list[Row]:
    """Return (conversation, candidate's public id) of what has no end yet in the sessions that the
    calls of a run started; with `tasks`, that these did."""
    which = "" if tasks is None else f" AND {among('k.id', tasks)}"
    return tx.rows(
        "SELECT t.conversation_id, v.public_id FROM tasks k"
        " JOIN turns t ON t.conversation_id = k.child_conversation_id"
        " JOIN variants v ON v.turn_id = t.id"
        f" WHERE k.run_id = :id AND v.status IN {_UNSETTLED}{which} ORDER BY v.id",
        id=run_id,
    )


def spent_usd(tx: Tx, conversation_id: int) -> float:
    """Return what the model calls of a session, and of those below it, are known to have cost, in
    US dollars."""
    found = tx.value(
        "WITH RECURSIVE below (id) AS (SELECT CAST(:id AS BIGINT) UNION"
        "  SELECT s.conversation_id FROM sessions s"
        "  JOIN below ON s.parent_conversation_id = below.id)"
        " SELECT sum(u.cost_usd) FROM below JOIN usage_receipts u ON u.conversation_id = below.id",
        id=conversation_id,
    )
    return float(found or 0.0)


# The calls of a script


def calls_beneath(tx: Tx, task_id: int) -> list[Row]:
    """Return (key, name, arguments) of the calls that a script has made, in order."""
    return tx.rows(
        "SELECT k.key, k.name, d.input FROM tasks k LEFT JOIN task_details d ON d.task_id = k.id"
        " WHERE k.parent_id = :id ORDER BY k.call_index",
        id=task_id,
    )


def begun_at(tx: Tx, task_id: int) -> int:
    """Return when a call was begun first."""
    return int(tx.value("SELECT started_at FROM tasks WHERE id = :id", id=task_id))


def count_beneath(tx: Tx, task_id: int) -> int:
    """Return how many calls a script has made."""
    return int(tx.value("SELECT count(*) FROM tasks WHERE parent_id = :id", id=task_id))


def open_beneath(tx: Tx, task_id: int) -> list[Row]:
    """Return (row id, key, status) of a script's calls that have no end."""
    return tx.rows(
        f"SELECT id, key, status FROM tasks WHERE parent_id = :id AND status IN {_OPEN_TASK}"
        " ORDER BY call_index",
        id=task_id,
    )


def outcome(tx: Tx, run_id: int, key: str) -> Row:
    """Return status and output of a call."""
    row = tx.row(
        "SELECT k.status, d.output FROM tasks k LEFT JOIN task_details d ON d.task_id = k.id"
        " WHERE k.run_id = :run_id AND k.key = :key",
        run_id=run_id,
        key=key,
    )
    assert row is not None
    return row
