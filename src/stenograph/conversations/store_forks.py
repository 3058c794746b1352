"""The SQL of making a fork."""

from stenograph.ids import new_id
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


def active_turn(tx: Tx, source_id: int) -> str | None:
    """Return the turn that is being answered, by its public id."""
    found = tx.value(
        "SELECT t.public_id FROM conversations c JOIN turns t ON t.id = c.active_turn_id"
        " WHERE c.id = :id",
        id=source_id,
    )
    return None if found is None else str(found)


def head(tx: Tx, source_id: int) -> tuple[int | None, int]:
    """Return the newest turn that a conversation has itself, and the last position it shows."""
    row = tx.row(
        "SELECT (SELECT t.id FROM turns t WHERE t.conversation_id = c.id"
        "  ORDER BY t.position DESC LIMIT 1), c.next_position - 1 FROM conversations c"
        " WHERE c.id = :id",
        id=source_id,
    )
    assert row is not None
    return row[0], row[1]


def views(tx: Tx, source_id: int, limit: int) -> int:
    """Count, up to a limit, what `copy_overrides` would copy at most."""
    counted = tx.value(
        "SELECT count(*) FROM (SELECT 1 FROM turns WHERE conversation_id = :source"
        "  AND (visibility <> 'visible' OR deleted_at IS NOT NULL) LIMIT :limit) AS own",
        source=source_id,
        limit=limit,
    )
    inherited = tx.value(
        "SELECT count(*) FROM (SELECT 1 FROM turn_overrides WHERE conversation_id = :source"
        "  LIMIT :limit) AS inherited",
        source=source_id,
        limit=limit,
    )
    return int(counted) + int(inherited)


def copy_facts(tx: Tx, source_id: int, child_id: int) -> None:
    """Give a fork what its source has beside its turns: who answers, which runner, who pays, who
    may see it. The source's creator and answerer are named from now on."""
    tx.run(
        "INSERT INTO conversation_access (conversation_id, principal_id, level)"
        " SELECT CAST(:child AS BIGINT), a.principal_id, a.level FROM conversation_access a"
        "  JOIN conversations s ON s.id = a.conversation_id WHERE s.id = :source"
        "  AND a.principal_id <> s.creator_id"
        "  AND (s.answerer_id IS NULL OR a.principal_id <> s.answerer_id)"
        " UNION SELECT CAST(:child AS BIGINT), s.creator_id, 'full'"
        "  FROM conversations s WHERE s.id = :source"
        " UNION SELECT CAST(:child AS BIGINT), s.answerer_id, 'full'"
        "  FROM conversations s WHERE s.id = :source AND s.answerer_id IS NOT NULL",
        child=child_id,
        source=source_id,
    )
    names = ("access_default", "billing_subject", "answerer_id", "default_runner_id")
    sets = ", ".join(
        f"{name} = (SELECT s.{name} FROM conversations s WHERE s.id = :source)" for name in names
    )
    tx.run(f"UPDATE conversations SET {sets} WHERE id = :child", child=child_id, source=source_id)


def copy_attachments(tx: Tx, variant_id: int, child_id: int, copy_id: int) -> None:
    """Give an adopted candidate the files of its original, under ids of their own."""
    found = tx.rows("SELECT id FROM attachments WHERE variant_id = :id ORDER BY id", id=variant_id)
    for (row_id,) in found:
        tx.run(
            "INSERT INTO attachments (public_id, conversation_id, variant_id, filename,"
            " content_type, byte_size, data, created_at) SELECT CAST(:public_id AS TEXT),"
            " CAST(:child AS BIGINT), CAST(:copy AS BIGINT), filename, content_type, byte_size,"
            " data, created_at FROM attachments WHERE id = :id",
            public_id=new_id(),
            child=child_id,
            copy=copy_id,
            id=row_id,
        )


def run_pruned_at(tx: Tx, variant_id: int) -> int | None:
    """Return when the details of a candidate's run were deleted."""
    found = tx.value("SELECT details_pruned_at FROM runs WHERE variant_id = :id", id=variant_id)
    return None if found is None else int(found)


def is_pruned(tx: Tx, child_id: int) -> bool:
    """Tell whether the details of the candidate that a fork came from were deleted."""
    return bool(
        tx.value(
            "SELECT 1 FROM conversations c JOIN variants v ON v.id = c.source_variant_id"
            " LEFT JOIN runs r ON r.variant_id = v.id WHERE c.id = :id"
            " AND (v.details_pruned_at IS NOT NULL OR r.details_pruned_at IS NOT NULL)",
            id=child_id,
        )
    )


def references(tx: Tx, conversation_id: int) -> set[int]:
    """Return the turns of a side that are snapshots of what was under way."""
    rows = tx.rows(
        "SELECT t.id FROM turns t JOIN variants v ON v.id = t.active_variant_id"
        " JOIN variant_details d ON d.variant_id = v.id"
        " WHERE t.conversation_id = :id AND v.source = 'fork' AND d.reference IS NOT NULL",
        id=conversation_id,
    )
    return {row[0] for row in rows}


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
