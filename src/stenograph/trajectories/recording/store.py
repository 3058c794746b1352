"""The SQL of what enters: sessions and turns of a log, their steps in bulk, imports, originals."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from stenograph.clock import now
from stenograph.conversations import store_turns, store_variants
from stenograph.ids import new_id
from stenograph.storage.database import Row, Tx, among
from stenograph.trajectories.importers.draft import Part, StepDraft, TurnStatus

if TYPE_CHECKING:
    from stenograph.trajectories.recording.turns import OpenTurn, Target

#: Column lists of the tables that a batch of steps fills, in the order of writing.
BULK: dict[str, Sequence[str]] = {
    "tasks": (
        "id", "run_id", "key", "kind", "status", "transcript_visibility", "mainline", "parent_id",
        "round_id", "call_index", "tool_call_id", "name", "selected_invocation_id", "started_at",
        "completed_at", "created_at",
    ),
    "task_details": ("task_id", "input", "output", "rest"),
    "invocations": (
        "id", "task_id", "status", "provider_id", "model_ref", "reasoning_enabled",
        "reasoning_effort", "llm_call_count", "started_at", "terminal_at", "created_at",
    ),
    "invocation_details": ("invocation_id", "message", "reasoning", "reasoning_trace", "rest"),
    "usage_receipts": (
        "conversation_id", "run_id", "variant_id", "invocation_id", "provider_id", "model_ref",
        "prompt_tokens", "completion_tokens", "cached_tokens", "cache_write_tokens",
        "reasoning_tokens", "cost_usd", "occurred_at",
    ),
    "steps": (
        "id", "conversation_id", "position", "part", "source", "turn_id", "variant_id", "task_id",
        "origin", "external_key", "digest", "occurred_at", "text", "rest",
    ),
}  # fmt: skip


def digest(draft: StepDraft) -> bytes:
    """Return what tells this step from another content: 16 bytes over all that is recorded."""
    step = msgspec.structs.replace(draft.step, step_id=0)
    facts = (
        draft.part, draft.origin, draft.provider_id, draft.reasoning_enabled,
        draft.reasoning_trace, draft.cache_write_tokens, sorted(draft.failed_calls),
    )  # fmt: skip
    return hashlib.blake2b(msgspec.json.encode((step, facts)), digest_size=16).digest()


# Conversations and turns


def take_positions(tx: Tx, conversation_id: int, count: int) -> int:
    """Return the first of `count` step positions that are this transaction's from now on.

    Steps that come are activity of the conversation: it is said in the same statement.
    """
    first = tx.value(
        "UPDATE conversations SET next_step = next_step + :count, last_activity_at = :at,"
        " updated_at = :at WHERE id = :id RETURNING next_step - :count",
        count=count,
        at=now(),
        id=conversation_id,
    )
    return int(first)


def open_turn(tx: Tx, target: "Target", origin: str, at: int) -> tuple[int, int]:
    """Put a running turn behind the others; returns its row id and its position.

    Which turn is being answered is said when a sender's steps are all there, not for every turn
    of a log.
    """
    return store_turns.add_turn(
        tx,
        target.conversation_id,
        public_id=new_id(),
        kind="direct_reply",
        role="assistant",
        status="running",
        origin=origin,
        speaker_id=target.speaker_id,
        answerer_id=target.answerer_id,
        created_at=at,
    )


def open_variant(tx: Tx, turn_id: int, source: str, prompt: str | None, at: int) -> int:
    """Add a running candidate behind those that the turn has."""
    return store_variants.add(
        tx,
        turn_id,
        public_id=new_id(),
        source=source,
        status="running",
        prompt=prompt,
        created_at=at,
    )


def open_run(tx: Tx, target: "Target", variant_id: int, at: int) -> int:
    """Start the run that a candidate's model calls belong to."""
    return tx.insert(
        "runs",
        public_id=new_id(),
        workspace_id=target.workspace_id,
        conversation_id=target.conversation_id,
        variant_id=variant_id,
        status="running",
        approval_mode="bypass",
        started_at=at,
        created_at=at,
        updated_at=at,
    )


def position_of(tx: Tx, turn_id: int) -> int:
    """Return where a turn stands in its conversation."""
    return int(tx.value("SELECT position FROM turns WHERE id = :id", id=turn_id))


