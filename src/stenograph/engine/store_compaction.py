"""The SQL of compactions: their steps, the model tasks that make them, what was trimmed."""

from stenograph.storage.database import Row, Tx

#: A system step that replaces what stood before it, in whichever program's words it was written.
_REPLACES = """s.part = 'system' AND s.rest LIKE '%"boundary":"replace"%'"""
#: The name of the model tasks that sum up.
NAME = "compaction"
_MADE = f"k.kind = 'model_task' AND k.name = '{NAME}'"


# Conversations


def conversation(tx: Tx, conversation_id: int) -> Row:
    """Return what a `Conversation` has, its level apart, of one that the caller may drive."""
    row = tx.row(
        "SELECT c.id, c.public_id, c.workspace_id, w.state, c.creator_id, c.answerer_id,"
        " EXISTS (SELECT 1 FROM ancestries a WHERE a.conversation_id = c.id), c.side,"
        " c.context_revision, c.active_turn_id, c.next_sequence, c.archived_at"
        " FROM conversations c JOIN workspaces w ON w.id = c.workspace_id WHERE c.id = :id",
        id=conversation_id,
    )
    assert row is not None
    return row


def facts(tx: Tx, conversation_id: int) -> Row:
    """Return a session's model and options (JSON) and the instructions of its Reason; nulls for a
    conversation that is no session."""
    row = tx.row(
        "SELECT s.model, s.options, r.instructions FROM conversations c"
        " LEFT JOIN sessions s ON s.conversation_id = c.id"
        " LEFT JOIN reasons r ON r.id = s.reason_id"
        " WHERE c.id = :id",
        id=conversation_id,
    )
    assert row is not None
    return row


def newest_candidate(tx: Tx, conversation_id: int) -> tuple[str, bool] | None:
    """Return the candidate that the newest turn shows which a model answers, and whether it is
    still under way."""
    row = tx.row(
        "SELECT v.public_id, v.status IN ('pending', 'running') FROM turns t"
        " JOIN variants v ON v.id = t.active_variant_id WHERE t.conversation_id = :id"
        " AND v.source IN ('run', 'inference') AND t.deleted_at IS NULL"
        " ORDER BY t.position DESC LIMIT 1",
        id=conversation_id,
    )
    return None if row is None else (str(row[0]), bool(row[1]))


# Steps


def newest(
    tx: Tx, conversation_id: int, variant_id: int, turn_position: int, before: int
) -> Row | None:
    """Return (candidate, position of its turn, place, rest) of the newest compaction before a place
    that was made for a candidate itself, or in an earlier turn for the one it shows."""
    return tx.row(
        "SELECT s.variant_id, t.position, s.position, s.rest FROM steps s"
        f" JOIN turns t ON t.id = s.turn_id WHERE s.conversation_id = :id AND {_REPLACES}"
        " AND s.position < :before AND (s.variant_id = :variant_id"
        "  OR (t.position < :turn_position AND s.variant_id = t.active_variant_id"
        "   AND t.visibility = 'visible' AND t.deleted_at IS NULL))"
        " ORDER BY s.position DESC LIMIT 1",
        id=conversation_id,
        variant_id=variant_id,
        turn_position=turn_position,
        before=before,
    )


def inherited(tx: Tx, conversation_id: int) -> Row | None:
    """As `newest`, of the turns that a fork shows from its ancestors, as it sees them."""
    return tx.row(
        "SELECT s.variant_id, t.position, s.position, s.rest FROM ancestries a"
        " JOIN steps s ON s.conversation_id = a.ancestor_id JOIN turns t ON t.id = s.turn_id"
        " LEFT JOIN turn_overrides o ON o.turn_id = t.id AND o.conversation_id = :id"
        f" WHERE a.conversation_id = :id AND {_REPLACES}"
        " AND t.position <= a.boundary_position AND s.variant_id = t.active_variant_id"
        " AND coalesce(o.visibility, 'visible') = 'visible' AND o.deleted_at IS NULL"
        " ORDER BY a.depth, s.position DESC LIMIT 1",
        id=conversation_id,
    )


def add_summary(
    tx: Tx, conversation_id: int, *, turn_id: int, variant_id: int, text: str, rest: str, at: int
) -> int:
    """Add the step of a compaction at the end of the trajectory."""
    return tx.insert(
        "steps",
        conversation_id=conversation_id,
        position=_take_place(tx, conversation_id),
        part="system",
        source="system",
        turn_id=turn_id,
        variant_id=variant_id,
        occurred_at=at,
        text=text,
        rest=rest,
    )


def put_behind(tx: Tx, conversation_id: int, task_id: int) -> None:
    """Move the place of a model call that nobody has answered to the end of the trajectory."""
    tx.run(
        "UPDATE steps SET position = :position WHERE conversation_id = :id AND task_id = :task_id"
        " AND part = 'agent'",
        id=conversation_id,
        task_id=task_id,
        position=_take_place(tx, conversation_id),
    )


def _take_place(tx: Tx, conversation_id: int) -> int:
    place = tx.value(
        "UPDATE conversations SET next_step = next_step + 1 WHERE id = :id RETURNING next_step - 1",
        id=conversation_id,
    )
    return int(place)


