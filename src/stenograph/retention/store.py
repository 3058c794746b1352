"""The SQL of pruning: who is due, who may go now, and what is taken away."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

from stenograph.storage.database import Tx, among

#: Keys of candidates that are read at once; each candidate is then looked at by itself.
PAGE = 500

#: The tables that pruning deletes or empties rows of.
TOUCHED = (
    "task_details", "invocation_details", "variant_details", "tasks", "invocations", "approvals",
    "dispatches", "steps", "originals", "media", "sessions", "tool_sets",
    "search_documents",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Organization:
    """An organization and its policy: days, or None for off."""

    id: int
    slug: str
    days: int | None


@dataclass(frozen=True, slots=True)
class Due:
    """A candidate by its key; `id` is that of the run, or of the variant of a direct reply."""

    at: int
    id: int
    conversation_id: int


def organizations(tx: Tx) -> list[Organization]:
    """Return every organization, in order of making."""
    return [
        Organization(*row)
        for row in tx.rows("SELECT id, slug, details_retention_days FROM organizations ORDER BY id")
    ]


def policy(tx: Tx, organization_id: int) -> int | None:
    """Return after how many days details go; None: never."""
    days = tx.value(
        "SELECT details_retention_days FROM organizations WHERE id = :id", id=organization_id
    )
    return None if days is None else int(days)


def set_policy(tx: Tx, organization_id: int, days: int | None) -> None:
    """Set after how many days details go; None: never."""
    tx.run(
        "UPDATE organizations SET details_retention_days = :days WHERE id = :id",
        id=organization_id,
        days=days,
    )


def workspaces(tx: Tx, organization_id: int) -> list[int]:
    """Return every workspace, deleted ones included: what they hold expires like the rest."""
    rows = tx.rows(
        "SELECT id FROM workspaces WHERE organization_id = :id ORDER BY id", id=organization_id
    )
    return [row[0] for row in rows]


def due_runs(tx: Tx, workspace_id: int, cutoff: int, after: tuple[int, int]) -> list[Due]:
    """Return the next runs that ended by `cutoff`, by (completed_at, id)."""
    rows = tx.rows(
        "SELECT completed_at, id, conversation_id FROM runs"
        " WHERE workspace_id = :workspace_id AND details_pruned_at IS NULL"
        " AND completed_at IS NOT NULL AND completed_at <= :cutoff"
        " AND (completed_at, id) > (:at, :id) AND variant_id IS NOT NULL"
        " AND conversation_id IS NOT NULL ORDER BY completed_at, id LIMIT :limit",
        workspace_id=workspace_id,
        cutoff=cutoff,
        at=after[0],
        id=after[1],
        limit=PAGE,
    )
    return [Due(*row) for row in rows]


#: A direct reply's clock starts when its model call ends. What has details and no call is a copy
#: that a fork adopted; it goes with its original, or, when that is not there, by its own end.
_REPLIES = """
SELECT at, id, conversation_id FROM (
  SELECT coalesce(i.terminal_at, v.completed_at, v.created_at) AS at, v.id AS id,
    c.id AS conversation_id
  FROM variants v JOIN turns t ON t.id = v.turn_id JOIN conversations c ON c.id = t.conversation_id
  LEFT JOIN invocations i ON i.id = v.invocation_id
  LEFT JOIN variant_details d ON d.variant_id = v.id
  LEFT JOIN runs r ON r.variant_id = v.id
  WHERE c.workspace_id = :workspace_id AND v.details_pruned_at IS NULL AND r.id IS NULL
    AND (v.invocation_id IS NOT NULL OR d.reasoning IS NOT NULL OR d.preface IS NOT NULL
      OR d.reasoning_trace IS NOT NULL)
) AS replies
WHERE at <= :cutoff AND (at, id) > (:at, :id) ORDER BY at, id LIMIT :limit
"""


def due_replies(tx: Tx, workspace_id: int, cutoff: int, after: tuple[int, int]) -> list[Due]:
    """Return the next direct replies that ended by `cutoff`, by (end, variant id)."""
    rows = tx.rows(
        _REPLIES,
        workspace_id=workspace_id,
        cutoff=cutoff,
        at=after[0],
        id=after[1],
        limit=PAGE,
    )
    return [Due(*row) for row in rows]


def remove_tasks(tx: Tx, run_id: int) -> None:
    """Delete a run's tasks, invocations and details; receipts stay and name none of them."""
    tx.run(
        "UPDATE usage_receipts SET invocation_id = NULL WHERE invocation_id IN"
        " (SELECT i.id FROM tasks k JOIN invocations i ON i.task_id = k.id WHERE k.run_id = :id)",
        id=run_id,
    )
    tx.run(
        "UPDATE events SET task_id = NULL WHERE task_id IN"
        " (SELECT id FROM tasks WHERE run_id = :id)",
        id=run_id,
    )
    tx.run("DELETE FROM tasks WHERE run_id = :id", id=run_id)


