"""The SQL of branches that were left: candidates and forks that an import made of them."""

from collections.abc import Collection
from dataclasses import dataclass

from stenograph.storage.database import Tx, among


@dataclass(frozen=True, slots=True)
class Left:
    """A branch as it lies in the record: a candidate, or (`fork_id`) a conversation of its own.

    `steps` are the identities of its steps; None: its details were deleted, and it had no key.
    """

    variant_id: int | None
    fork_id: int | None
    steps: tuple[str | None, ...]


def left(tx: Tx, conversation_id: int) -> list[Left]:
    """Return the branches that imports of a session recorded, oldest first."""
    found: dict[tuple[int | None, int | None], list[str | None]] = {}
    for owner, variant_id, key, digest in tx.rows(
        "SELECT s.conversation_id, v.id, s.external_key, s.digest"
        " FROM steps s JOIN variants v ON v.id = s.variant_id JOIN turns t ON t.id = v.turn_id"
        " JOIN conversations c ON c.id = s.conversation_id"
        " WHERE v.source = 'import' AND (c.source_id = :id"
        "  OR (c.id = :id AND v.id <> t.active_variant_id))"
        " ORDER BY s.conversation_id, s.position",
        id=conversation_id,
    ):
        fork = owner != conversation_id
        place = (None if fork else variant_id, owner if fork else None)
        known = key if key is not None else digest and bytes(digest).hex()
        found.setdefault(place, []).append(known)
    return [Left(*place, tuple(steps)) for place, steps in found.items()]


def is_used(tx: Tx, fork_id: int) -> bool:
    """Tell whether anything but the import is in a fork, or goes on from it."""
    return bool(
        tx.value(
            "SELECT 1 FROM conversations c WHERE c.id = :id AND ("
            " EXISTS (SELECT 1 FROM conversations o WHERE o.source_id = c.id OR o.parent_id = c.id)"
            " OR EXISTS (SELECT 1 FROM turns t JOIN variants v ON v.turn_id = t.id"
            "  WHERE t.conversation_id = c.id AND v.source <> 'import'))",
            id=fork_id,
        )
    )


def last_shared(tx: Tx, conversation_id: int, apart_from: Collection[int]) -> int:
    """Return the last position that a fork shows of this conversation; -1: there is none."""
    found = tx.value(
        "SELECT max(boundary_position) FROM ancestries WHERE ancestor_id = :id"
        f" AND NOT ({among('conversation_id', apart_from)})",
        id=conversation_id,
    )
    return -1 if found is None else int(found)


def forget(tx: Tx, branch: Left) -> None:
    """Delete a branch, with all that hangs on it."""
    if branch.fork_id is not None:
        tx.run("DELETE FROM conversations WHERE id = :id", id=branch.fork_id)
        return
    variant = branch.variant_id
    tx.run("DELETE FROM usage_receipts WHERE variant_id = :id", id=variant)
    tx.run(
        "UPDATE events SET variant_id = NULL, run_id = NULL, task_id = NULL, step_id = NULL"
        " WHERE variant_id = :id",
        id=variant,
    )
    later = tx.rows(
        "SELECT o.id FROM variants v JOIN variants o ON o.turn_id = v.turn_id"
        " WHERE v.id = :id AND o.position > v.position ORDER BY o.position",
        id=variant,
    )
    tx.run("DELETE FROM variants WHERE id = :id", id=variant)
    for (row_id,) in later:  # one by one, for no two may stand at one place between
        tx.run("UPDATE variants SET position = position - 1 WHERE id = :id", id=row_id)
