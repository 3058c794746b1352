"""The SQL of a fork's session."""

from dataclasses import dataclass

from stenograph.storage.database import Tx


@dataclass(frozen=True, slots=True)
class Adopted:
    """A turn of a fork's own with its copied candidate; `asked`: it has a prompt.

    `origin_id` is the candidate it was copied from, `at` when the original was made.
    """

    turn_id: int
    variant_id: int
    position: int
    kind: str
    role: str
    status: str
    content: str | None
    asked: int
    origin_id: int
    at: int


def copy_session(tx: Tx, owner_id: int, source_id: int, fork_id: int, at: int) -> bool:
    """Give a fork the session facts that decide how its source is answered, and whose it is.

    False: the source is no session.
    """
    return bool(
        tx.run(
            "INSERT INTO sessions (conversation_id, organization_id, owner_id, reason_id, mode,"
            " status, model, reasoning_effort, tags, options, created_at, started_at)"
            " SELECT CAST(:fork AS BIGINT), organization_id, CAST(:owner AS BIGINT), reason_id,"
            " 'standard', 'exit', model, reasoning_effort, '[]', options, CAST(:at AS BIGINT),"
            " CAST(:at AS BIGINT) FROM sessions WHERE conversation_id = :source",
            fork=fork_id,
            owner=owner_id,
            source=source_id,
            at=at,
        )
    )


def adopted(tx: Tx, fork_id: int) -> list[Adopted]:
    """Return the turns that a fork has itself, in order."""
    return [
        Adopted(*row)
        for row in tx.rows(
            "SELECT t.id, v.id, t.position, t.kind, t.role, t.status, v.content,"
            " v.prompt IS NOT NULL, v.origin_variant_id, o.created_at FROM turns t"
            " JOIN variants v ON v.id = t.active_variant_id"
            " JOIN variants o ON o.id = v.origin_variant_id"
            " WHERE t.conversation_id = :id ORDER BY t.position",
            id=fork_id,
        )
    ]


def steers(tx: Tx, variant_id: int) -> list[tuple[str, int | None]]:
    """Return text and time of what was said to a candidate while it worked, in order."""
    rows = tx.rows(
        "SELECT text, occurred_at FROM steps WHERE variant_id = :id AND part = 'steer'"
        " AND text IS NOT NULL ORDER BY position",
        id=variant_id,
    )
    return [(row[0], row[1]) for row in rows]
