"""The SQL of driving: what a candidate needs to go on, and what was said before it."""

import hashlib
from collections.abc import Collection, Sequence

from stenograph.storage.database import Row, Tx, among

_UNSETTLED = "('pending', 'running')"
_OPEN_TASK = "('queued', 'needs_approval', 'running', 'dispatched', 'awaiting_input')"


# A candidate


def place(tx: Tx, candidate: str) -> Row | None:
    """Return where a candidate lies: its turn's public id, organization, the session's mode (None:
    no session), model, effort, options and instructions, the wishes of the input, what its prompt's
    step says besides, then what a `Conversation` has."""
    return tx.row(
        "SELECT t.public_id, w.organization_id, s.mode, s.model, s.reasoning_effort, s.options,"
        " r.instructions, n.options, (SELECT p.rest FROM steps p WHERE p.variant_id = v.id"
        "  AND p.part = 'prompt' ORDER BY p.id LIMIT 1),"
        " c.id, c.public_id, c.workspace_id, w.state, c.creator_id, c.answerer_id,"
        " EXISTS (SELECT 1 FROM ancestries a WHERE a.conversation_id = c.id), c.side,"
        " c.context_revision, c.active_turn_id, c.next_sequence, c.archived_at"
        " FROM variants v JOIN turns t ON t.id = v.turn_id"
        " JOIN conversations c ON c.id = t.conversation_id"
        " JOIN workspaces w ON w.id = c.workspace_id"
        " LEFT JOIN sessions s ON s.conversation_id = c.id"
        " LEFT JOIN reasons r ON r.id = s.reason_id"
        " LEFT JOIN inputs n ON n.id = t.input_id WHERE v.public_id = :candidate",
        candidate=candidate,
    )


def conversation_of(tx: Tx, candidate: str) -> int | None:
    """Return the conversation in which a candidate lies."""
    found = tx.value(
        "SELECT t.conversation_id FROM variants v JOIN turns t ON t.id = v.turn_id"
        " WHERE v.public_id = :candidate",
        candidate=candidate,
    )
    return None if found is None else int(found)


def is_unsettled(tx: Tx, candidate: str) -> bool:
    """Tell whether a candidate still waits for its end."""
    return bool(
        tx.value(
            f"SELECT 1 FROM variants WHERE public_id = :candidate AND status IN {_UNSETTLED}",
            candidate=candidate,
        )
    )


def unsettled(tx: Tx) -> list[str]:
    """Return the candidates that an engine of this server has to answer, in order of making.

    Those of agents that run elsewhere, and of direct replies by people, are not among them.
    """
    rows = tx.rows(
        "SELECT v.public_id FROM variants v JOIN turns t ON t.id = v.turn_id"
        " LEFT JOIN sessions s ON s.conversation_id = t.conversation_id"
        f" WHERE v.status IN {_UNSETTLED} AND v.source IN ('run', 'inference')"
        " AND (v.prompt IS NOT NULL OR t.kind = 'compaction_summary') AND s.agent IS NULL"
        " ORDER BY +v.id"  # by the index of what waits
    )
    return [row[0] for row in rows]


def unsettled_of(tx: Tx, conversation_id: int) -> list[str]:
    """Return the candidates of one conversation that wait for their end."""
    rows = tx.rows(
        "SELECT v.public_id FROM turns t JOIN variants v ON v.turn_id = t.id"
        f" WHERE t.conversation_id = :id AND v.status IN {_UNSETTLED} ORDER BY v.id",
        id=conversation_id,
    )
    return [row[0] for row in rows]


def seen(tx: Tx, executor: str, at: int, within: int) -> frozenset[str]:
    """Write that an engine drives now; return those that did within so many microseconds."""
    tx.run(
        "INSERT INTO engines (executor, seen_at) VALUES (:executor, :at)"
        " ON CONFLICT (executor) DO UPDATE SET seen_at = excluded.seen_at",
        executor=executor,
        at=at,
    )
    rows = tx.rows("SELECT executor FROM engines WHERE seen_at > :since", since=at - within)
    return frozenset(row[0] for row in rows)