def turn_at(tx: Tx, conversation_id: int, position: int) -> int | None:
    """Return the turn that stands at a position."""
    found = tx.value(
        "SELECT id FROM turns WHERE conversation_id = :id AND position = :position",
        id=conversation_id,
        position=position,
    )
    return None if found is None else int(found)


def close_turn(tx: Tx, turn: "OpenTurn", status: TurnStatus, reason: str | None, at: int) -> None:
    """Settle a turn, its candidate and its run. An answer is kept only of a completed one."""
    provider_id, model_ref, enabled, effort = turn.model
    tx.run(
        "UPDATE variants SET status = :status, content = :content, failure_reason = :reason,"
        " provider_id = :provider_id, model_ref = :model_ref, reasoning_enabled = :enabled,"
        " reasoning_effort = :effort, completed_at = :at WHERE id = :id",
        id=turn.variant_id,
        status=status,
        content=turn.answer if status == "completed" else None,
        reason=reason,
        provider_id=provider_id,
        model_ref=model_ref,
        enabled=enabled,
        effort=effort,
        at=at,
    )
    tx.run(
        "UPDATE turns SET status = :status, completed_at = :at"
        " WHERE id = :id AND active_variant_id = :variant_id",
        id=turn.id,
        variant_id=turn.variant_id,
        status=status,
        at=at,
    )
    tx.run(
        "UPDATE runs SET status = :status, failure_reason = :reason, next_round = :round,"
        " delivered_at = :at, completed_at = :at, updated_at = :at WHERE id = :id",
        id=turn.run_id,
        # A run has no `failed`: a reasoned cancel projects as a failed turn (agent-api.md 4.2).
        status="completed" if status == "completed" else "canceled",
        reason=reason,
        round=turn.round,
        at=at,
    )


@dataclass(frozen=True, slots=True)
class StoredTurn:
    """The newest turn of a conversation, with its active candidate and that one's run."""

    id: int
    variant_id: int
    run_id: int
    status: TurnStatus
    pruned: int
    next_round: int


def last_turn(tx: Tx, conversation_id: int) -> StoredTurn | None:
    """Return the newest turn; `pruned` is 1 where retention deleted its details."""
    row = tx.row(
        "SELECT t.id, v.id, r.id, t.status,"
        " CASE WHEN r.details_pruned_at IS NULL THEN 0 ELSE 1 END, r.next_round"
        " FROM turns t JOIN variants v ON v.id = t.active_variant_id"
        " JOIN runs r ON r.variant_id = v.id"
        " WHERE t.conversation_id = :id ORDER BY t.position DESC LIMIT 1",
        id=conversation_id,
    )
    return None if row is None else StoredTurn(*row)


def prompts(tx: Tx, conversation_id: int) -> int:
    """Return how many prompts the main line of a conversation has."""
    return int(
        tx.value(
            "SELECT count(*) FROM steps s JOIN turns t ON t.id = s.turn_id"
            " AND t.active_variant_id = s.variant_id"
            " WHERE s.conversation_id = :id AND s.part = 'prompt'",
            id=conversation_id,
        )
    )


def rounds(tx: Tx, run_id: int) -> int:
    """Return how many model calls a run has."""
    return int(
        tx.value(
            "SELECT count(*) FROM tasks WHERE run_id = :run_id AND kind = 'model_task'",
            run_id=run_id,
        )
    )


def last_round(tx: Tx, run_id: int) -> Row | None:
    """Return provider, model, reasoning switch, effort and message of a run's newest call."""
    return tx.row(
        "SELECT i.provider_id, i.model_ref, i.reasoning_enabled, i.reasoning_effort, d.message"
        " FROM tasks k JOIN invocations i ON i.id = k.selected_invocation_id"
        " LEFT JOIN invocation_details d ON d.invocation_id = i.id"
        " WHERE k.run_id = :run_id AND k.kind = 'model_task' ORDER BY k.id DESC LIMIT 1",
        run_id=run_id,
    )


def keep_round(tx: Tx, turn: "OpenTurn") -> None:
    """Remember how far an open turn has come, for who takes it up later."""
    tx.run("UPDATE runs SET next_round = :round WHERE id = :id", id=turn.run_id, round=turn.round)


