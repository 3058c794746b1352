"""The SQL of a run as a whole: its tasks as a graph, its phases, what it spent."""

from stenograph.runs.store_reads import VISIBLE_ROUND
from stenograph.storage.database import Row, Tx, among


def tasks(tx: Tx, run_id: int, limit: int) -> list[Row]:
    """Return the newest tasks of a run, hidden ones too, newest first.

    Columns: id, key, kind, status, visibility, mainline, name, parent, round.
    """
    return tx.rows(
        "SELECT id, key, kind, status, transcript_visibility, mainline, name, parent_id, round_id"
        " FROM tasks WHERE run_id = :run_id ORDER BY id DESC LIMIT :limit",
        run_id=run_id,
        limit=limit,
    )


def mainline(tx: Tx, run_id: int, limit: int) -> list[Row]:
    """Return the newest mainline rounds, newest first: id, key, status, start, end."""
    return tx.rows(
        "SELECT k.id, k.key, k.status, k.started_at, k.completed_at FROM tasks k"
        f" WHERE k.run_id = :run_id AND {VISIBLE_ROUND} AND k.mainline = 1"
        " ORDER BY k.id DESC LIMIT :limit",
        run_id=run_id,
        limit=limit,
    )


def calls(tx: Tx, round_ids: list[int]) -> list[Row]:
    """Return (round, status, how many, the latest end of those that have one) of what rounds
    called, by status; hidden ones count."""
    return tx.rows(
        "SELECT round_id, status, count(*), max(completed_at) FROM tasks"
        f" WHERE {among('round_id', round_ids)} GROUP BY round_id, status ORDER BY round_id, status"
    )


def under_way(tx: Tx, run_id: int, since: int, limit: int) -> list[Row]:
    """Return (key, kind, status, name) of tasks that have no end and do not belong to the mainline
    round `since` (row id): what goes on beside it. In order of making."""
    return tx.rows(
        "SELECT key, kind, status, name FROM tasks WHERE run_id = :run_id"
        " AND status IN ('queued', 'needs_approval', 'running', 'dispatched', 'awaiting_input')"
        " AND id <> :since AND coalesce(round_id, 0) <> :since ORDER BY id LIMIT :limit",
        run_id=run_id,
        since=since,
        limit=limit,
    )


def spend(tx: Tx, run_id: int) -> Row:
    """Add up the receipts of a run's model calls, superseded ones too: count, prompt, cached, cache
    writes, completion, reasoning tokens, cost, and how many have no cost."""
    row = tx.row(
        # PostgreSQL adds whole numbers up to a numeric one.
        "SELECT count(*), CAST(coalesce(sum(u.prompt_tokens), 0) AS bigint),"
        " CAST(coalesce(sum(u.cached_tokens), 0) AS bigint),"
        " CAST(coalesce(sum(u.cache_write_tokens), 0) AS bigint),"
        " CAST(coalesce(sum(u.completion_tokens), 0) AS bigint),"
        " CAST(coalesce(sum(u.reasoning_tokens), 0) AS bigint), coalesce(sum(u.cost_usd), 0),"
        " count(*) - count(u.cost_usd) FROM tasks k JOIN invocations i ON i.task_id = k.id"
        " JOIN usage_receipts u ON u.invocation_id = i.id WHERE k.run_id = :id",
        id=run_id,
    )
    assert row is not None
    return row
