"""The SQL of the input queue."""

from stenograph.storage.database import Row, Tx

_INPUT = (
    "n.id, n.public_id, n.state, n.kind, n.role, n.origin, n.text, n.options, n.lock_version,"
    " n.created_at, n.turn_id, p.public_id, p.handle, p.kind, p.display_name, a.public_id"
)
_INPUT_JOINS = (
    " JOIN conversations c ON c.id = n.conversation_id"
    " LEFT JOIN principals p ON p.id = n.sender_id LEFT JOIN principals a ON a.id = c.answerer_id"
)


def add(tx: Tx, conversation_id: int, **columns: object) -> int:
    """Put a row into the queue."""
    return tx.insert("inputs", conversation_id=conversation_id, **columns)


def find(tx: Tx, conversation_id: int, public_id: str) -> Row | None:
    """Find an input of the conversation, consumed or not."""
    return tx.row(
        f"SELECT {_INPUT} FROM inputs n{_INPUT_JOINS}"
        " WHERE n.conversation_id = :id AND n.public_id = :public_id",
        id=conversation_id,
        public_id=public_id,
    )


def queue(tx: Tx, conversation_id: int) -> list[Row]:
    """List what waits for a turn of its own, the system's own rows first, then as they came."""
    return tx.rows(
        f"SELECT {_INPUT} FROM inputs n{_INPUT_JOINS} WHERE n.conversation_id = :id"
        " AND n.consumed_at IS NULL AND n.state <> 'steering'"
        " ORDER BY CASE WHEN n.origin IN ('task_result', 'child') THEN 0 ELSE 1 END, n.id",
        id=conversation_id,
    )


def steering(tx: Tx, conversation_id: int) -> list[Row]:
    """List what waits for the running turn to take it in, in order of arrival."""
    return tx.rows(
        f"SELECT {_INPUT} FROM inputs n{_INPUT_JOINS} WHERE n.conversation_id = :id"
        " AND n.consumed_at IS NULL AND n.state = 'steering' ORDER BY n.id",
        id=conversation_id,
    )


def release(tx: Tx, conversation_id: int) -> None:
    """Let what would have steered a turn that is over wait for a turn of its own."""
    tx.run(
        "UPDATE inputs SET state = 'pending' WHERE conversation_id = :id AND state = 'steering'",
        id=conversation_id,
    )


def has_running_run(tx: Tx, conversation_id: int) -> bool:
    """Tell whether the turn that is being answered is answered by a run."""
    return bool(
        tx.value(
            "SELECT 1 FROM conversations c JOIN turns t ON t.id = c.active_turn_id"
            " JOIN variants v ON v.id = t.active_variant_id"
            " WHERE c.id = :id AND v.source = 'run' AND v.status IN ('pending', 'running')",
            id=conversation_id,
        )
    )


def has_tools(tx: Tx, conversation_id: int) -> bool:
    """Tell whether an agent that answers here has anything to call: a worker's root, or an MCP
    server of its organization."""
    return bool(
        tx.value(
            "SELECT 1 FROM conversations c JOIN workspaces w ON w.id = c.workspace_id"
            " WHERE c.id = :id AND (c.default_runner_id IS NOT NULL"
            "  OR EXISTS (SELECT 1 FROM session_targets g WHERE g.conversation_id = c.id)"
            "  OR EXISTS (SELECT 1 FROM mcp_servers m"
            "   WHERE m.organization_id = w.organization_id AND m.enabled = 1))",
            id=conversation_id,
        )
    )


def said(tx: Tx, input_id: int) -> tuple[int | None, int | None, str]:
    """Return who sent an input, who answers in its conversation, and its text."""
    row = tx.row(
        "SELECT n.sender_id, c.answerer_id, n.text FROM inputs n"
        " JOIN conversations c ON c.id = n.conversation_id WHERE n.id = :id",
        id=input_id,
    )
    assert row is not None
    return row[0], row[1], row[2]


def consume(tx: Tx, input_id: int, turn_id: int | None, at: int) -> None:
    """Say which turn an input became; None: a running one took it in."""
    tx.run(
        "UPDATE inputs SET state = 'consumed', turn_id = :turn_id, consumed_at = :at"
        " WHERE id = :id",
        id=input_id,
        turn_id=turn_id,
        at=at,
    )