def runs_here(tx: Tx, conversation_id: int) -> bool | None:
    """Tell whether a session's agent is this server's; None: the conversation is no session."""
    row = tx.row(
        "SELECT agent IS NULL FROM sessions WHERE conversation_id = :id", id=conversation_id
    )
    return None if row is None else bool(row[0])


def candidate_of(tx: Tx, variant_id: int) -> str | None:
    """Return the public id of a candidate."""
    found = tx.value("SELECT public_id FROM variants WHERE id = :id", id=variant_id)
    return None if found is None else str(found)


def reopen_candidate(tx: Tx, variant_id: int) -> None:
    """Say that a candidate that failed waits to be answered again."""
    tx.run(
        "UPDATE variants SET status = 'pending', failure_reason = NULL, completed_at = NULL"
        " WHERE id = :id",
        id=variant_id,
    )


def is_pruned(tx: Tx, turn_id: int, shown_id: int) -> bool:
    """Tell whether the details of a turn's original candidate, or of the one it shows, are gone."""
    return bool(
        tx.value(
            "SELECT 1 FROM variants v LEFT JOIN runs r ON r.variant_id = v.id"
            " WHERE v.turn_id = :turn_id AND (v.position = 0 OR v.id = :shown_id)"
            " AND (v.details_pruned_at IS NOT NULL OR r.details_pruned_at IS NOT NULL) LIMIT 1",
            turn_id=turn_id,
            shown_id=shown_id,
        )
    )


def run_candidate(tx: Tx, variant_id: int) -> None:
    """Say that a candidate is being worked on."""
    tx.run("UPDATE variants SET status = 'running' WHERE id = :id", id=variant_id)


# Rounds


def newest_round(tx: Tx, run_id: int) -> str | None:
    """Return the key of the run's newest mainline round."""
    found = tx.value(
        "SELECT key FROM tasks WHERE run_id = :id AND kind = 'model_task' AND mainline = 1"
        " ORDER BY id DESC LIMIT 1",
        id=run_id,
    )
    return None if found is None else str(found)


def calls_of(tx: Tx, round_id: int) -> list[Row]:
    """Return (key, status, name) of what a round called itself, in order; calls of its scripts are
    left out."""
    return tx.rows(
        "SELECT key, status, name FROM tasks WHERE round_id = :id AND parent_id = :id"
        " ORDER BY call_index",
        id=round_id,
    )


def rounds_made(tx: Tx, run_id: int) -> int:
    """Return how many rounds a run has had, branches included, compactions not."""
    return int(
        tx.value(
            "SELECT count(*) FROM tasks WHERE run_id = :id AND kind = 'model_task'"
            " AND transcript_visibility <> 'hidden'",
            id=run_id,
        )
    )


def add_step(
    tx: Tx,
    conversation_id: int,
    *,
    turn_id: int,
    variant_id: int,
    task_id: int | None,
    at: int,
) -> int:
    """Give a model call its place in the trajectory, and return that place."""
    position = tx.value(
        "UPDATE conversations SET next_step = next_step + 1 WHERE id = :id RETURNING next_step - 1",
        id=conversation_id,
    )
    tx.insert(
        "steps",
        conversation_id=conversation_id,
        position=int(position),
        part="agent",
        source="agent",
        turn_id=turn_id,
        variant_id=variant_id,
        task_id=task_id,
        occurred_at=at,
    )
    return int(position)


def add_system_step(tx: Tx, conversation_id: int, text: str, at: int) -> None:
    """Put the system prompt before all other steps, once."""
    tx.run(
        "INSERT INTO steps (conversation_id, position, part, source, occurred_at, text)"
        " VALUES (:id, 0, 'system', 'system', :at, :text)"
        " ON CONFLICT (conversation_id, position) DO NOTHING",
        id=conversation_id,
        at=at,
        text=text,
    )


def step_position(tx: Tx, variant_id: int, task_id: int | None) -> int | None:
    """Return the place of a model call in the trajectory."""
    which = "task_id IS NULL" if task_id is None else "task_id = :task_id"
    params = {} if task_id is None else {"task_id": task_id}
    found = tx.value(
        "SELECT position FROM steps WHERE variant_id = :variant_id AND part = 'agent'"
        f" AND {which} ORDER BY position DESC LIMIT 1",
        variant_id=variant_id,
        **params,
    )
    return None if found is None else int(found)