def steps_at(
    tx: Tx, conversation_id: int, positions: Sequence[int]
) -> dict[int, tuple[Part, bytes | None]]:
    """Return part and digest of the steps at these positions."""
    if not positions:
        return {}
    return {
        row[0]: (row[1], row[2])
        for row in tx.rows(
            "SELECT position, part, digest FROM steps WHERE conversation_id = :id"
            f" AND {among('position', positions)}",
            id=conversation_id,
        )
    }


def last_step_works(tx: Tx, conversation_id: int) -> bool:
    """Tell whether the agent works: it spoke last, steers apart, and all its calls are answered."""
    row = tx.row(
        "SELECT task_id FROM steps WHERE conversation_id = :id"
        " AND part NOT IN ('system', 'steer')"
        " ORDER BY position DESC LIMIT 1",
        id=conversation_id,
    )
    if row is None or row[0] is None:
        return False
    calls = tx.rows("SELECT status FROM tasks WHERE round_id = :id", id=row[0])
    return bool(calls) and all(status in ("completed", "failed") for (status,) in calls)


# A log that has grown


@dataclass(frozen=True, slots=True)
class StoredStep:
    """A step of the main line, as far as it takes to find it again in a log."""

    id: int
    position: int
    part: str
    turn_id: int | None
    task_id: int | None
    key: str | None
    digest: bytes | None


def main_line(tx: Tx, conversation_id: int) -> list[StoredStep]:
    """Return the steps of the active candidates, in order."""
    return [
        StoredStep(*row)
        for row in tx.rows(
            "SELECT s.id, s.position, s.part, s.turn_id, s.task_id, s.external_key, s.digest"
            " FROM steps s LEFT JOIN turns t ON t.id = s.turn_id"
            " WHERE s.conversation_id = :id"
            " AND (s.turn_id IS NULL OR s.variant_id = t.active_variant_id)"
            " ORDER BY s.position",
            id=conversation_id,
        )
    ]


def delete_turns(tx: Tx, conversation_id: int, turn_ids: Sequence[int]) -> None:
    """Delete turns whole, from the end of a conversation, with all that hangs on them."""
    if not turn_ids:
        return
    runs = [r[0] for r in tx.rows(
        "SELECT r.id FROM runs r JOIN variants v ON v.id = r.variant_id"
        f" WHERE {among('v.turn_id', turn_ids)}"
    )]  # fmt: skip
    tx.run(f"DELETE FROM usage_receipts WHERE {among('run_id', runs)}")
    tx.run(
        "UPDATE events SET turn_id = NULL, variant_id = NULL, run_id = NULL, task_id = NULL,"
        f" step_id = NULL WHERE conversation_id = :id AND {among('turn_id', turn_ids)}",
        id=conversation_id,
    )
    tx.run(f"DELETE FROM turns WHERE {among('id', turn_ids)}")
    tx.run(
        "UPDATE conversations SET next_position = (SELECT coalesce(max(position) + 1, 0)"
        " FROM turns WHERE conversation_id = :id) WHERE id = :id",
        id=conversation_id,
    )


def delete_steps(tx: Tx, steps: Sequence[StoredStep]) -> None:
    """Delete single steps of a turn that stays, with their model calls and usage."""
    tasks = [step.task_id for step in steps if step.task_id is not None]
    calls = [r[0] for r in tx.rows(f"SELECT id FROM tasks WHERE {among('round_id', tasks)}")]
    invocations = [r[0] for r in tx.rows(
        f"SELECT id FROM invocations WHERE {among('task_id', tasks)}"
    )]  # fmt: skip
    tx.run(f"DELETE FROM usage_receipts WHERE {among('invocation_id', invocations)}")
    tx.run(f"UPDATE events SET task_id = NULL WHERE {among('task_id', [*tasks, *calls])}")
    ids = [step.id for step in steps]
    tx.run(f"UPDATE events SET step_id = NULL WHERE {among('step_id', ids)}")
    tx.run(f"DELETE FROM tasks WHERE {among('id', [*tasks, *calls])}")
    tx.run(f"DELETE FROM steps WHERE {among('id', ids)}")
