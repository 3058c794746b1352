"""The SQL of turns.

A conversation shows its own turns and, of each ancestor, those up to a boundary position. How an
inherited turn looks from here lies in `turn_overrides`; the row's own state is its owner's.
"""

from collections.abc import Sequence

from stenograph.clock import now
from stenograph.storage.database import Row, Tx

#: Terms of one UNION; SQLite takes 500.
BRANCHES = 100

#: How a turn `t` looks from the conversation `:conversation_id`, with its override `o`.
_INHERITED = "t.conversation_id <> :conversation_id"
_VISIBILITY = f"CASE WHEN {_INHERITED} THEN COALESCE(o.visibility, 'visible') ELSE t.visibility END"
_DELETED = f"CASE WHEN {_INHERITED} THEN o.deleted_at ELSE t.deleted_at END"
_OVERRIDE = (
    " LEFT JOIN turn_overrides o ON o.conversation_id = :conversation_id AND o.turn_id = t.id"
)
_TURN = (
    "t.id, t.public_id, t.conversation_id, t.position, t.kind, t.role, t.status,"
    f" {_VISIBILITY} AS visibility, {_DELETED} AS deleted_at, {_INHERITED} AS inherited,"
    " t.origin, t.active_variant_id, t.created_at"
)


# Turns


def turn(tx: Tx, conversation_id: int, public_id: str) -> Row | None:
    """Find a turn of the conversation or of an ancestor's shared part, concealed or not."""
    return tx.row(
        f"SELECT {_TURN} FROM turns t LEFT JOIN ancestries s"
        " ON s.conversation_id = :conversation_id AND s.ancestor_id = t.conversation_id"
        f"{_OVERRIDE} WHERE t.public_id = :public_id"
        " AND (t.conversation_id = :conversation_id OR t.position <= s.boundary_position)",
        conversation_id=conversation_id,
        public_id=public_id,
    )


def scopes(tx: Tx, conversation_id: int) -> list[tuple[int, int]]:
    """Return the conversations whose turns are shown, oldest first, each with its boundary."""
    rows = tx.rows(
        "SELECT ancestor_id, boundary_position FROM ancestries WHERE conversation_id = :id"
        " ORDER BY depth DESC",
        id=conversation_id,
    )
    return [(row[0], row[1]) for row in rows]


def window(
    tx: Tx,
    conversation_id: int,
    scopes: Sequence[tuple[int, int | None]],
    *,
    after: int | None,
    before: int | None,
    limit: int,
    newest: bool,
    hidden: bool,
    summaries: bool = True,
) -> list[Row]:
    """Return turns between two positions, the oldest or the newest `limit` of them, ascending.

    `scopes` are conversations with the last position that is shown of each (None: all). Each is
    read through its own index up to `limit` rows, so the cost does not grow with the history.
    """
    order = "DESC" if newest else "ASC"
    shown = [
        *([] if hidden else [f"{_VISIBILITY} <> 'hidden'"]),
        *([] if summaries else ["t.kind <> 'compaction_summary'"]),
    ]
    rows: list[Row] = []
    for start in range(0, len(scopes), BRANCHES):
        branches = " UNION ALL ".join(
            f"SELECT * FROM ({_branch(scope, after, before, order, shown)}) AS b{i}"
            for i, scope in enumerate(scopes[start : start + BRANCHES])
        )
        rows += tx.rows(
            "SELECT x.*, n.public_id, a.public_id, p.public_id, p.handle, p.kind, p.display_name"
            f" FROM ({branches}) AS x LEFT JOIN inputs n ON n.id = x.input_id"
            " LEFT JOIN principals a ON a.id = x.answerer_id"
            " LEFT JOIN principals p ON p.id = x.speaker_id",
            conversation_id=conversation_id,
            limit=limit,
            **({} if after is None else {"after": after}),
            **({} if before is None else {"before": before}),
        )
    rows.sort(key=lambda row: int(row[3]))
    return rows[-limit:] if newest else rows[:limit]


def _branch(
    scope: tuple[int, int | None],
    after: int | None,
    before: int | None,
    order: str,
    shown: Sequence[str],
) -> str:
    owner, boundary = scope
    bounds = [
        f"t.conversation_id = {int(owner)}",
        f"{_DELETED} IS NULL",
        *([] if boundary is None else [f"t.position <= {int(boundary)}"]),
        *([] if after is None else ["t.position > :after"]),
        *([] if before is None else ["t.position < :before"]),
        *shown,
    ]
    return (
        f"SELECT {_TURN}, t.input_id, t.answerer_id, t.speaker_id FROM turns t{_OVERRIDE}"
        f" WHERE {' AND '.join(bounds)} ORDER BY t.position {order} LIMIT :limit"
    )


