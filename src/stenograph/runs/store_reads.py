"""The SQL of pages: reasoning, rounds with their calls, tasks. Each is one keyset look."""

from collections.abc import Sequence

from stenograph.runs.task import Status
from stenograph.storage.database import Row, Tx, among

_MODEL = "i.provider_id, i.model_ref, i.reasoning_enabled, i.reasoning_effort"
VISIBLE_ROUND = "k.kind = 'model_task' AND k.transcript_visibility <> 'hidden'"


def reasoning(tx: Tx, run_id: int, before: int, limit: int) -> list[Row]:
    """Return the newest selected model tasks of a run before a row id (0: from the newest on).

    Columns: task id, key, invocation id, the four of its model, displayable text. The invocation
    is looked at by an outer join: one that is gone still counts as a task.
    """
    beyond = " AND k.id < :before" if before else ""
    return tx.rows(
        f"SELECT k.id, k.key, i.id, {_MODEL}, d.reasoning FROM tasks k"
        " LEFT JOIN invocations i ON i.id = k.selected_invocation_id"
        " LEFT JOIN invocation_details d ON d.invocation_id = i.id"
        f" WHERE k.run_id = :run_id AND {VISIBLE_ROUND}"
        f" AND k.selected_invocation_id IS NOT NULL{beyond} ORDER BY k.id DESC LIMIT :limit",
        run_id=run_id,
        limit=limit,
        **({"before": before} if before else {}),
    )


def reply_reasoning(tx: Tx, variant_id: int) -> str | None:
    """Return the displayable text that a direct reply adopted."""
    found = tx.value("SELECT reasoning FROM variant_details WHERE variant_id = :id", id=variant_id)
    return None if found is None else str(found)


# Runs of the timeline


def newest_rounds(tx: Tx, variant_ids: Sequence[int], limit: int, size: int) -> list[Row]:
    """Return the runs of candidates with the newest mainline rounds of each, oldest first.

    Columns: candidate; the run's public id and when it was pruned; the round's key (None: the run
    has none), status, visibility and selected invocation, the four of its model, the first `size`
    characters of its message.
    """
    newest = (
        f"SELECT k.id FROM tasks k WHERE k.run_id = r.id AND {VISIBLE_ROUND} AND k.mainline = 1"
        " ORDER BY k.id DESC LIMIT :limit"
    )
    return tx.rows(
        "WITH shown (variant_id, id, public_id, details_pruned_at, edge) AS MATERIALIZED ("
        "  SELECT r.variant_id, r.id, r.public_id, r.details_pruned_at,"
        f"   (SELECT min(n.id) FROM ({newest}) AS n)"
        f"  FROM runs r WHERE {among('r.variant_id', variant_ids)})"
        " SELECT s.variant_id, s.public_id, s.details_pruned_at, k.key, k.status,"
        f"  k.transcript_visibility, k.selected_invocation_id, {_MODEL},"
        "  substr(d.message, 1, :size)"
        f" FROM shown s LEFT JOIN tasks k ON k.run_id = s.id AND k.id >= s.edge"
        f"  AND {VISIBLE_ROUND} AND k.mainline = 1"
        " LEFT JOIN invocations i ON i.id = k.selected_invocation_id"
        " LEFT JOIN invocation_details d ON d.invocation_id = i.id ORDER BY k.id",
        limit=limit,
        size=size,
    )


# The transcript


def _bytes(tx: Tx, column: str) -> str:
    """Count the bytes of a text: SQLite before 3.43 has no octet_length."""
    if tx.dialect == "postgres":
        return f"octet_length({column})"
    return f"length(CAST({column} AS BLOB))"


def rounds(
    tx: Tx, run_id: int, *, branch: int | None, before: int, limit: int, size: int
) -> list[Row]:
    """Return the newest rounds before a row id: of the mainline, or what is beneath the call
    `branch`, rounds and a script's calls alike.

    Columns: task id, key, mainline, status, visibility, error, start, end; bytes of the message
    (a call's: of its output) and its first `size` characters; whether a compaction was made for it;
    whether it was asked with less than all; the four of usage, cost.
    """
    where = f"{VISIBLE_ROUND} AND k.mainline = 1"
    text, output = "d.message", ""
    if branch is not None:
        where = "k.transcript_visibility <> 'hidden' AND k.parent_id = :branch"
        text = "coalesce(d.message, o.output)"
        output = " LEFT JOIN task_details o ON o.task_id = k.id"
    beyond = " AND k.id < :before" if before else ""
    params = {"before": before} if before else {}
    if branch is not None:
        params["branch"] = branch
    return tx.rows(
        "SELECT k.id, k.key, k.mainline, k.status, k.transcript_visibility, k.error,"
        f" k.started_at, k.completed_at, {_bytes(tx, text)}, substr({text}, 1, :size),"
        " k.kind = 'model_task' AND EXISTS (SELECT 1 FROM tasks m WHERE m.parent_id = k.id"
        "  AND m.kind = 'model_task' AND m.status = 'completed'),"
        " EXISTS (SELECT 1 FROM events e WHERE e.task_id = k.id AND e.type = 'context_trimmed'),"
        " u.id, u.prompt_tokens, u.completion_tokens, u.cached_tokens, u.reasoning_tokens,"
        " u.cost_usd FROM tasks k"
        " LEFT JOIN invocation_details d ON d.invocation_id = k.selected_invocation_id"
        f" LEFT JOIN usage_receipts u ON u.invocation_id = k.selected_invocation_id{output}"
        f" WHERE k.run_id = :run_id AND {where}{beyond} ORDER BY k.id DESC LIMIT :limit",
        run_id=run_id,
        limit=limit,
        size=size,
        **params,
    )


