"""The SQL of calls given out to workers."""

from collections.abc import Sequence

from stenograph.devices.store_targets import named
from stenograph.runs.task import TERMINAL
from stenograph.storage.database import Row, Tx

_ENDED = ", ".join(f"'{status}'" for status in TERMINAL)
_DISPATCH = (
    "d.id, d.public_id, d.organization_id, d.conversation_id, c.public_id, v.public_id,"
    " r.public_id, d.task_id, k.key, k.name, k.status, d.device_id, d.machine, d.status, d.claims,"
    " d.settlement_digest"
)
_DISPATCHES = (
    f"SELECT {_DISPATCH} FROM dispatches d JOIN tasks k ON k.id = d.task_id"
    " JOIN runs r ON r.id = k.run_id JOIN variants v ON v.id = r.variant_id"
    " JOIN conversations c ON c.id = d.conversation_id"
)
# Whose worker is gone for good: a machine's sessions go to another one, after a while.
_GONE = "(w.removed_at IS NOT NULL OR (d.machine IS NOT NULL AND w.last_seen_at < :gone))"


def add(tx: Tx, **columns: object) -> bool:
    """Insert a dispatch; False: the task has its own already."""
    names = ", ".join(columns)
    values = ", ".join(f":{name}" for name in columns)
    return bool(
        tx.run(
            f"INSERT INTO dispatches ({names}) VALUES ({values}) ON CONFLICT (task_id) DO NOTHING",
            **columns,
        )
    )


def of_task(tx: Tx, task_id: int) -> Row | None:
    """Find the dispatch of a task."""
    return tx.row(f"{_DISPATCHES} WHERE d.task_id = :id", id=task_id)


def of_claim(tx: Tx, device_id: int, claim: str) -> Row | None:
    """Find the dispatch that a device holds, or held last, by a claim."""
    return tx.row(
        f"{_DISPATCHES} WHERE d.claim = :claim AND d.device_id = :device_id",
        claim=claim,
        device_id=device_id,
    )


def claimable(
    tx: Tx,
    *,
    organization_id: int,
    device_id: int,
    machine: str | None,
    session_ids: Sequence[str],
    free: int,
) -> list[Row]:
    """Return (dispatch, conversation, machine) of what a worker may take, first come first served.

    With `free` 0 only what its sessions call, and what their subagents do.
    """
    names, params = named(session_ids)
    columns = "id, conversation_id, task_id, device_id, machine"
    return tx.rows(
        f"SELECT d.id, d.conversation_id, d.machine FROM (SELECT {columns} FROM dispatches"
        "  WHERE status = 'queued' AND device_id = :device_id"
        f" UNION ALL SELECT {columns} FROM dispatches WHERE status = 'queued'"
        "  AND organization_id = :organization_id AND machine = :machine AND device_id IS NULL) d"
        " JOIN conversations c ON c.id = d.conversation_id JOIN tasks k ON k.id = d.task_id"
        " LEFT JOIN sessions s ON s.conversation_id = d.conversation_id"
        f" WHERE k.status NOT IN ({_ENDED}) AND (:free > 0 OR c.public_id IN ({names})"
        "  OR (d.device_id IS NOT NULL AND s.parent_conversation_id IS NOT NULL))"
        " ORDER BY d.id LIMIT 20",
        organization_id=organization_id,
        device_id=device_id,
        machine=machine or "",
        free=free,
        **params,
    )


def take(
    tx: Tx, dispatch_id: int, device_id: int, *, claim: str, at: int, lease_expires_at: int
) -> bool:
    """Give a call to a device; False: somebody else has it, or it has its end."""
    return bool(
        tx.run(
            "UPDATE dispatches SET status = 'claimed', device_id = :device_id, claim = :claim,"
            " claims = claims + 1, claimed_at = :at, lease_expires_at = :lease_expires_at"
            " WHERE id = :id AND status = 'queued'"
            " AND (device_id IS NULL OR device_id = :device_id)"
            " AND EXISTS (SELECT 1 FROM tasks k WHERE k.id = task_id"
            f"  AND k.status NOT IN ({_ENDED}))",
            id=dispatch_id,
            device_id=device_id,
            claim=claim,
            at=at,
            lease_expires_at=lease_expires_at,
        )
    )


