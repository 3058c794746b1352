"""The SQL of sessions."""

from collections.abc import Collection
from typing import Any

from stenograph.storage.database import Row, Tx, among

# Who may see a session. One of a Reason: the Reason's owner and those it is shared with. Any
# other: its owner, owners and admins of the organization, and whoever may read its conversation.
_VISIBLE = """
c.deleted_at IS NULL AND w.deleted_at IS NULL AND s.organization_id = :organization_id
AND CASE WHEN s.reason_id IS NOT NULL THEN r.deleted_at IS NULL AND (
    r.owner_id = :principal_id
    OR EXISTS (SELECT 1 FROM reason_shares h
      WHERE h.reason_id = r.id AND h.principal_id = :principal_id))
  ELSE :admin = 1 OR s.owner_id = :principal_id OR (
    (w.access_mode = 'account_wide' OR w.owner_id = :principal_id
      OR EXISTS (SELECT 1 FROM workspace_members m
        WHERE m.workspace_id = w.id AND m.principal_id = :principal_id))
    AND coalesce((SELECT a.level FROM conversation_access a
      WHERE a.conversation_id = c.id AND a.principal_id = :principal_id), c.access_default)
      <> 'none')
  END
"""
_SESSIONS = """
SELECT c.id, c.public_id, s.owner_id, r.id, r.public_id, r.owner_id, p.public_id, c.workspace_id,
  c.title, s.tags, s.mode, s.status, s.outcome, s.recorded, s.agent IS NULL, s.model,
  s.reasoning_effort, s.options, s.error_class, s.reason_code, s.created_at, s.started_at,
  s.ended_at
FROM sessions s
JOIN conversations c ON c.id = s.conversation_id
JOIN workspaces w ON w.id = c.workspace_id
LEFT JOIN reasons r ON r.id = s.reason_id
LEFT JOIN conversations p ON p.id = s.parent_conversation_id
"""
# The one place where the two engines read JSON differently.
_HAS_TAG = {
    "sqlite": "EXISTS (SELECT 1 FROM json_each(s.tags) WHERE value = :tag)",
    "postgres": "jsonb_exists(CAST(s.tags AS jsonb), :tag)",
}
_FILTERS = {
    "reason_id": "r.public_id = :reason_id",
    "status": "s.status = :status",
    "created_after": "s.created_at > :created_after",
    "created_before": "s.created_at < :created_before",
    "before": "s.conversation_id < :before",
}


def find(tx: Tx, viewer: dict[str, int], public_id: str) -> Row | None:
    """Find a session that the viewer (organization, principal, admin) may see."""
    return tx.row(
        f"{_SESSIONS} WHERE c.public_id = :public_id AND {_VISIBLE}", public_id=public_id, **viewer
    )


def listed(tx: Tx, viewer: dict[str, int], limit: int, filters: dict[str, Any]) -> list[Row]:
    """List what the viewer may see, the newest record first; `before` is a row id."""
    conditions = [_HAS_TAG[tx.dialect] if n == "tag" else _FILTERS[n] for n in filters]
    return tx.rows(
        f"{_SESSIONS} WHERE {' AND '.join([_VISIBLE, *conditions])}"
        " ORDER BY s.conversation_id DESC LIMIT :limit",
        limit=limit,
        **viewer,
        **filters,
    )


def by_key(tx: Tx, organization_id: int, key: str) -> Row | None:
    """Return public id and digest of the session that was created with this key."""
    return tx.row(
        "SELECT c.public_id, s.idempotency_digest FROM sessions s"
        " JOIN conversations c ON c.id = s.conversation_id"
        " WHERE s.organization_id = :organization_id AND s.idempotency_key = :key",
        organization_id=organization_id,
        key=key,
    )


def children(tx: Tx, conversation_ids: Collection[int]) -> list[Row]:
    """Return (parent, child's public id) of the sessions that these started, in order."""
    return tx.rows(
        "SELECT s.parent_conversation_id, c.public_id FROM sessions s"
        " JOIN conversations c ON c.id = s.conversation_id"
        f" WHERE {among('s.parent_conversation_id', conversation_ids)}"
        " AND c.deleted_at IS NULL ORDER BY s.conversation_id"
    )