def calls(tx: Tx, round_ids: Sequence[int], limit: int) -> list[Row]:
    """Return the first calls of each round, with how many it has.

    Columns: round, how many, key, kind, status, visibility, name, provider's call id, the key of
    the script call that made it, error, start, end, the conversation it started.
    """
    return tx.rows(
        "SELECT x.round_id, x.total, x.key, x.kind, x.status, x.transcript_visibility, x.name,"
        " x.tool_call_id, p.key, x.error, x.started_at, x.completed_at, c.public_id FROM"
        " (SELECT k.*, ROW_NUMBER() OVER (PARTITION BY k.round_id ORDER BY k.call_index, k.id)"
        "  AS place, COUNT(*) OVER (PARTITION BY k.round_id) AS total FROM tasks k"
        f"  WHERE {among('k.round_id', round_ids)} AND k.transcript_visibility <> 'hidden') AS x"
        " LEFT JOIN tasks p ON p.id = x.parent_id AND p.kind <> 'model_task'"
        " LEFT JOIN conversations c ON c.id = x.child_conversation_id AND c.deleted_at IS NULL"
        " WHERE x.place <= :limit ORDER BY x.round_id, x.place",
        limit=limit,
    )


def branches(tx: Tx, round_ids: Sequence[int]) -> list[Row]:
    """Return the calls of rounds beneath which something is shown: round, key."""
    return tx.rows(
        f"SELECT k.round_id, k.key FROM tasks k WHERE {among('k.round_id', round_ids)}"
        " AND EXISTS (SELECT 1 FROM tasks b WHERE b.parent_id = k.id"
        "  AND b.transcript_visibility <> 'hidden') ORDER BY k.round_id, k.call_index, k.id"
    )


# The overview


def newest_tasks(tx: Tx, run_id: int, limit: int) -> list[Row]:
    """Return the newest tasks that are not hidden, newest first.

    Columns: key, kind, status, visibility, mainline, name, start, end.
    """
    return tx.rows(
        "SELECT key, kind, status, transcript_visibility, mainline, name, started_at, completed_at"
        " FROM tasks WHERE run_id = :run_id AND transcript_visibility <> 'hidden'"
        " ORDER BY id DESC LIMIT :limit",
        run_id=run_id,
        limit=limit,
    )


def progress(tx: Tx, run_id: int, limit: int) -> dict[Status, int]:
    """Count the newest `limit` tasks of a run that are not hidden, by status."""
    rows = tx.rows(
        "SELECT x.status, count(*) FROM (SELECT status FROM tasks WHERE run_id = :run_id"
        " AND transcript_visibility <> 'hidden' ORDER BY id DESC LIMIT :limit) AS x"
        " GROUP BY x.status ORDER BY x.status",
        run_id=run_id,
        limit=limit,
    )
    return {row[0]: int(row[1]) for row in rows}


def deliverable(tx: Tx, run_id: int) -> str | None:
    """Return the key of the newest mainline round that was answered."""
    found = tx.value(
        f"SELECT k.key FROM tasks k WHERE k.run_id = :run_id AND {VISIBLE_ROUND}"
        " AND k.mainline = 1 AND k.status = 'completed' ORDER BY k.id DESC LIMIT 1",
        run_id=run_id,
    )
    return None if found is None else str(found)


def turn_of(tx: Tx, turn_id: int, variant_id: int) -> Row:
    """Return public id, position, kind, status of a run's turn, and the candidate's public id."""
    row = tx.row(
        "SELECT t.public_id, t.position, t.kind, t.status, v.public_id FROM turns t"
        " JOIN variants v ON v.turn_id = t.id WHERE t.id = :turn_id AND v.id = :variant_id",
        turn_id=turn_id,
        variant_id=variant_id,
    )
    assert row is not None
    return row


# A task's detail


def answer(tx: Tx, invocation_id: int) -> Row | None:
    """Return message, the four of the model, tokens (prompt, completion, cached, reasoning), cost.

    `u.id` stands before the tokens: null where the call has no receipt.
    """
    return tx.row(
        f"SELECT d.message, {_MODEL}, u.id, u.prompt_tokens, u.completion_tokens,"
        " u.cached_tokens, u.reasoning_tokens, u.cost_usd FROM invocations i"
        " LEFT JOIN invocation_details d ON d.invocation_id = i.id"
        " LEFT JOIN usage_receipts u ON u.invocation_id = i.id WHERE i.id = :id",
        id=invocation_id,
    )
