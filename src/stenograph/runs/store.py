"""The SQL that writes runs, tasks and model calls, and finds one of them."""

from collections.abc import Sequence

from stenograph.storage.database import Row, Tx, among

_RUN = (
    "r.id, r.public_id, r.conversation_id, v.turn_id, r.variant_id, r.status, r.approval_mode,"
    " r.failure_reason, r.started_at, r.paused_at, r.delivered_at, r.completed_at,"
    " r.details_pruned_at, r.created_at, r.updated_at"
)
_TASK = (
    "k.id, k.run_id, k.key, k.kind, k.status, k.transcript_visibility, k.mainline, k.parent_id,"
    " k.round_id, k.call_index, k.tool_call_id, k.name, k.selected_invocation_id,"
    " k.child_conversation_id, k.error, k.started_at, k.completed_at"
)


# Runs


def run(tx: Tx, run_id: int) -> Row:
    """Return a run that was found through its conversation."""
    row = tx.row(
        f"SELECT {_RUN} FROM runs r JOIN variants v ON v.id = r.variant_id WHERE r.id = :id",
        id=run_id,
    )
    assert row is not None
    return row


def run_of(tx: Tx, variant_id: int) -> Row | None:
    """Find the run of a candidate."""
    return tx.row(
        f"SELECT {_RUN} FROM runs r JOIN variants v ON v.id = r.variant_id"
        " WHERE r.variant_id = :id",
        id=variant_id,
    )


def add_run(tx: Tx, conversation_id: int, **columns: object) -> int:
    """Insert a run into the workspace of its conversation."""
    workspace_id = tx.value(
        "SELECT workspace_id FROM conversations WHERE id = :id", id=conversation_id
    )
    return tx.insert("runs", workspace_id=workspace_id, conversation_id=conversation_id, **columns)


def update_run(tx: Tx, run_id: int, **columns: object) -> None:
    """Write how a run stands."""
    sets = ", ".join(f"{name} = :{name}" for name in columns)
    tx.run(f"UPDATE runs SET {sets} WHERE id = :id", id=run_id, **columns)


def take_round(tx: Tx, run_id: int) -> int:
    """Return the run's next round number, which is the caller's from now on."""
    number = tx.value(
        "UPDATE runs SET next_round = next_round + 1 WHERE id = :id RETURNING next_round - 1",
        id=run_id,
    )
    return int(number)


def cancel_work(tx: Tx, run_id: int, at: int) -> None:
    """End what a run has not finished: its tasks and their model calls."""
    tx.run(
        "UPDATE invocations SET status = 'canceled', terminal_at = :at"
        " WHERE status IN ('queued', 'running')"
        " AND task_id IN (SELECT id FROM tasks WHERE run_id = :id)",
        id=run_id,
        at=at,
    )
    tx.run(
        "UPDATE tasks SET status = 'canceled', completed_at = :at WHERE run_id = :id"
        " AND status IN ('queued', 'needs_approval', 'running', 'dispatched', 'awaiting_input')",
        id=run_id,
        at=at,
    )


# Tasks


def add_task(tx: Tx, input: str | None, **columns: object) -> int:
    """Insert a task; `input` is the call's arguments as JSON."""
    task_id = tx.insert("tasks", **columns)
    if input is not None:
        tx.insert_many("task_details", ("task_id", "input"), [(task_id, input)])
    return task_id


def last_index(tx: Tx, round_id: int) -> int:
    """Return the place of a round's last call, those of its scripts included."""
    return int(tx.value("SELECT max(call_index) FROM tasks WHERE round_id = :id", id=round_id))


def task(tx: Tx, run_id: int, key: str) -> Row | None:
    """Find a task of a run by its key."""
    return tx.row(
        f"SELECT {_TASK} FROM tasks k WHERE k.run_id = :run_id AND k.key = :key",
        run_id=run_id,
        key=key,
    )


