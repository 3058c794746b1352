"""The SQL of ephemeral workspaces."""

from stenograph.storage.database import Row, Tx

_COLUMNS = (
    "e.organization_id, o.public_id, e.reference, e.digest, e.ciphertext, e.expires_at,"
    " e.retired_at"
)
_FROM = "FROM ephemeral_workspaces e JOIN organizations o ON o.id = e.organization_id"


def add(tx: Tx, **columns: object) -> None:
    """Write that an organization is one."""
    names = ", ".join(columns)
    values = ", ".join(f":{name}" for name in columns)
    tx.run(f"INSERT INTO ephemeral_workspaces ({names}) VALUES ({values})", **columns)
    tx.run(
        "UPDATE organizations SET parent_id = :parent_id WHERE id = :id",
        id=columns["organization_id"],
        parent_id=columns["parent_id"],
    )


def by_reference(tx: Tx, parent_id: int, reference: str) -> Row | None:
    """Return the workspace that an organization named so."""
    return tx.row(
        f"SELECT {_COLUMNS} {_FROM} WHERE e.parent_id = :id AND e.reference = :reference",
        id=parent_id,
        reference=reference,
    )


def by_public_id(tx: Tx, parent_id: int, public_id: str) -> Row | None:
    """Return (organization, when it was retired) of a workspace of an organization."""
    return tx.row(
        f"SELECT e.organization_id, e.retired_at {_FROM}"
        " WHERE e.parent_id = :id AND o.public_id = :public_id",
        id=parent_id,
        public_id=public_id,
    )


def of(tx: Tx, organization_id: int) -> Row | None:
    """Return (its session, when it was retired) of an organization that is a workspace."""
    return tx.row(
        "SELECT conversation_id, retired_at FROM ephemeral_workspaces WHERE organization_id = :id",
        id=organization_id,
    )


def count_live(tx: Tx, parent_id: int) -> int:
    """Return how many workspaces of an organization live."""
    return int(
        tx.value(
            "SELECT count(*) FROM ephemeral_workspaces"
            " WHERE parent_id = :id AND retired_at IS NULL",
            id=parent_id,
        )
    )


def consume(tx: Tx, organization_id: int, conversation_id: int) -> None:
    """Write which session a workspace had; its key is told no more."""
    tx.run(
        "UPDATE ephemeral_workspaces SET conversation_id = :conversation_id, ciphertext = NULL"
        " WHERE organization_id = :id AND conversation_id IS NULL",
        id=organization_id,
        conversation_id=conversation_id,
    )


def due(tx: Tx, at: int, limit: int) -> list[int]:
    """Return workspaces whose time is up."""
    rows = tx.rows(
        "SELECT organization_id FROM ephemeral_workspaces"
        " WHERE retired_at IS NULL AND expires_at <= :at ORDER BY expires_at LIMIT :limit",
        at=at,
        limit=limit,
    )
    return [row[0] for row in rows]


def retire(tx: Tx, organization_id: int, at: int) -> None:
    """End a workspace with its keys."""
    params = {"id": organization_id, "at": at}
    tx.run(
        "UPDATE ephemeral_workspaces SET retired_at = :at, ciphertext = NULL"
        " WHERE organization_id = :id",
        **params,
    )
    tx.run("UPDATE organizations SET retired_at = :at WHERE id = :id", **params)
    tx.run(
        "UPDATE credentials SET revoked_at = :at WHERE organization_id = :id"
        " AND revoked_at IS NULL",
        **params,
    )


def slug(tx: Tx, organization_id: int) -> str:
    """Return an organization's slug."""
    return str(tx.value("SELECT slug FROM organizations WHERE id = :id", id=organization_id))


def running(tx: Tx, organization_id: int) -> list[str]:
    """Return the sessions of an organization that have not ended and that nobody started."""
    rows = tx.rows(
        "SELECT c.public_id FROM sessions s JOIN conversations c ON c.id = s.conversation_id"
        " WHERE s.organization_id = :id AND s.status = 'running'"
        " AND s.parent_conversation_id IS NULL ORDER BY c.id",
        id=organization_id,
    )
    return [row[0] for row in rows]
