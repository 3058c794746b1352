"""The SQL of making a fork."""

from stenograph.storage.database import Tx


def add_ancestries(tx: Tx, child_id: int, source_id: int, boundary: int) -> None:
    """Let a conversation show what another one shows, up to a position."""
    tx.run(
        "INSERT INTO ancestries (conversation_id, depth, ancestor_id, boundary_position)"
        " SELECT CAST(:child AS BIGINT), depth + 1, ancestor_id,"
        " CASE WHEN boundary_position < :boundary THEN boundary_position ELSE :boundary END"
        " FROM ancestries WHERE conversation_id = :source"
        " UNION ALL SELECT CAST(:child AS BIGINT), 1, CAST(:source AS BIGINT),"
        " CAST(:boundary AS BIGINT)",
        child=child_id,
        source=source_id,
        boundary=boundary,
    )


def copy_overrides(tx: Tx, source_id: int, child_id: int, below: int) -> None:
    """Let a fork start with the view its source has now of the turns they share."""
    tx.run(
        "INSERT INTO turn_overrides (conversation_id, turn_id, visibility, deleted_at)"
        " SELECT CAST(:child AS BIGINT), id, visibility, deleted_at FROM turns"
        " WHERE conversation_id = :source AND position < :below"
        " AND (visibility <> 'visible' OR deleted_at IS NOT NULL)"
        " UNION ALL SELECT CAST(:child AS BIGINT), o.turn_id, o.visibility, o.deleted_at"
        " FROM turn_overrides o JOIN turns t ON t.id = o.turn_id"
        " WHERE o.conversation_id = :source AND t.position < :below",
        child=child_id,
        source=source_id,
        below=below,
    )


def copy_access(tx: Tx, source_id: int, child_id: int) -> None:
    """Give a fork the access of its source, whose creator and answerer are named from now on."""
    tx.run(
        "INSERT INTO conversation_access (conversation_id, principal_id, level)"
        " SELECT CAST(:child AS BIGINT), p.id, CASE WHEN p.id IN (s.creator_id, s.answerer_id)"
        "  THEN 'full' ELSE a.level END"
        " FROM conversations s JOIN principals p ON p.id = s.creator_id OR p.id = s.answerer_id"
        "  OR p.id IN (SELECT e.principal_id FROM conversation_access e"
        "   WHERE e.conversation_id = s.id)"
        " LEFT JOIN conversation_access a ON a.conversation_id = s.id AND a.principal_id = p.id"
        " WHERE s.id = :source",
        child=child_id,
        source=source_id,
    )
    tx.run(
        "UPDATE conversations SET"
        " access_default = (SELECT s.access_default FROM conversations s WHERE s.id = :source),"
        " billing_subject = (SELECT s.billing_subject FROM conversations s WHERE s.id = :source)"
        " WHERE id = :child",
        child=child_id,
        source=source_id,
    )


def copy_people(tx: Tx, turn_id: int, copy_id: int) -> None:
    """Let an adopted turn name who spoke and who answered in its original."""
    tx.run(
        "UPDATE turns SET"
        " speaker_id = (SELECT s.speaker_id FROM turns s WHERE s.id = :source),"
        " answerer_id = (SELECT s.answerer_id FROM turns s WHERE s.id = :source)"
        " WHERE id = :copy",
        source=turn_id,
        copy=copy_id,
    )


def adopt(tx: Tx, child_id: int, **columns: object) -> None:
    """Write where a fork came from and at which position it goes on."""
    sets = ", ".join(f"{name} = :{name}" for name in columns)
    tx.run(f"UPDATE conversations SET {sets} WHERE id = :id", id=child_id, **columns)