def update_task(tx: Tx, task_id: int, **columns: object) -> None:
    """Write how a task stands."""
    sets = ", ".join(f"{name} = :{name}" for name in columns)
    tx.run(f"UPDATE tasks SET {sets} WHERE id = :id", id=task_id, **columns)


def set_output(tx: Tx, task_id: int, output: str) -> None:
    """Write what a task returned."""
    tx.run(
        "INSERT INTO task_details (task_id, output) VALUES (:id, :output)"
        " ON CONFLICT (task_id) DO UPDATE SET output = excluded.output",
        id=task_id,
        output=output,
    )


def task_details(tx: Tx, task_id: int) -> tuple[str | None, str | None]:
    """Return arguments (JSON) and output of a task."""
    row = tx.row("SELECT input, output FROM task_details WHERE task_id = :id", id=task_id)
    return (None, None) if row is None else (row[0], row[1])


def keys(tx: Tx, task_ids: Sequence[int]) -> dict[int, str]:
    """Return the keys of tasks by row id."""
    rows = tx.rows(f"SELECT id, key FROM tasks WHERE {among('id', task_ids)}")
    return {row[0]: row[1] for row in rows}


def child(tx: Tx, conversation_id: int) -> str | None:
    """Return the public id of a conversation that a call started, unless it was deleted."""
    found = tx.value(
        "SELECT public_id FROM conversations WHERE id = :id AND deleted_at IS NULL",
        id=conversation_id,
    )
    return None if found is None else str(found)


# Model calls


def add_invocation(tx: Tx, **columns: object) -> int:
    """Insert a model call."""
    return tx.insert("invocations", **columns)


def calls_before(tx: Tx, task_id: int) -> int:
    """Return how many model calls were made for a task."""
    return int(tx.value("SELECT count(*) FROM invocations WHERE task_id = :id", id=task_id))


def replies_before(tx: Tx, variant_id: int) -> int:
    """Return how many model calls were made for a direct reply."""
    return int(tx.value("SELECT count(*) FROM invocations WHERE variant_id = :id", id=variant_id))


def link_variant(tx: Tx, variant_id: int, invocation_id: int) -> None:
    """Say which model call answers a direct reply."""
    tx.run(
        "UPDATE variants SET invocation_id = :invocation_id WHERE id = :id",
        id=variant_id,
        invocation_id=invocation_id,
    )


def update_invocation(tx: Tx, invocation_id: int, **columns: object) -> None:
    """Write how a model call stands."""
    sets = ", ".join(f"{name} = :{name}" for name in columns)
    tx.run(f"UPDATE invocations SET {sets} WHERE id = :id", id=invocation_id, **columns)


def keep_answer(
    tx: Tx,
    invocation_id: int,
    *,
    message: str | None,
    reasoning: str | None,
    reasoning_trace: str | None,
    response: str | None,
) -> None:
    """Keep what the model answered."""
    tx.run(
        "INSERT INTO invocation_details"
        " (invocation_id, message, reasoning, reasoning_trace, response)"
        " VALUES (:id, :message, :reasoning, :reasoning_trace, :response)"
        " ON CONFLICT (invocation_id) DO UPDATE SET message = excluded.message,"
        " reasoning = excluded.reasoning, reasoning_trace = excluded.reasoning_trace,"
        " response = excluded.response",
        id=invocation_id,
        message=message,
        reasoning=reasoning,
        reasoning_trace=reasoning_trace,
        response=response,
    )


def add_receipt(tx: Tx, **columns: object) -> None:
    """Write what a model call took; it outlives the call's details."""
    tx.insert("usage_receipts", **columns)


def first_selected(tx: Tx, run_id: int) -> int | None:
    """Return the selected model call of a run's first mainline round."""
    found = tx.value(
        "SELECT selected_invocation_id FROM tasks WHERE run_id = :id AND kind = 'model_task'"
        " AND transcript_visibility <> 'hidden' AND mainline = 1 ORDER BY id LIMIT 1",
        id=run_id,
    )
    return None if found is None else int(found)
