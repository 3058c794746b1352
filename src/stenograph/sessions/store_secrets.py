"""The SQL of secrets: those of the organization, and those that a session was given."""

from collections.abc import Collection

from stenograph.storage.database import Row, Tx, among

_COLUMNS = "public_id, name, created_at, updated_at"


def listed(tx: Tx, organization_id: int) -> list[Row]:
    """Return id, name and times of an organization's secrets, by name."""
    return tx.rows(
        f"SELECT {_COLUMNS} FROM secrets WHERE organization_id = :organization_id ORDER BY name",
        organization_id=organization_id,
    )


def find(tx: Tx, organization_id: int, name: str) -> Row | None:
    """Return id, name and times of a secret."""
    return tx.row(
        f"SELECT {_COLUMNS} FROM secrets WHERE organization_id = :organization_id AND name = :name",
        organization_id=organization_id,
        name=name,
    )


def sealed(tx: Tx, organization_id: int, names: Collection[str]) -> dict[str, bytes]:
    """Return the sealed values of those names that there are."""
    found = {}
    for name in names:
        value = tx.value(
            "SELECT ciphertext FROM secrets WHERE organization_id = :organization_id"
            " AND name = :name",
            organization_id=organization_id,
            name=name,
        )
        if value is not None:
            found[name] = bytes(value)
    return found


def insert(tx: Tx, **columns: object) -> bool:
    """Insert a secret; False if one of its name is there."""
    names = ", ".join(columns)
    values = ", ".join(f":{name}" for name in columns)
    return bool(
        tx.run(
            f"INSERT INTO secrets ({names}) VALUES ({values})"
            " ON CONFLICT (organization_id, name) DO NOTHING",
            **columns,
        )
    )


def replace(tx: Tx, organization_id: int, name: str, ciphertext: bytes, at: int) -> bool:
    """Set another value; False if there is no secret of that name."""
    return bool(
        tx.run(
            "UPDATE secrets SET ciphertext = :ciphertext, updated_at = :at"
            " WHERE organization_id = :organization_id AND name = :name",
            organization_id=organization_id,
            name=name,
            ciphertext=ciphertext,
            at=at,
        )
    )


def delete(tx: Tx, organization_id: int, name: str) -> bool:
    """Delete a secret; False if there is none of that name."""
    return bool(
        tx.run(
            "DELETE FROM secrets WHERE organization_id = :organization_id AND name = :name",
            organization_id=organization_id,
            name=name,
        )
    )


def give(tx: Tx, conversation_id: int, sealed_values: dict[str, bytes]) -> None:
    """Keep with a session the secrets that it was given, whatever becomes of the originals.

    One that it was given before under this name stays beside it, for text may hold either.
    """
    for name, value in sealed_values.items():
        tx.run(
            "INSERT INTO session_secrets (conversation_id, name, ciphertext)"
            " SELECT :conversation_id, :name, :value WHERE NOT EXISTS (SELECT 1 FROM"
            " session_secrets WHERE conversation_id = :conversation_id AND name = :name"
            " AND ciphertext = :value)",
            conversation_id=conversation_id,
            name=name,
            value=value,
        )


def own(tx: Tx, conversation_id: int) -> list[Row]:
    """Return name and sealed value of what a session was given; present values come last."""
    return tx.rows(
        "SELECT x.name, x.ciphertext FROM session_secrets x"
        " JOIN sessions s ON s.conversation_id = x.conversation_id"
        " LEFT JOIN secrets g ON g.organization_id = s.organization_id AND g.name = x.name"
        "  AND g.ciphertext = x.ciphertext"
        " WHERE x.conversation_id = :id"
        " ORDER BY x.name, CASE WHEN g.name IS NULL THEN 0 ELSE 1 END",
        id=conversation_id,
    )


# Sessions that text may flow between: up to who started it, down to whom it started, and back to
# what it was forked from. Where no session has a secret, there is nothing to follow.
_KIN = """
WITH RECURSIVE kin (id) AS (
  SELECT id FROM conversations WHERE {start} AND EXISTS (SELECT 1 FROM session_secrets)
  UNION
  SELECT coalesce(above.parent_conversation_id, below.conversation_id, source.ancestor_id)
  FROM kin
  CROSS JOIN (SELECT 1 AS way UNION ALL SELECT 2 UNION ALL SELECT 3) AS ways
  LEFT JOIN sessions above ON way = 1 AND above.conversation_id = kin.id
  LEFT JOIN sessions below ON way = 2 AND below.parent_conversation_id = kin.id
  LEFT JOIN ancestries source ON way = 3 AND source.conversation_id = kin.id
  WHERE coalesce(above.parent_conversation_id, below.conversation_id, source.ancestor_id)
    IS NOT NULL
)
SELECT DISTINCT x.name, x.ciphertext FROM kin
JOIN session_secrets x ON x.conversation_id = kin.id
"""


def given(tx: Tx, conversation_ids: Collection[int]) -> list[Row]:
    """Return name and sealed value of every secret whose value these sessions may show."""
    return tx.rows(_KIN.format(start=among("id", conversation_ids)))
