"""The SQL of the input queue.

`deliver_at` is set as long as an input is not to be delivered yet; in one that goes into what is
being said at this moment it is 0, by which the index of what is due finds it.
"""

from collections.abc import Sequence

from stenograph.conversations.store import BELONGS
from stenograph.storage.database import Row, Tx, among

_INPUT = (
    "n.id, n.public_id, n.state, n.kind, n.role, n.origin, n.text, n.options, n.lock_version,"
    " n.created_at, n.turn_id, n.blocked_reason, p.public_id, p.handle, p.kind, p.display_name,"
    " a.public_id"
)
_INPUT_JOINS = (
    " JOIN conversations c ON c.id = n.conversation_id"
    " LEFT JOIN principals p ON p.id = n.sender_id LEFT JOIN principals a ON a.id = c.answerer_id"
)
#: The system's own rows first, then those that somebody put in order, then as they came.
_ORDER = (
    " ORDER BY CASE WHEN n.origin IN ('task_result', 'child') THEN 0 ELSE 1 END,"
    " CASE WHEN n.place IS NULL THEN 1 ELSE 0 END, n.place, n.id"
)
_IN_LINE = (
    "n.conversation_id = :id AND n.consumed_at IS NULL AND n.state <> 'steering'"
    " AND (n.deliver_at IS NULL OR n.deliver_at <= :now)"
)


# Rows


def add(tx: Tx, conversation_id: int, **columns: object) -> int:
    """Put a row into the queue."""
    return tx.insert("inputs", conversation_id=conversation_id, **columns)


def update(tx: Tx, input_id: int, **columns: object) -> None:
    """Set columns of a row."""
    sets = ", ".join(f"{name} = :{name}" for name in columns)
    tx.run(f"UPDATE inputs SET {sets} WHERE id = :id", id=input_id, **columns)


def delete(tx: Tx, input_id: int) -> None:
    """Delete a row that nothing has come of."""
    tx.run("DELETE FROM inputs WHERE id = :id", id=input_id)


def find(tx: Tx, conversation_id: int, public_id: str) -> Row | None:
    """Find an input of the conversation, consumed or not."""
    return tx.row(
        f"SELECT {_INPUT} FROM inputs n{_INPUT_JOINS}"
        " WHERE n.conversation_id = :id AND n.public_id = :public_id",
        id=conversation_id,
        public_id=public_id,
    )


def waiting(tx: Tx, conversation_id: int) -> list[Row]:
    """List all that nothing has come of, in order."""
    return tx.rows(
        f"SELECT {_INPUT} FROM inputs n{_INPUT_JOINS}"
        f" WHERE n.conversation_id = :id AND n.consumed_at IS NULL{_ORDER}",
        id=conversation_id,
    )


def in_line(tx: Tx, conversation_id: int, now: int) -> list[Row]:
    """List what waits for a turn of its own and is not scheduled for later, in order."""
    return tx.rows(
        f"SELECT {_INPUT} FROM inputs n{_INPUT_JOINS} WHERE {_IN_LINE}{_ORDER}",
        id=conversation_id,
        now=now,
    )


def steering(tx: Tx, conversation_id: int, variant_id: int) -> list[Row]:
    """List what waits for the running turn to take it in, in order of arrival; nothing for another
    candidate than the one that the turn shows."""
    return tx.rows(
        f"SELECT {_INPUT} FROM inputs n{_INPUT_JOINS} JOIN turns t ON t.id = c.active_turn_id"
        " WHERE n.conversation_id = :id AND n.consumed_at IS NULL AND n.state = 'steering'"
        " AND t.active_variant_id = :variant_id ORDER BY n.id",
        id=conversation_id,
        variant_id=variant_id,
    )


def consume(tx: Tx, input_id: int, turn_id: int | None, at: int) -> None:
    """Say which turn an input became; None: a running one took it in."""
    update(tx, input_id, state="consumed", turn_id=turn_id, consumed_at=at, deliver_at=None)


# The queue


def count(tx: Tx, conversation_id: int) -> int:
    """Return how many inputs wait."""
    return int(
        tx.value(
            "SELECT count(*) FROM inputs WHERE conversation_id = :id AND consumed_at IS NULL",
            id=conversation_id,
        )
    )


def order(tx: Tx, input_ids: Sequence[int]) -> None:
    """Put rows in this order, before those that nobody has put in one."""
    if input_ids:
        places = " ".join(f"WHEN {int(it)} THEN {n}" for n, it in enumerate(input_ids, 1))
        tx.run(f"UPDATE inputs SET place = CASE id {places} END WHERE {among('id', input_ids)}")


