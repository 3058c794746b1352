"""The SQL of idempotency receipts."""

from stenograph.storage.database import Row, Tx


def claim(
    tx: Tx, principal_id: int, scope: str, key: str, digest: bytes, at: int, expired: int
) -> bool:
    """Write a receipt that is not filled in yet; False if there is a live one by that key.

    On PostgreSQL, a second claimant waits here until the first commits or rolls back. A receipt
    made before `expired` (microseconds) gives way.
    """
    return bool(
        tx.run(
            "INSERT INTO idempotency_receipts"
            " (principal_id, scope, key, digest, status, resource, created_at)"
            " VALUES (:principal_id, :scope, :key, :digest, 0, '', :at)"
            " ON CONFLICT (principal_id, scope, key) DO UPDATE SET"
            " digest = excluded.digest, status = 0, resource = '', created_at = :at"
            " WHERE idempotency_receipts.created_at < :expired",
            principal_id=principal_id,
            scope=scope,
            key=key,
            digest=digest,
            at=at,
            expired=expired,
        )
    )


def fill(tx: Tx, principal_id: int, scope: str, key: str, status: int, resource: str) -> None:
    """Write what the request answered."""
    tx.run(
        "UPDATE idempotency_receipts SET status = :status, resource = :resource"
        " WHERE principal_id = :principal_id AND scope = :scope AND key = :key",
        status=status,
        resource=resource,
        principal_id=principal_id,
        scope=scope,
        key=key,
    )


def receipt(tx: Tx, principal_id: int, scope: str, key: str, since: int) -> Row | None:
    """Find a receipt made at or after `since`: digest, status, resource."""
    return tx.row(
        "SELECT digest, status, resource FROM idempotency_receipts WHERE created_at >= :since"
        " AND principal_id = :principal_id AND scope = :scope AND key = :key",
        principal_id=principal_id,
        scope=scope,
        key=key,
        since=since,
    )


def prune(tx: Tx, expired: int) -> int:
    """Delete the receipts made before `expired`."""
    return tx.run("DELETE FROM idempotency_receipts WHERE created_at < :expired", expired=expired)