def is_steered(tx: Tx, variant_id: int) -> bool:
    """Tell whether a steer stands behind the candidate's newest model call: nobody read it yet."""
    return bool(
        tx.value(
            "SELECT 1 FROM steps s WHERE s.variant_id = :id AND s.part = 'steer' AND s.position >"
            " (SELECT max(a.position) FROM steps a WHERE a.variant_id = :id AND a.part = 'agent')"
            " LIMIT 1",
            id=variant_id,
        )
    )


# Model calls


def attempts(tx: Tx, *, task_id: int | None, variant_id: int | None) -> list[Row]:
    """Return (id, status, provider, model, enabled, effort, rest) of the model calls made for a
    round, or for a direct reply, in order. Those before its run was taken up again do not count."""
    owner, row_id = ("task_id", task_id) if task_id is not None else ("variant_id", variant_id)
    return tx.rows(
        "SELECT i.id, i.status, i.provider_id, i.model_ref, i.reasoning_enabled,"
        " i.reasoning_effort, d.rest FROM invocations i"
        " LEFT JOIN invocation_details d ON d.invocation_id = i.id"
        " LEFT JOIN tasks k ON k.id = i.task_id LEFT JOIN runs r ON r.id = k.run_id"
        f" WHERE i.{owner} = :id AND (r.started_at IS NULL OR i.created_at >= r.started_at)"
        " ORDER BY i.id",
        id=row_id,
    )


def keep_tools(tx: Tx, conversation_id: int, definitions: str) -> None:
    """Keep the definitions (JSON) of the tools a model is offered, once for each set of them."""
    tx.run(
        "INSERT INTO tool_sets (conversation_id, digest, definitions)"
        " VALUES (:id, :digest, :definitions) ON CONFLICT (conversation_id, digest) DO NOTHING",
        id=conversation_id,
        digest=hashlib.blake2b(definitions.encode(), digest_size=16).digest(),
        definitions=definitions,
    )


def answer(tx: Tx, invocation_id: int) -> Row:
    """Return the four of a model call's model, and what it said."""
    row = tx.row(
        "SELECT i.provider_id, i.model_ref, i.reasoning_enabled, i.reasoning_effort, d.message"
        " FROM invocations i LEFT JOIN invocation_details d ON d.invocation_id = i.id"
        " WHERE i.id = :id",
        id=invocation_id,
    )
    assert row is not None
    return row


def unbilled(tx: Tx, variant_id: int, run_id: int | None) -> list[Row]:
    """Return (id, task, status, the four of the model) of a candidate's model calls that were
    begun, whose end nobody saw, and that no receipt counts."""
    return tx.rows(
        "SELECT i.id, i.task_id, i.status, i.provider_id, i.model_ref, i.reasoning_enabled,"
        " i.reasoning_effort FROM invocations i"
        " LEFT JOIN usage_receipts u ON u.invocation_id = i.id"
        " WHERE (i.variant_id = :variant_id"
        "  OR i.task_id IN (SELECT id FROM tasks WHERE run_id = :run_id))"
        " AND i.status IN ('running', 'canceled', 'timed_out') AND i.llm_call_count IS NULL"
        " AND u.id IS NULL ORDER BY i.id",
        variant_id=variant_id,
        run_id=run_id,
    )


def invocation_status(tx: Tx, invocation_id: int) -> str:
    """Return how a model call stands."""
    return str(tx.value("SELECT status FROM invocations WHERE id = :id", id=invocation_id))


def is_billed(tx: Tx, invocation_id: int) -> bool:
    """Tell whether a receipt counts a model call."""
    return bool(
        tx.value("SELECT 1 FROM usage_receipts WHERE invocation_id = :id LIMIT 1", id=invocation_id)
    )