def is_held(tx: Tx, conversation_id: int, now: int) -> bool:
    """Tell whether the queue stands still: its head is blocked, or the run before it is held."""
    head = tx.value(
        f"SELECT n.state FROM inputs n WHERE {_IN_LINE}{_ORDER} LIMIT 1",
        id=conversation_id,
        now=now,
    )
    return head == "blocked" or bool(
        tx.value(
            "SELECT 1 FROM conversations c JOIN turns t ON t.id = c.active_turn_id"
            " JOIN runs r ON r.variant_id = t.active_variant_id"
            " WHERE c.id = :id AND r.status IN ('paused', 'needs_attention')",
            id=conversation_id,
        )
    )


# Scheduled inputs


def due(tx: Tx, now: int, limit: int) -> list[int]:
    """Return open conversations in which an input falls due, the longest due first."""
    rows = tx.rows(
        "SELECT n.conversation_id, min(n.deliver_at) AS since FROM inputs n"
        " JOIN conversations c ON c.id = n.conversation_id"
        " JOIN workspaces w ON w.id = c.workspace_id"
        " WHERE n.deliver_at IS NOT NULL AND n.deliver_at <= :now AND n.consumed_at IS NULL"
        " AND n.state <> 'steering' AND c.archived_at IS NULL AND c.deleted_at IS NULL"
        " AND w.state = 'active' GROUP BY n.conversation_id ORDER BY since LIMIT :limit",
        now=now,
        limit=limit,
    )
    return [row[0] for row in rows]


def fallen_due(tx: Tx, conversation_id: int, now: int) -> list[Row]:
    """List a conversation's inputs that fall due, and let them stand in line from now on."""
    rows = tx.rows(
        f"SELECT {_INPUT} FROM inputs n{_INPUT_JOINS} WHERE {_IN_LINE}"
        f" AND n.deliver_at IS NOT NULL{_ORDER}",
        id=conversation_id,
        now=now,
    )
    tx.run(f"UPDATE inputs SET deliver_at = NULL WHERE {among('id', [row[0] for row in rows])}")
    return rows


# Steering


def release(tx: Tx, conversation_id: int) -> None:
    """Let what would have steered a turn that is over wait for a turn of its own."""
    tx.run(
        "UPDATE inputs SET state = 'pending', deliver_at = NULL"
        " WHERE conversation_id = :id AND state = 'steering'",
        id=conversation_id,
    )


def is_urgent(tx: Tx, variant_id: int) -> bool:
    """Tell whether something is to go into what the candidate of the running turn says now."""
    return bool(
        tx.value(
            "SELECT 1 FROM inputs n JOIN conversations c ON c.id = n.conversation_id"
            " JOIN turns t ON t.id = c.active_turn_id WHERE n.deliver_at = 0"
            " AND n.consumed_at IS NULL AND n.state = 'steering'"
            " AND t.active_variant_id = :id LIMIT 1",
            id=variant_id,
        )
    )


def running_run(tx: Tx, conversation_id: int) -> Row | None:
    """Return the run that answers the active turn: its public id (None: it has not begun), its
    status, and whether a call of it waits for a person. None: no run does."""
    return tx.row(
        "SELECT r.public_id, r.status, EXISTS (SELECT 1 FROM tasks k WHERE k.run_id = r.id"
        "  AND k.status = 'needs_approval') FROM conversations c"
        " JOIN turns t ON t.id = c.active_turn_id JOIN variants v ON v.id = t.active_variant_id"
        " LEFT JOIN runs r ON r.variant_id = v.id"
        " WHERE c.id = :id AND v.source = 'run' AND v.status IN ('pending', 'running')",
        id=conversation_id,
    )


# What an input becomes


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


def sender(tx: Tx, input_id: int) -> int | None:
    """Return who sent an input."""
    found = tx.value("SELECT sender_id FROM inputs WHERE id = :id", id=input_id)
    return None if found is None else int(found)


def answerer(tx: Tx, conversation_id: int, public_id: str | None) -> Row | None:
    """Return who answers (None: who answers the conversation): row id, kind, and whether that one
    belongs to the workspace. None: nobody in particular."""
    return tx.row(
        f"SELECT p.id, p.kind, CASE WHEN {BELONGS} THEN 1 ELSE 0 END FROM conversations c"
        " JOIN workspaces w ON w.id = c.workspace_id JOIN principals p ON"
        + (" p.id = c.answerer_id" if public_id is None else " p.public_id = :public_id")
        + " WHERE c.id = :id",
        id=conversation_id,
        **({} if public_id is None else {"public_id": public_id}),
    )


def principal(tx: Tx, principal_id: int) -> str:
    """Return the public id of a principal."""
    return str(tx.value("SELECT public_id FROM principals WHERE id = :id", id=principal_id))