def remove_invocations(tx: Tx, variant_id: int) -> None:
    """Delete the model calls of a direct reply; receipts stay and name none of them."""
    tx.run(
        "UPDATE usage_receipts SET invocation_id = NULL WHERE invocation_id IN"
        " (SELECT id FROM invocations WHERE variant_id = :id)",
        id=variant_id,
    )
    tx.run("UPDATE variants SET invocation_id = NULL WHERE id = :id", id=variant_id)
    tx.run("DELETE FROM invocations WHERE variant_id = :id", id=variant_id)


def remove_bodies(tx: Tx, variant_id: int) -> None:
    """Delete a candidate's preface, reasoning and trace. A side's reference text stays."""
    tx.run(
        "UPDATE variant_details SET preface = NULL, reasoning = NULL, reasoning_trace = NULL"
        " WHERE variant_id = :id",
        id=variant_id,
    )
    tx.run(
        "DELETE FROM variant_details WHERE variant_id = :id AND reference IS NULL", id=variant_id
    )


def copies(tx: Tx, variant_id: int) -> list[int]:
    """Return the candidates with bodies that forks adopted from this one, and from those."""
    found: list[int] = []
    fresh = [variant_id]
    while fresh:
        rows = tx.rows(
            "SELECT v.id FROM variants o JOIN turns ot ON ot.id = o.turn_id"
            " JOIN ancestries a ON a.ancestor_id = ot.conversation_id"
            " JOIN turns t ON t.conversation_id = a.conversation_id"
            "  AND t.position = a.boundary_position + 1"
            " JOIN variants v ON v.turn_id = t.id AND v.origin_variant_id = o.id"
            " JOIN variant_details d ON d.variant_id = v.id AND (d.reasoning IS NOT NULL"
            "  OR d.preface IS NOT NULL OR d.reasoning_trace IS NOT NULL)"
            f" WHERE {among('o.id', fresh)}"
        )
        fresh = [row[0] for row in rows]
        found += fresh
    return found


def empty_steps(tx: Tx, variant_id: int) -> None:
    """Leave of a candidate's steps their places, and of what a person wrote the text."""
    _empty_steps(tx, "variant_id = :id", variant_id)


def steers_with_files(tx: Tx, variant_id: int) -> list[tuple[int, str]]:
    """Return (step, public id of the input) of a candidate's steers that came with files."""
    rows = tx.rows(
        "SELECT s.id, n.public_id FROM steps s JOIN inputs n ON n.conversation_id ="
        " s.conversation_id WHERE s.variant_id = :id AND s.part = 'steer'"
        " AND s.rest LIKE '%' || n.public_id || '%' AND EXISTS (SELECT 1 FROM attachments a"
        "  WHERE a.input_id = n.id AND a.variant_id = s.variant_id)",
        id=variant_id,
    )
    return [(row[0], row[1]) for row in rows]


def set_rest(tx: Tx, step_id: int, rest: str) -> None:
    """Write what a step says besides (JSON)."""
    tx.run("UPDATE steps SET rest = :rest WHERE id = :id", id=step_id, rest=rest)


def empty_loose_steps(tx: Tx, conversation_id: int) -> None:
    """As `empty_steps`, for the steps that belong to no turn (system prompt, injected context)."""
    _empty_steps(tx, "conversation_id = :id AND variant_id IS NULL", conversation_id)


def _empty_steps(tx: Tx, where: str, row_id: int) -> None:
    tx.run(
        "UPDATE steps SET text = NULL, rest = NULL, digest = NULL, task_id = NULL"
        f" WHERE {where} AND part IN ('agent', 'system')",
        id=row_id,
    )
    tx.run(f"UPDATE steps SET rest = NULL WHERE {where} AND rest IS NOT NULL", id=row_id)


def mark_run(tx: Tx, run_id: int, at: int) -> None:
    """Say that a run's details are gone."""
    tx.run("UPDATE runs SET details_pruned_at = :at WHERE id = :id", id=run_id, at=at)


def mark_variant(tx: Tx, variant_id: int, at: int) -> None:
    """Say that a direct reply's details are gone."""
    tx.run("UPDATE variants SET details_pruned_at = :at WHERE id = :id", id=variant_id, at=at)