def steers(tx: Tx, variant_id: int) -> list[Row]:
    """Return (step, text) of what was said to a candidate while it was made, in order."""
    return tx.rows(
        "SELECT id, text FROM steps WHERE variant_id = :id AND part = 'steer' ORDER BY position",
        id=variant_id,
    )


def hand_on(
    tx: Tx, conversation_id: int, step_id: int, turn_id: int, variant_id: int, *, opens: bool
) -> None:
    """Give a steer to another turn, at the end of the trajectory: as a steer of that, or as the
    prompt that opens it, whose text lies with the candidate."""
    changed = ", part = 'prompt', text = NULL" if opens else ""
    tx.run(
        "UPDATE steps SET position = :position, turn_id = :turn_id, variant_id = :variant_id"
        f"{changed} WHERE id = :id",
        id=step_id,
        position=_take_place(tx, conversation_id),
        turn_id=turn_id,
        variant_id=variant_id,
    )
    tx.run(
        "UPDATE messages SET turn_id = :turn_id"
        f"{', variant_id = :variant_id, step_id = NULL' if opens else ''} WHERE step_id = :id",
        id=step_id,
        turn_id=turn_id,
        **({"variant_id": variant_id} if opens else {}),
    )


def last_status(tx: Tx, conversation_id: int) -> str | None:
    """Return how the newest turn ended that was more than a summary."""
    found = tx.value(
        "SELECT status FROM turns WHERE conversation_id = :id AND kind <> 'compaction_summary'"
        " ORDER BY position DESC LIMIT 1",
        id=conversation_id,
    )
    return None if found is None else str(found)


# Tasks


def made_for(tx: Tx, run_id: int, round_id: int) -> Row | None:
    """Return (key, status) of the newest compaction before a round."""
    return tx.row(
        f"SELECT k.key, k.status FROM tasks k WHERE k.parent_id = :round_id AND {_MADE}"
        " AND k.run_id = :run_id ORDER BY k.id DESC LIMIT 1",
        round_id=round_id,
        run_id=run_id,
    )


def asked_for(tx: Tx, run_id: int) -> str | None:
    """Return the key of a compaction of a run that somebody asked for and that nobody began."""
    found = tx.value(
        f"SELECT k.key FROM tasks k WHERE k.run_id = :run_id AND {_MADE}"
        " AND k.status = 'queued' AND k.parent_id IS NULL ORDER BY k.id LIMIT 1",
        run_id=run_id,
    )
    return None if found is None else str(found)


def is_open(tx: Tx, run_id: int) -> bool:
    """Tell whether a compaction of a run waits, or is being made."""
    return bool(
        tx.value(
            f"SELECT 1 FROM tasks k WHERE k.run_id = :id AND {_MADE}"
            " AND k.status IN ('queued', 'running') LIMIT 1",
            id=run_id,
        )
    )


def count(tx: Tx, run_id: int) -> int:
    """Return how many compactions a run has had."""
    return int(
        tx.value(f"SELECT count(*) FROM tasks k WHERE k.run_id = :id AND {_MADE}", id=run_id)
    )


def failures(tx: Tx, run_id: int) -> int:
    """Return how many compactions of a run have failed."""
    failed = f"SELECT count(*) FROM tasks k WHERE k.run_id = :id AND {_MADE}"
    return int(tx.value(f"{failed} AND k.status = 'failed'", id=run_id))


def skip(tx: Tx, run_id: int, at: int) -> None:
    """End the compactions of a run that nobody began: it has come to its end without them."""
    tx.run(
        "UPDATE tasks SET status = 'skipped', completed_at = :at WHERE run_id = :id"
        f" AND kind = 'model_task' AND name = '{NAME}' AND status = 'queued'",
        id=run_id,
        at=at,
    )


def assign(tx: Tx, task_id: int, round_id: int | None, input: str | None = None) -> None:
    """Say before which round a compaction is made, or how somebody wants it made (JSON)."""
    tx.run(
        f"UPDATE tasks SET name = '{NAME}', mainline = 0, parent_id = :round_id WHERE id = :id",
        id=task_id,
        round_id=round_id,
    )
    if input is not None:
        tx.run(
            "INSERT INTO task_details (task_id, input) VALUES (:id, :input)",
            id=task_id,
            input=input,
        )


def wish(tx: Tx, task_id: int) -> str | None:
    """Return how somebody wants a compaction made (JSON)."""
    found = tx.value("SELECT input FROM task_details WHERE task_id = :id", id=task_id)
    return None if found is None else str(found)


def was_trimmed(tx: Tx, task_id: int) -> bool:
    """Tell whether a round was asked with less than the whole history."""
    return bool(
        tx.value(
            "SELECT 1 FROM events WHERE task_id = :id AND type = 'context_trimmed' LIMIT 1",
            id=task_id,
        )
    )


def last_provider(tx: Tx, run_id: int, before: int) -> str | None:
    """Return the provider of a run's newest mainline model call before an invocation."""
    found = tx.value(
        "SELECT i.provider_id FROM tasks k JOIN invocations i ON i.task_id = k.id"
        " WHERE k.run_id = :id AND k.mainline = 1 AND i.id < :before ORDER BY i.id DESC LIMIT 1",
        id=run_id,
        before=before,
    )
    return None if found is None else str(found)