def add_turn(tx: Tx, conversation_id: int, **columns: object) -> tuple[int, int]:
    """Put a turn at the conversation's next position; returns its row id and the position."""
    position = tx.value(
        "UPDATE conversations SET next_position = next_position + 1,"
        " context_revision = context_revision + 1, last_activity_at = :at, updated_at = :at"
        " WHERE id = :id RETURNING next_position - 1",
        id=conversation_id,
        at=now(),
    )
    turn_id = tx.insert("turns", conversation_id=conversation_id, position=int(position), **columns)
    return turn_id, int(position)


def active_turn(tx: Tx, conversation_id: int) -> int | None:
    """Return the turn that is being answered."""
    found = tx.value("SELECT active_turn_id FROM conversations WHERE id = :id", id=conversation_id)
    return None if found is None else int(found)


def set_active_turn(tx: Tx, conversation_id: int, turn_id: int | None) -> None:
    """Say which turn is being answered; None: none is."""
    tx.run(
        "UPDATE conversations SET active_turn_id = :turn_id WHERE id = :id",
        id=conversation_id,
        turn_id=turn_id,
    )


def clear_active_turn(tx: Tx, conversation_id: int, turn_id: int) -> None:
    """Say that this turn is not being answered any more."""
    tx.run(
        "UPDATE conversations SET active_turn_id = NULL"
        " WHERE id = :id AND active_turn_id = :turn_id",
        id=conversation_id,
        turn_id=turn_id,
    )


def touch(tx: Tx, conversation_id: int, at: int, *, revised: bool = False) -> None:
    """Say that something happened; `revised`: what a model would be told has changed."""
    tx.run(
        "UPDATE conversations SET updated_at = :at, last_activity_at = :at,"
        f" context_revision = context_revision + {int(revised)} WHERE id = :id",
        id=conversation_id,
        at=at,
    )


def set_turn_status(tx: Tx, turn_id: int, status: str, completed_at: int | None) -> None:
    """Write how a turn stands."""
    tx.run(
        "UPDATE turns SET status = :status, completed_at = :at WHERE id = :id",
        id=turn_id,
        status=status,
        at=completed_at,
    )


def set_view(tx: Tx, turn_id: int, visibility: str, deleted_at: int | None) -> None:
    """Write how a turn looks in its own conversation."""
    tx.run(
        "UPDATE turns SET visibility = :visibility, deleted_at = :deleted_at WHERE id = :id",
        id=turn_id,
        visibility=visibility,
        deleted_at=deleted_at,
    )


def set_override(
    tx: Tx, conversation_id: int, turn_id: int, visibility: str, deleted_at: int | None
) -> None:
    """Write how an inherited turn looks from a fork."""
    tx.run(
        "INSERT INTO turn_overrides (conversation_id, turn_id, visibility, deleted_at)"
        " VALUES (:conversation_id, :turn_id, :visibility, :deleted_at)"
        " ON CONFLICT (conversation_id, turn_id)"
        " DO UPDATE SET visibility = excluded.visibility, deleted_at = excluded.deleted_at",
        conversation_id=conversation_id,
        turn_id=turn_id,
        visibility=visibility,
        deleted_at=deleted_at,
    )


def apex(tx: Tx, conversation_id: int) -> int | None:
    """Return the position of the conversation's newest own turn."""
    found = tx.value(
        "SELECT position FROM turns WHERE conversation_id = :id ORDER BY position DESC LIMIT 1",
        id=conversation_id,
    )
    return None if found is None else int(found)


def is_pinned(tx: Tx, conversation_id: int, position: int) -> bool:
    """Tell whether a fork that is there shows the turn at this position."""
    return (
        tx.value(
            "SELECT 1 FROM ancestries a JOIN conversations f ON f.id = a.conversation_id"
            " WHERE a.ancestor_id = :id AND a.boundary_position >= :position"
            " AND f.deleted_at IS NULL LIMIT 1",
            id=conversation_id,
            position=position,
        )
        is not None
    )


def head(tx: Tx, conversation_id: int) -> tuple[int, str | None]:
    """Return the context revision of a conversation, and its newest own turn."""
    row = tx.row(
        "SELECT c.context_revision, (SELECT t.public_id FROM turns t"
        "  WHERE t.conversation_id = c.id ORDER BY t.position DESC LIMIT 1)"
        " FROM conversations c WHERE c.id = :id",
        id=conversation_id,
    )
    assert row is not None
    return row[0], row[1]


def sender(tx: Tx, conversation_id: int) -> Row | None:
    """Return the conversation, run and task (public ids, key) whose call started a subagent's
    conversation; None: nobody's call did."""
    return tx.row(
        "SELECT p.public_id, r.public_id, k.key FROM conversations c"
        " JOIN conversations p ON p.id = c.parent_id AND p.deleted_at IS NULL"
        " JOIN tasks k ON k.child_conversation_id = c.id"
        " JOIN runs r ON r.id = k.run_id AND r.conversation_id = p.id"
        " WHERE c.id = :id ORDER BY k.id LIMIT 1",
        id=conversation_id,
    )


def turn_public_id(tx: Tx, turn_id: int) -> str:
    """Return the public id of a turn."""
    return str(tx.value("SELECT public_id FROM turns WHERE id = :id", id=turn_id))
