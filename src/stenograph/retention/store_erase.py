"""The SQL of deleting one turn."""

from stenograph.retention.store_reap import forget_origin
from stenograph.storage.database import Tx, among


def is_live(tx: Tx, turn_id: int) -> bool:
    """Tell whether a candidate of a turn, or the run of one, has no end yet."""
    return bool(
        tx.value(
            "SELECT 1 FROM variants v LEFT JOIN runs r ON r.variant_id = v.id"
            " WHERE v.turn_id = :id AND (v.status IN ('pending', 'running')"
            "  OR r.status NOT IN ('completed', 'canceled')) LIMIT 1",
            id=turn_id,
        )
    )


def is_recorded(tx: Tx, conversation_id: int) -> bool:
    """Tell whether a session is recorded step by step, so that its steps are numbered elsewhere."""
    return bool(
        tx.value("SELECT recorded FROM sessions WHERE conversation_id = :id", id=conversation_id)
    )


def children(tx: Tx, turn_id: int) -> list[int]:
    """Return the conversations of the subagents that a turn's runs started."""
    rows = tx.rows(
        "SELECT DISTINCT c.id FROM variants v JOIN runs r ON r.variant_id = v.id"
        " JOIN tasks k ON k.run_id = r.id JOIN conversations c ON c.id = k.child_conversation_id"
        " WHERE v.turn_id = :id AND c.deleted_at IS NULL ORDER BY c.id",
        id=turn_id,
    )
    return [row[0] for row in rows]


def delete(tx: Tx, conversation_id: int, turn_id: int) -> None:
    """Delete a conversation's newest turn with all that hangs on it.

    No row id that is free again stays written anywhere, for the next row may get it.
    """
    own = {"conversation_id": conversation_id, "turn_id": turn_id}
    variants = _ids(tx, "SELECT id FROM variants WHERE turn_id = :turn_id", turn_id=turn_id)
    runs = _ids(tx, f"SELECT id FROM runs WHERE {among('variant_id', variants)}")
    forget_origin(tx, conversation_id, [turn_id], variants)
    _let_receipts_go(tx, conversation_id, variants, runs)
    inputs = _ids(
        tx,
        "SELECT id FROM inputs WHERE conversation_id = :conversation_id AND (turn_id = :turn_id"
        " OR id = (SELECT input_id FROM turns WHERE id = :turn_id))",
        **own,
    )
    inputs += _steers(tx, conversation_id, turn_id)
    tx.run(
        "UPDATE events SET turn_id = NULL, variant_id = NULL, run_id = NULL, task_id = NULL,"
        " step_id = NULL WHERE conversation_id = :conversation_id AND (turn_id = :turn_id"
        f" OR {among('variant_id', variants)} OR {among('run_id', runs)})",
        **own,
    )
    tx.run("UPDATE turns SET input_id = NULL WHERE id = :id", id=turn_id)
    tx.run(f"DELETE FROM attachments WHERE {among('input_id', inputs)}")
    tx.run(f"DELETE FROM inputs WHERE {among('id', inputs)}")
    tx.run("DELETE FROM turns WHERE id = :id", id=turn_id)
    tx.run(
        "UPDATE conversations SET active_turn_id = CASE WHEN active_turn_id = :turn_id THEN NULL"
        " ELSE active_turn_id END, next_position = next_position - 1 WHERE id = :conversation_id",
        **own,
    )


def _let_receipts_go(tx: Tx, conversation_id: int, variants: list[int], runs: list[int]) -> None:
    """Let receipts stay that this server was billed, without a name; a log's own go with it."""
    billed = (
        f"conversation_id = :id AND ({among('variant_id', variants)} OR {among('run_id', runs)})"
    )
    tx.run(
        f"DELETE FROM usage_receipts WHERE {billed} AND EXISTS (SELECT 1 FROM sessions s"
        "  WHERE s.conversation_id = :id AND s.agent IS NOT NULL)",
        id=conversation_id,
    )
    tx.run(
        "UPDATE usage_receipts SET variant_id = NULL, run_id = NULL, invocation_id = NULL"
        f" WHERE {billed}",
        id=conversation_id,
    )


def _steers(tx: Tx, conversation_id: int, turn_id: int) -> list[int]:
    """Return the inputs that a turn took in while it was answered; its events name them."""
    return _ids(
        tx,
        "SELECT n.id FROM inputs n WHERE n.conversation_id = :conversation_id"
        " AND n.consumed_at IS NOT NULL AND n.turn_id IS NULL AND EXISTS (SELECT 1 FROM events e"
        "  WHERE e.conversation_id = :conversation_id AND e.turn_id = :turn_id"
        "  AND e.type = 'input_materialized' AND e.payload LIKE '%' || n.public_id || '%')",
        conversation_id=conversation_id,
        turn_id=turn_id,
    )


def _ids(tx: Tx, sql: str, **params: int) -> list[int]:
    return [row[0] for row in tx.rows(sql, **params)]
