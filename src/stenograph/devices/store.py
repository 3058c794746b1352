"""The SQL of devices, their roots, and the tickets that they enroll with."""

from collections.abc import Collection

from stenograph.storage.database import Row, Tx, among

_DEVICE = (
    "v.id, v.public_id, v.organization_id, v.creator_id, v.name, v.version, v.lifecycle,"
    " v.machine, v.created_at, v.last_seen_at"
)
_DEVICES = f"SELECT {_DEVICE} FROM devices v WHERE v.removed_at IS NULL"
_TICKET = (
    "t.id, t.organization_id, (SELECT public_id FROM organizations WHERE id = t.organization_id),"
    " t.creator_id, t.code_challenge, t.install_id, t.lifecycle, t.name, t.machine, t.roots,"
    " t.expires_at, t.used_at"
)


# Devices


def device(tx: Tx, organization_id: int, public_id: str) -> list[Row]:
    """Find a device of an organization."""
    return tx.rows(
        f"{_DEVICES} AND v.organization_id = :organization_id AND v.public_id = :public_id",
        organization_id=organization_id,
        public_id=public_id,
    )


def devices(tx: Tx, organization_id: int) -> list[Row]:
    """List an organization's devices, oldest first."""
    return tx.rows(
        f"{_DEVICES} AND v.organization_id = :organization_id ORDER BY v.id",
        organization_id=organization_id,
    )


def device_by_id(tx: Tx, device_id: int) -> list[Row]:
    """Find a device by its row, unless it was removed."""
    return tx.rows(f"{_DEVICES} AND v.id = :id", id=device_id)


def device_of(tx: Tx, credential_id: int) -> list[Row]:
    """Find the device whose secret a credential is."""
    return tx.rows(f"{_DEVICES} AND v.credential_id = :id", id=credential_id)


def roots(tx: Tx, device_ids: Collection[int]) -> list[Row]:
    """Return (id, device, public id, fingerprint, permissions, mode) of the roots of devices."""
    return tx.rows(
        "SELECT id, device_id, public_id, path_fingerprint, permissions, execution_mode"
        f" FROM device_roots WHERE {among('device_id', device_ids)} ORDER BY id"
    )


def add_device(tx: Tx, **columns: object) -> int:
    """Insert a device."""
    return tx.insert("devices", **columns)


def add_root(tx: Tx, **columns: object) -> None:
    """Insert a root of a device."""
    tx.insert("device_roots", **columns)


def set_seen(tx: Tx, device_id: int, at: int) -> None:
    """Note when a device was heard of."""
    tx.run("UPDATE devices SET last_seen_at = :at WHERE id = :id", id=device_id, at=at)


def set_removed(tx: Tx, device_id: int, at: int) -> None:
    """Mark a device as removed."""
    tx.run("UPDATE devices SET removed_at = :at WHERE id = :id", id=device_id, at=at)


def abandoned(tx: Tx, before: int) -> list[Row]:
    """Return (id, organization) of ephemeral devices that were last heard of before a moment."""
    return tx.rows(
        "SELECT id, organization_id FROM devices WHERE lifecycle = 'ephemeral'"
        " AND removed_at IS NULL AND last_seen_at < :before ORDER BY id",
        before=before,
    )


def ever_served(tx: Tx, organization_id: int, machine: str) -> bool:
    """Tell whether a worker ever enrolled for a machine."""
    return bool(
        tx.value(
            "SELECT 1 FROM devices WHERE organization_id = :organization_id"
            " AND machine = :machine LIMIT 1",
            organization_id=organization_id,
            machine=machine,
        )
    )


def workers(tx: Tx, organization_id: int, since: int) -> list[Row]:
    """Return (machine, online, busy) of machines: how many of their workers were heard of since a
    moment, and how many of those have a session."""
    return tx.rows(
        "SELECT machine, sum(there), sum(there * busy) FROM (SELECT v.machine,"
        " CASE WHEN v.last_seen_at > :since THEN 1 ELSE 0 END AS there,"
        " CASE WHEN EXISTS (SELECT 1 FROM session_targets s WHERE s.device_id = v.id)"
        "  THEN 1 ELSE 0 END AS busy"
        " FROM devices v WHERE v.organization_id = :organization_id AND v.machine IS NOT NULL"
        " AND v.removed_at IS NULL) AS w GROUP BY machine",
        organization_id=organization_id,
        since=since,
    )


# Credentials


def credential(tx: Tx, device_id: int) -> str:
    """Return the public id of a device's credential."""
    found = tx.value(
        "SELECT c.public_id FROM devices v JOIN credentials c ON c.id = v.credential_id"
        " WHERE v.id = :id",
        id=device_id,
    )
    return str(found)


def credential_id(tx: Tx, public_id: str) -> int:
    """Return the row of a credential that was just made."""
    return int(tx.value("SELECT id FROM credentials WHERE public_id = :id", id=public_id))


def set_credential(tx: Tx, device_id: int, credential_id: int) -> None:
    """Give a device another credential."""
    tx.run(
        "UPDATE devices SET credential_id = :credential_id WHERE id = :id",
        id=device_id,
        credential_id=credential_id,
    )


# Tickets


def add_ticket(tx: Tx, **columns: object) -> None:
    """Insert a ticket."""
    tx.insert("enrollment_tickets", **columns)


def ticket(tx: Tx, digest: bytes) -> Row | None:
    """Find and hold a ticket by the digest of its secret, if who made it is still there."""
    return tx.row(
        f"SELECT {_TICKET} FROM enrollment_tickets t WHERE t.digest = :digest"
        " AND EXISTS (SELECT 1 FROM principals p JOIN organizations o ON o.id = p.organization_id"
        "  WHERE p.id = t.creator_id AND p.deactivated_at IS NULL AND o.retired_at IS NULL)"
        f"{tx.for_update}",
        digest=digest,
    )


def use_ticket(tx: Tx, ticket_id: int, at: int) -> None:
    """Mark a ticket as used."""
    tx.run("UPDATE enrollment_tickets SET used_at = :at WHERE id = :id", id=ticket_id, at=at)


def enrolled(tx: Tx, organization_id: int, install_id: str, at: int) -> list[Row]:
    """Find the device that was made with the ticket that was used at that moment."""
    return tx.rows(
        f"{_DEVICES} AND v.organization_id = :organization_id AND v.install_id = :install_id"
        " AND v.created_at = :at",
        organization_id=organization_id,
        install_id=install_id,
        at=at,
    )
