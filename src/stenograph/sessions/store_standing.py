"""The SQL of how a session stands, and which candidate its feed names."""

from stenograph.sessions.store import update
from stenograph.storage.database import Row, Tx


def name_prompt(tx: Tx, conversation_id: int, turn_id: int, variant_id: int) -> None:
    """Let the row of what opened a turn name another candidate; steers and what subagents said
    have rows that name something else."""
    tx.run(
        "UPDATE messages SET variant_id = :variant_id WHERE turn_id = :turn_id"
        " AND conversation_id = :id AND kind IN ('prompt', 'message')"
        " AND step_id IS NULL AND source IS NULL AND variant_id IS NOT NULL",
        id=conversation_id,
        turn_id=turn_id,
        variant_id=variant_id,
    )


def waits_here(tx: Tx, conversation_id: int) -> bool:
    """Tell whether a conversation is a session of this server's in which nothing is under way."""
    return bool(
        tx.value(
            "SELECT 1 FROM sessions f WHERE f.conversation_id = :id AND f.agent IS NULL"
            " AND NOT EXISTS (SELECT 1 FROM variants v CROSS JOIN turns t"
            "  WHERE v.status IN ('pending', 'running') AND t.id = v.turn_id"
            "  AND t.conversation_id = :id)",
            id=conversation_id,
        )
    )


def newest_answer(tx: Tx, conversation_id: int) -> Row | None:
    """Return status, reason and outcome of the newest turn that was answered."""
    return tx.row(
        "SELECT t.status, v.failure_reason, m.outcome FROM turns t"
        " JOIN variants v ON v.id = t.active_variant_id"
        " LEFT JOIN messages m ON m.turn_id = t.id AND m.kind = 'reply'"
        "  AND m.conversation_id = t.conversation_id"
        " WHERE t.conversation_id = :id AND t.kind = 'direct_reply'"
        " ORDER BY t.position DESC LIMIT 1",
        id=conversation_id,
    )


def set_facts(tx: Tx, conversation_id: int, **facts: str | int | None) -> None:
    """Write how a session stands."""
    update(tx, conversation_id, **facts)