def results(tx: Tx, conversation_ids: Collection[int]) -> list[Row]:
    """Return (session, answer) of those whose latest turn has one."""
    return tx.rows(
        "SELECT c.id, v.content FROM conversations c JOIN turns t ON t.id ="
        " (SELECT l.id FROM turns l WHERE l.conversation_id = c.id AND l.deleted_at IS NULL"
        "  AND l.visibility <> 'hidden' AND l.kind <> 'compaction_summary'"
        "  ORDER BY l.position DESC LIMIT 1)"
        " JOIN variants v ON v.id = t.active_variant_id"
        f" WHERE {among('c.id', conversation_ids)}"
        " AND v.content IS NOT NULL AND v.deleted_at IS NULL"
    )


# The cost of some calls would read as the cost of all, so it is given only when every model call
# has one. A call that was never made (`llm_call_count` 0) costs nothing.
_USAGE = """
SELECT u.conversation_id, sum(u.prompt_tokens), sum(u.cached_tokens), sum(u.completion_tokens),
  CASE WHEN count(*) = count(u.cost_usd) AND NOT EXISTS (
    SELECT 1 FROM runs r JOIN tasks k ON k.run_id = r.id
    JOIN invocations i ON i.id = k.selected_invocation_id
    LEFT JOIN usage_receipts n ON n.invocation_id = i.id
    WHERE r.conversation_id = u.conversation_id AND n.id IS NULL
      AND coalesce(i.llm_call_count, 1) <> 0)
  THEN sum(u.cost_usd) END
FROM usage_receipts u WHERE {which} GROUP BY u.conversation_id
"""


def usage(tx: Tx, conversation_ids: Collection[int]) -> list[Row]:
    """Return (session, prompt, cached, completion tokens, cost in US dollars); NULL: unknown."""
    return tx.rows(_USAGE.format(which=among("u.conversation_id", conversation_ids)))


def insert_session(tx: Tx, conversation_id: int, **columns: object) -> None:
    """Give a conversation its session facts."""
    names = ["conversation_id", *columns]
    tx.insert_many("sessions", names, [(conversation_id, *columns.values())])


def update(tx: Tx, conversation_id: int, **columns: object) -> None:
    """Set facts of a session."""
    sets = ", ".join(f"{name} = :{name}" for name in columns)
    tx.run(f"UPDATE sessions SET {sets} WHERE conversation_id = :id", id=conversation_id, **columns)


def resume(tx: Tx, conversation_id: int) -> None:
    """Say that a session has work again, whatever its last end was."""
    update(
        tx,
        conversation_id,
        status="running",
        outcome=None,
        error_class=None,
        reason_code=None,
        ended_at=None,
    )


def public_id(tx: Tx, conversation_id: int) -> str:
    """Return the public id of a session."""
    return str(tx.value("SELECT public_id FROM conversations WHERE id = :id", id=conversation_id))


def hold(tx: Tx, conversation_id: int) -> str:
    """Hold a session until the transaction ends, and return its status now."""
    tx.row(f"SELECT id FROM conversations WHERE id = :id{tx.for_update}", id=conversation_id)
    return str(
        tx.value("SELECT status FROM sessions WHERE conversation_id = :id", id=conversation_id)
    )


def running_below(tx: Tx, conversation_id: int) -> list[int]:
    """Return the running sessions that a session started, at any depth, in order of making."""
    rows = tx.rows(
        "WITH RECURSIVE below (id) AS (SELECT CAST(:id AS BIGINT) UNION"
        "  SELECT s.conversation_id FROM sessions s"
        "  JOIN below ON s.parent_conversation_id = below.id)"
        " SELECT s.conversation_id FROM sessions s JOIN below ON s.conversation_id = below.id"
        " WHERE s.conversation_id <> :id AND s.status = 'running' ORDER BY s.conversation_id",
        id=conversation_id,
    )
    return [row[0] for row in rows]
