"""The SQL of the steps of messages, and of turns that a cancellation ends."""

from stenograph.runs.store import cancel_work
from stenograph.storage.database import Row, Tx


def open_turns(tx: Tx, conversation_id: int) -> list[Row]:
    """Return (turn, active candidate, its run) of turns that have not ended, in order."""
    return tx.rows(
        "SELECT t.id, t.active_variant_id, r.id FROM turns t"
        " LEFT JOIN runs r ON r.variant_id = t.active_variant_id"
        " WHERE t.conversation_id = :id AND t.status IN ('pending', 'running')"
        " AND t.deleted_at IS NULL ORDER BY t.position",
        id=conversation_id,
    )


def insert_step(
    tx: Tx,
    conversation_id: int,
    part: str,
    turn_id: int,
    variant_id: int,
    text: str | None,
    at: int,
    *,
    source: str = "user",
    rest: str | None = None,
) -> int:
    """Add the step of a prompt (whose text lies with its candidate) or of a steer."""
    position = tx.value(
        "UPDATE conversations SET next_step = next_step + 1 WHERE id = :id RETURNING next_step - 1",
        id=conversation_id,
    )
    return tx.insert(
        "steps",
        conversation_id=conversation_id,
        position=position,
        part=part,
        source=source,
        turn_id=turn_id,
        variant_id=variant_id,
        occurred_at=at,
        text=text,
        rest=rest,
    )


def cancel(tx: Tx, turn: Row, reason: str, at: int) -> None:
    """End a turn (a row of `open_turns`), its candidate and its run without an answer."""
    turn_id, variant_id, run_id = turn
    if run_id is not None:
        cancel_work(tx, run_id, at)
    tx.run(
        "UPDATE invocations SET status = 'canceled', terminal_at = :at"
        " WHERE variant_id = :id AND status IN ('queued', 'running')",
        id=variant_id,
        at=at,
    )
    tx.run(
        "UPDATE turns SET status = 'canceled', completed_at = :at WHERE id = :id",
        id=turn_id,
        at=at,
    )
    tx.run(
        "UPDATE variants SET status = 'canceled', failure_reason = :reason, completed_at = :at"
        " WHERE id = :id",
        id=variant_id,
        reason=reason,
        at=at,
    )
    tx.run(
        "UPDATE runs SET status = 'canceled', failure_reason = :reason, completed_at = :at,"
        " updated_at = :at WHERE id = :id AND status NOT IN ('completed', 'canceled')",
        id=run_id,
        reason=reason,
        at=at,
    )
    tx.run("UPDATE conversations SET active_turn_id = NULL WHERE active_turn_id = :id", id=turn_id)


def unheard(tx: Tx, conversation_id: int) -> list[Row]:
    """Return inputs that became turns behind the last one with a step, in order: (turn, candidate,
    position, kind, role, content, time)."""
    return tx.rows(
        "SELECT t.id, v.id, t.position, t.kind, t.role, v.content, t.created_at"
        " FROM turns t JOIN variants v ON v.id = t.active_variant_id"
        " WHERE t.conversation_id = :id AND t.kind IN ('message', 'direct_reply')"
        " AND t.input_id IS NOT NULL AND t.position > coalesce("
        "  (SELECT q.position FROM turns q WHERE q.conversation_id = :id"
        "   AND EXISTS (SELECT 1 FROM steps s WHERE s.turn_id = q.id)"
        "   ORDER BY q.position DESC LIMIT 1), -1)"
        " ORDER BY t.position",
        id=conversation_id,
    )