def family(tx: Tx, conversation_id: int) -> set[int]:
    """Return the sessions whose original files may hold this session's bytes.

    Its own, every session above it, those it was forked from, and the sessions below it.
    """
    above = _closure(
        tx,
        conversation_id,
        "SELECT parent_conversation_id FROM sessions"
        " WHERE {conversation_id} AND parent_conversation_id IS NOT NULL"
        " UNION SELECT ancestor_id FROM ancestries WHERE {conversation_id}",
    )
    below = _closure(
        tx, conversation_id, "SELECT conversation_id FROM sessions WHERE {parent_conversation_id}"
    )
    return above | below


def _closure(tx: Tx, start: int, sql: str) -> set[int]:
    """Follow `sql` from row to row; `{column}` in it stands for "column is among these"."""
    found, fresh = {start}, {start}
    while fresh:
        names = ("conversation_id", "parent_conversation_id")
        text = sql.format(**{name: among(name, fresh) for name in names})
        fresh = {row[0] for row in tx.rows(text)} - found
        found |= fresh
    return found


def remove_originals(tx: Tx, conversation_ids: Iterable[int]) -> None:
    """Delete the bytes of these sessions' files; digest and size stay."""
    tx.run(
        "UPDATE originals SET compressed = NULL WHERE compressed IS NOT NULL AND import_id IN"
        f" (SELECT id FROM imports WHERE {among('conversation_id', conversation_ids)})"
    )


def lineage(tx: Tx, conversation_id: int) -> list[int]:
    """Return a conversation and those it was forked from."""
    rows = tx.rows(
        "SELECT ancestor_id FROM ancestries WHERE conversation_id = :id", id=conversation_id
    )
    return [conversation_id, *(row[0] for row in rows)]


def forks(tx: Tx, conversation_id: int) -> list[int]:
    """Return a conversation and those that were forked from it."""
    rows = tx.rows(
        "SELECT conversation_id FROM ancestries WHERE ancestor_id = :id", id=conversation_id
    )
    return [conversation_id, *(row[0] for row in rows)]


def media_paths(tx: Tx, conversation_id: int) -> dict[str, int]:
    """Return the files of a conversation that steps point at: path → row id."""
    rows = tx.rows("SELECT path, id FROM media WHERE conversation_id = :id", id=conversation_id)
    return {row[0]: row[1] for row in rows}


def delete_media(tx: Tx, ids: Iterable[int]) -> None:
    """Delete files that steps pointed at."""
    tx.run(f"DELETE FROM media WHERE {among('id', ids)}")


def paths_in_use(tx: Tx, conversation_ids: Sequence[int], paths: Iterable[str]) -> set[str]:
    """Return those of `paths` that a remaining step, call or result of these still points at."""
    waiting = {path: msgspec.json.encode(path).decode() for path in paths}
    used: set[str] = set()
    for source in (
        f"steps x WHERE {among('x.conversation_id', conversation_ids)}",
        "runs r JOIN tasks k ON k.run_id = r.id JOIN task_details x ON x.task_id = k.id"
        f" WHERE {among('r.conversation_id', conversation_ids)}",
        "runs r JOIN tasks k ON k.run_id = r.id JOIN invocations i ON i.task_id = k.id"
        " JOIN invocation_details x ON x.invocation_id = i.id"
        f" WHERE {among('r.conversation_id', conversation_ids)}",
    ):
        for (rest,) in tx.each(f"SELECT x.rest FROM {source} AND x.rest LIKE '%\"path\"%'"):
            used.update(path for path, written in waiting.items() if written in rest)
    return used


def has_details(tx: Tx, conversation_id: int) -> bool:
    """Tell whether a conversation has a candidate whose details are still there."""
    # From the newest on: as long as one is there it is found at once.
    return bool(
        tx.value(
            "SELECT 1 FROM runs WHERE conversation_id = :id AND details_pruned_at IS NULL"
            " AND variant_id IS NOT NULL ORDER BY id DESC LIMIT 1",
            id=conversation_id,
        )
        or tx.value(
            "SELECT 1 FROM turns t JOIN variants v ON v.turn_id = t.id"
            " WHERE t.conversation_id = :id AND v.invocation_id IS NOT NULL"
            " AND v.details_pruned_at IS NULL ORDER BY t.position DESC LIMIT 1",
            id=conversation_id,
        )
    )


def session_agent(tx: Tx, conversation_id: int) -> str | None:
    """Return the JSON that says which agent ran a session elsewhere."""
    found: str | None = tx.value(
        "SELECT agent FROM sessions WHERE conversation_id = :id", id=conversation_id
    )
    return found


def reduce_session(tx: Tx, conversation_id: int, agent: str | None) -> None:
    """Leave of a document's head only which agent it was, and nothing of what its tools were."""
    tx.run("DELETE FROM tool_sets WHERE conversation_id = :id", id=conversation_id)
    tx.run(
        "UPDATE sessions SET agent = :agent, document = NULL WHERE conversation_id = :id",
        id=conversation_id,
        agent=agent,
    )
