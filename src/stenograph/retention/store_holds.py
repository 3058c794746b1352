"""The SQL of what holds details that are old enough to go (agent-api.md 6).

A candidate is looked at by itself, under the lock of its conversation. What holds it passes, and
the next night looks again.
"""

from stenograph.clock import DAY, now
from stenograph.storage.database import Tx

#: How long the bill of a model call is waited for whose turn ended without it. What a process took
#: with it nobody bills, and it must not keep details for ever.
OWED = DAY

_SETTLED = "('completed', 'failed', 'canceled', 'timed_out')"
_SETTLED_TASK = "('completed', 'failed', 'canceled', 'timed_out', 'uncertain', 'skipped')"

#: Nobody assembles a first request from this conversation's past: no candidate of its own, or of a
#: fork that reaches this far, waits for one. (An agent that runs elsewhere reads nothing here, and
#: what sums up before a round is no round.)
_NOBODY_PREPARES = """
NOT EXISTS (
  SELECT 1 FROM variants nv JOIN turns nt ON nt.id = nv.turn_id
  WHERE nv.status IN ('pending', 'running') AND nv.source IN ('run', 'inference')
    AND (nt.conversation_id = t.conversation_id OR nt.conversation_id IN (
      SELECT a.conversation_id FROM ancestries a
      WHERE a.ancestor_id = t.conversation_id AND a.boundary_position >= t.position))
    AND nv.invocation_id IS NULL
    AND NOT EXISTS (SELECT 1 FROM sessions e WHERE e.conversation_id = nt.conversation_id
      AND (e.recorded = 1 OR e.agent IS NOT NULL))
    AND NOT EXISTS (SELECT 1 FROM runs n JOIN tasks nk ON nk.run_id = n.id
      WHERE n.variant_id = nv.id AND nk.mainline = 1 AND nk.selected_invocation_id IS NOT NULL))
"""
#: By policy, a log's details age from its import: who imports an old log wants to look at it.
_NOT_IMPORTED_SINCE = """
NOT EXISTS (
  SELECT 1 FROM imports m WHERE m.imported_at > :imported AND (m.conversation_id = t.conversation_id
    OR m.conversation_id IN (
      SELECT a.ancestor_id FROM ancestries a WHERE a.conversation_id = t.conversation_id)))
"""
#: Model calls `i` whose process is still to say what they took (`engine.store.unbilled`).
_OWED = """
i.status IN ('canceled', 'timed_out') AND i.llm_call_count IS NULL AND i.terminal_at > :owed
AND NOT EXISTS (SELECT 1 FROM usage_receipts u WHERE u.invocation_id = i.id)
"""
#: Every task `k` has its end, and so have its model calls, its worker's lease and its subagent.
_EVERY_TASK_IS_OVER = f"""
NOT EXISTS (
  SELECT 1 FROM tasks k LEFT JOIN invocations i ON i.task_id = k.id
  WHERE k.run_id = r.id
    AND (k.status NOT IN {_SETTLED_TASK} OR i.status NOT IN {_SETTLED} OR ({_OWED})))
AND NOT EXISTS (
  SELECT 1 FROM tasks k JOIN dispatches d ON d.task_id = k.id
  WHERE k.run_id = r.id AND d.status = 'claimed' AND d.lease_expires_at > :now)
AND NOT EXISTS (
  SELECT 1 FROM tasks k JOIN turns ct ON ct.conversation_id = k.child_conversation_id
  JOIN variants cv ON cv.turn_id = ct.id
  WHERE k.run_id = r.id AND cv.status IN ('pending', 'running'))
"""


def run_may_go(tx: Tx, run_id: int, cutoff: int, imported: int) -> int | None:
    """Return the variant of a run whose details may go now; None: not yet.

    `imported`: a log that was imported after this moment keeps its details.
    """
    at = now()
    found = tx.value(
        "SELECT v.id FROM runs r JOIN variants v ON v.id = r.variant_id"
        " JOIN turns t ON t.id = v.turn_id"
        " WHERE r.id = :id AND r.details_pruned_at IS NULL"
        " AND r.status IN ('completed', 'canceled') AND r.completed_at <= :cutoff"
        f" AND v.status IN {_SETTLED}"
        f" AND {_EVERY_TASK_IS_OVER} AND {_NOBODY_PREPARES} AND {_NOT_IMPORTED_SINCE}",
        id=run_id,
        cutoff=cutoff,
        imported=imported,
        now=at,
        owed=at - OWED,
    )
    return None if found is None else int(found)


def reply_may_go(tx: Tx, variant_id: int, cutoff: int, imported: int) -> bool:
    """Tell whether the details of a direct reply may go now."""
    found = tx.value(
        "SELECT 1 FROM variants v JOIN turns t ON t.id = v.turn_id"
        " WHERE v.id = :id AND v.details_pruned_at IS NULL"
        f" AND v.status IN {_SETTLED}"
        " AND NOT EXISTS (SELECT 1 FROM invocations i WHERE i.variant_id = v.id"
        f"   AND (i.status NOT IN {_SETTLED} OR i.terminal_at IS NULL OR i.terminal_at > :cutoff"
        f"     OR ({_OWED})))"
        f" AND {_NOBODY_PREPARES} AND {_NOT_IMPORTED_SINCE}",
        id=variant_id,
        cutoff=cutoff,
        imported=imported,
        owed=now() - OWED,
    )
    return found is not None