def extend(tx: Tx, dispatch_id: int, lease_expires_at: int) -> None:
    """Let a lease last until then."""
    tx.run(
        "UPDATE dispatches SET lease_expires_at = :at WHERE id = :id AND status = 'claimed'",
        id=dispatch_id,
        at=lease_expires_at,
    )


def end_leases(tx: Tx, device_id: int, at: int) -> None:
    """Let every lease of a device end now."""
    tx.run(
        "UPDATE dispatches SET lease_expires_at = :at"
        " WHERE device_id = :id AND status = 'claimed' AND lease_expires_at > :at",
        id=device_id,
        at=at,
    )


def settle(tx: Tx, dispatch_id: int, status: str, digest: bytes | None, at: int) -> None:
    """End a dispatch; `digest` is of what the worker sent."""
    tx.run(
        "UPDATE dispatches SET status = :status, settlement_digest = :digest, settled_at = :at"
        " WHERE id = :id",
        id=dispatch_id,
        status=status,
        digest=digest,
        at=at,
    )


def queue_again(tx: Tx, dispatch_id: int, device_id: int | None) -> None:
    """Offer a call anew, to one device or to all of its machine."""
    tx.run(
        "UPDATE dispatches SET status = 'queued', claim = NULL, lease_expires_at = NULL,"
        " device_id = :device_id WHERE id = :id",
        id=dispatch_id,
        device_id=device_id,
    )


def due(tx: Tx, *, at: int, gone: int) -> list[int]:
    """Return the conversations with calls whose lease is over, whose worker is gone (not heard of
    since `gone`), or that wait though their task has its end; ascending.

    Three queries, for as one they would go through all dispatches that there ever were.
    """
    lost = tx.rows(
        "SELECT conversation_id FROM dispatches WHERE status = 'claimed'"
        " AND lease_expires_at <= :at",
        at=at,
    )
    stranded = tx.rows(
        "SELECT d.conversation_id FROM dispatches d JOIN devices w ON w.id = d.device_id"
        f" WHERE d.status = 'queued' AND {_GONE}",
        gone=gone,
    )
    ended = tx.rows(
        "SELECT d.conversation_id FROM dispatches d JOIN tasks k ON k.id = d.task_id"
        f" WHERE d.status = 'queued' AND k.status IN ({_ENDED})"
    )
    return sorted({row[0] for row in (*lost, *stranded, *ended)})


def close(tx: Tx, conversation_id: int, at: int) -> None:
    """End the dispatches whose task has its end; one that is claimed is told with its lease."""
    tx.run(
        "UPDATE dispatches SET status = 'canceled', settled_at = :at"
        " WHERE conversation_id = :id"
        " AND (status = 'queued' OR (status = 'claimed' AND lease_expires_at <= :at))"
        f" AND EXISTS (SELECT 1 FROM tasks k WHERE k.id = task_id AND k.status IN ({_ENDED}))",
        id=conversation_id,
        at=at,
    )


def expired(tx: Tx, conversation_id: int, at: int) -> list[Row]:
    """Return the claimed calls of a conversation whose lease is over."""
    return tx.rows(
        f"{_DISPATCHES} WHERE d.conversation_id = :id AND d.status = 'claimed'"
        " AND d.lease_expires_at <= :at ORDER BY d.id",
        id=conversation_id,
        at=at,
    )


def stranded(tx: Tx, conversation_id: int, gone: int) -> list[Row]:
    """Return the waiting calls of a conversation that only a device could take that is gone."""
    return tx.rows(
        f"{_DISPATCHES} JOIN devices w ON w.id = d.device_id"
        f" WHERE d.conversation_id = :id AND d.status = 'queued' AND {_GONE} ORDER BY d.id",
        id=conversation_id,
        gone=gone,
    )


def has_worked(tx: Tx, conversation_id: int, device_id: int) -> bool:
    """Tell whether a device did, or may have done, anything for a conversation: whether a call
    that it took has its end."""
    return bool(
        tx.value(
            "SELECT 1 FROM dispatches WHERE conversation_id = :id AND device_id = :device_id"
            " AND claims > 0 AND settled_at IS NOT NULL LIMIT 1",
            id=conversation_id,
            device_id=device_id,
        )
    )
