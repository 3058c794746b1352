"""The SQL of default runners, which are devices."""

from stenograph.storage.database import Row, Tx

_DEVICE = "d.id, d.public_id, d.name, d.removed_at"


def find(tx: Tx, organization_id: int, public_id: str) -> Row | None:
    """Find a device of an organization, removed or not: row id, public id, name, removal."""
    return tx.row(
        f"SELECT {_DEVICE} FROM devices d"
        " WHERE d.public_id = :public_id AND d.organization_id = :organization_id",
        public_id=public_id,
        organization_id=organization_id,
    )


def of(tx: Tx, conversation_id: int) -> Row | None:
    """Find the default runner of a conversation: row id, public id, name, removal."""
    return tx.row(
        f"SELECT {_DEVICE} FROM conversations c JOIN devices d ON d.id = c.default_runner_id"
        " WHERE c.id = :id",
        id=conversation_id,
    )