def note_invocation(
    tx: Tx, invocation_id: int, *, llm_call_count: int | None, rest: str | None
) -> None:
    """Write how many requests a model call took, and what has no column."""
    tx.run(
        "UPDATE invocations SET llm_call_count = :count WHERE id = :id",
        id=invocation_id,
        count=llm_call_count,
    )
    if rest is not None:
        tx.run(
            "INSERT INTO invocation_details (invocation_id, rest) VALUES (:id, :rest)"
            " ON CONFLICT (invocation_id) DO UPDATE SET rest = excluded.rest",
            id=invocation_id,
            rest=rest,
        )


def cancel_reply(tx: Tx, variant_id: int, at: int) -> None:
    """End the model call of a direct reply."""
    tx.run(
        "UPDATE invocations SET status = 'canceled', terminal_at = :at"
        " WHERE variant_id = :id AND status IN ('queued', 'running')",
        id=variant_id,
        at=at,
    )


# Tool calls


def set_rest(tx: Tx, task_id: int, rest: str) -> None:
    """Write what of a call has no column; the call's arguments are there already."""
    tx.run("UPDATE task_details SET rest = :rest WHERE task_id = :id", id=task_id, rest=rest)


def declared_by(tx: Tx, variant_id: int, tool: str) -> str | None:
    """Return the arguments (JSON) of a candidate's newest call of a tool that was settled well."""
    found = tx.value(
        "SELECT d.input FROM runs r JOIN tasks k ON k.run_id = r.id"
        " JOIN task_details d ON d.task_id = k.id WHERE r.variant_id = :id"
        " AND k.kind = 'tool_task' AND k.name = :tool AND k.status = 'completed'"
        " ORDER BY k.id DESC LIMIT 1",
        id=variant_id,
        tool=tool,
    )
    return None if found is None else str(found)


def call_details(tx: Tx, task_id: int) -> tuple[str, str | None]:
    """Return arguments (JSON) and rest of a call."""
    row = tx.row("SELECT input, rest FROM task_details WHERE task_id = :id", id=task_id)
    assert row is not None
    return row[0], row[1]


# What was said


def said(tx: Tx, variant_ids: Collection[int]) -> list[Row]:
    """Return the steers and answered rounds of candidates, in the order of the trajectory.

    Columns: candidate, place, part, text of the steer, task, message, reasoning, trace, tokens of
    request and answer together.
    """
    return tx.rows(
        "SELECT s.variant_id, s.position, s.part, s.text, s.task_id, d.message, d.reasoning,"
        " d.reasoning_trace, u.prompt_tokens + u.completion_tokens"
        " FROM steps s LEFT JOIN tasks k ON k.id = s.task_id"
        " LEFT JOIN invocation_details d ON d.invocation_id = k.selected_invocation_id"
        " LEFT JOIN usage_receipts u ON u.invocation_id = k.selected_invocation_id"
        f" WHERE {among('s.variant_id', variant_ids)} AND (s.part = 'steer'"
        "  OR (s.part = 'agent' AND k.status = 'completed'"
        "   AND k.transcript_visibility <> 'hidden')) ORDER BY s.position"
    )


def results(tx: Tx, round_ids: Sequence[int]) -> list[Row]:
    """Return what rounds called themselves, in order; calls of their scripts are left out.

    Columns: round, call id, name, status, error, arguments, output, rest.
    """
    return tx.rows(
        "SELECT k.round_id, k.tool_call_id, k.name, k.status, k.error, d.input, d.output, d.rest"
        " FROM tasks k LEFT JOIN task_details d ON d.task_id = k.id"
        f" WHERE {among('k.round_id', round_ids)} AND k.parent_id = k.round_id"
        " ORDER BY k.round_id, k.call_index"
    )


def reply_reasoning(tx: Tx, variant_ids: Collection[int]) -> dict[int, tuple[str, str | None]]:
    """Return reasoning and trace of direct replies by candidate."""
    return {
        row[0]: (row[1] or "", row[2])
        for row in tx.rows(
            "SELECT variant_id, reasoning, reasoning_trace FROM variant_details"
            f" WHERE {among('variant_id', variant_ids)}"
            " AND (reasoning IS NOT NULL OR reasoning_trace IS NOT NULL)"
        )
    }
