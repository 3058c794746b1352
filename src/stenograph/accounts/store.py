"""The SQL of organizations, principals and credentials."""

import hashlib
from collections.abc import Iterable

from stenograph.storage.database import Row, Tx

_PERSON = "o.id, o.public_id, o.slug, o.name, p.id, p.public_id, p.kind, p.role"


def digest(secret: str) -> bytes:
    """Return what is stored of a secret. It is random and long, so no slow hash is needed."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def credential_by_digest(tx: Tx, wanted: bytes) -> Row | None:
    """Find a credential, its holder and their organization by one look into one index.

    Columns: the eight of a person; id, public id, plane, scopes, expiry, revocation; when the
    holder was deactivated, when the organization was retired.
    """
    return tx.row(
        f"SELECT {_PERSON}, c.id, c.public_id, c.plane, c.scopes, c.expires_at, c.revoked_at,"
        " p.deactivated_at, o.retired_at FROM credentials c"
        " JOIN principals p ON p.id = c.principal_id"
        " JOIN organizations o ON o.id = c.organization_id WHERE c.digest = :digest",
        digest=wanted,
    )


def owner(tx: Tx, slug: str) -> Row | None:
    """Find the first owner of an organization: the eight columns of a person."""
    return tx.row(
        f"SELECT {_PERSON} FROM organizations o JOIN principals p ON p.organization_id = o.id"
        " WHERE o.slug = :slug AND p.role = 'owner' AND p.deactivated_at IS NULL"
        " ORDER BY p.id LIMIT 1",
        slug=slug,
    )


def organization_by_slug(tx: Tx, slug: str) -> int | None:
    """Find an organization's row id."""
    found = tx.value("SELECT id FROM organizations WHERE slug = :slug", slug=slug)
    return None if found is None else int(found)


def claim_slug(tx: Tx, **columns: object) -> bool:
    """Insert an organization; False if another process was first with its slug."""
    names = ", ".join(columns)
    values = ", ".join(f":{name}" for name in columns)
    return bool(
        tx.run(
            f"INSERT INTO organizations ({names}) VALUES ({values}) ON CONFLICT (slug) DO NOTHING",
            **columns,
        )
    )


def hold_organization(tx: Tx, organization_id: int) -> None:
    """Hold an organization until the transaction ends: one at a time makes what it has once."""
    tx.row(f"SELECT id FROM organizations WHERE id = :id{tx.for_update}", id=organization_id)


def principals(tx: Tx, organization_id: int) -> list[Row]:
    """List everyone in an organization, oldest first."""
    return tx.rows(
        "SELECT id, public_id, kind, handle, display_name, role, created_at, deactivated_at"
        " FROM principals WHERE organization_id = :id ORDER BY id",
        id=organization_id,
    )


def principal(tx: Tx, organization_id: int, name: str) -> Row | None:
    """Find someone by public id or handle: the columns of `principals`."""
    return tx.row(
        "SELECT id, public_id, kind, handle, display_name, role, created_at, deactivated_at"
        " FROM principals WHERE organization_id = :organization_id"
        " AND (public_id = :name OR handle = :name)",
        organization_id=organization_id,
        name=name,
    )


def credentials(tx: Tx, organization_id: int, holder_id: int | None) -> Iterable[Row]:
    """List credentials, oldest first; of one holder if given."""
    return tx.rows(
        "SELECT c.public_id, c.plane, c.name, c.hint, c.scopes, c.created_at, c.expires_at,"
        " c.revoked_at, p.public_id, p.handle FROM credentials c"
        " JOIN principals p ON p.id = c.principal_id WHERE c.organization_id = :organization_id"
        " AND (:all = 1 OR c.principal_id = :holder_id) ORDER BY c.id",
        organization_id=organization_id,
        all=int(holder_id is None),
        holder_id=holder_id or 0,
    )


def revoke(tx: Tx, organization_id: int, public_id: str, holder_id: int | None, at: int) -> int:
    """Mark a credential revoked, once; returns how many there are by that id."""
    return tx.run(
        "UPDATE credentials SET revoked_at = COALESCE(revoked_at, :at)"
        " WHERE organization_id = :organization_id AND public_id = :public_id"
        " AND (:all = 1 OR principal_id = :holder_id)",
        at=at,
        organization_id=organization_id,
        public_id=public_id,
        all=int(holder_id is None),
        holder_id=holder_id or 0,
    )
