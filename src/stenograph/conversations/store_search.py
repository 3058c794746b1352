"""The SQL of search: who may be shown what of the documents that an index found."""

from collections.abc import Collection, Sequence

from stenograph.conversations.store import ENTRY, LEVEL
from stenograph.storage.database import Row, Tx, among
from stenograph.storage.search import head, read_head

_ARCHIVED = {
    "exclude": " AND c.archived_at IS NULL",
    "include": "",
    "only": " AND c.archived_at IS NOT NULL",
}


def _shown(archived: str, auxiliary: bool) -> str:
    """The conversations `c` of the workspace that this search looks at and the caller may read."""
    main = "" if auxiliary else " AND c.side = 0 AND c.parent_id IS NULL"
    return (
        f"c.workspace_id = :workspace_id AND c.deleted_at IS NULL AND {LEVEL} <> 'none'"
        f"{_ARCHIVED[archived]}{main}"
    )


def shown(
    tx: Tx, principal_id: int, workspace_id: int, archived: str, auxiliary: bool, limit: int
) -> list[int]:
    """Return up to `limit` of the conversations that a search looks at."""
    rows = tx.rows(
        f"SELECT c.id FROM conversations c{ENTRY} WHERE {_shown(archived, auxiliary)} LIMIT :limit",
        principal_id=principal_id,
        workspace_id=workspace_id,
        limit=limit,
    )
    return [row[0] for row in rows]


def ancestors(tx: Tx, conversation_ids: Collection[int]) -> set[int]:
    """Return the conversations that these were forked from."""
    rows = tx.rows(
        "SELECT DISTINCT ancestor_id FROM ancestries"
        f" WHERE {among('conversation_id', conversation_ids)}"
    )
    return {row[0] for row in rows}


#: A candidate that its turn shows. Whether the turn is shown, each conversation says for itself.
_STANDS = "t.kind <> 'compaction_summary' AND v.deleted_at IS NULL"
_TURN_JOINS = (
    " JOIN turns t ON t.id = d.turn_id AND t.active_variant_id = d.variant_id"
    " JOIN variants v ON v.id = d.variant_id"
)


def sightings(
    tx: Tx,
    principal_id: int,
    workspace_id: int,
    archived: str,
    auxiliary: bool,
    documents: Sequence[int],
) -> list[Row]:
    """Return every place where the caller may see one of these documents.

    Columns: document, conversation's row id, public id and title, turn's public id and position,
    candidate's row id and public id, 1 where the turn is inherited.
    """
    source = (
        "SELECT id, turn_id, variant_id, conversation_id FROM search_documents"
        f" WHERE {among('id', documents)}"
    )
    return _sightings(tx, source, principal_id, workspace_id, archived, auxiliary)


def fresh_sightings(
    tx: Tx,
    principal_id: int,
    workspace_id: int,
    archived: str,
    auxiliary: bool,
    documents: Collection[tuple[int, int | None, int | None, int]],
) -> list[Row]:
    """As `sightings`, of documents that are not there yet: id, turn, candidate, conversation."""
    if not documents:
        return []
    nothing = "CAST(NULL AS BIGINT)"
    values = ", ".join(
        f"({', '.join(nothing if it is None else str(it) for it in one)})" for one in documents
    )
    return _sightings(tx, f"VALUES {values}", principal_id, workspace_id, archived, auxiliary)


def _sightings(
    tx: Tx, source: str, principal_id: int, workspace_id: int, archived: str, auxiliary: bool
) -> list[Row]:
    where = _shown(archived, auxiliary)
    conversation = "d.id, c.id, c.public_id, c.title"
    turn = "t.public_id, t.position, v.id, v.public_id"
    return tx.rows(
        f"WITH d (id, turn_id, variant_id, conversation_id) AS ({source})"
        f" SELECT {conversation}, {turn}, 0 FROM d{_TURN_JOINS}"
        f" JOIN conversations c ON c.id = t.conversation_id{ENTRY}"
        f" WHERE {where} AND {_STANDS} AND t.deleted_at IS NULL AND t.visibility <> 'hidden'"
        f" UNION ALL SELECT {conversation}, {turn}, 1 FROM d{_TURN_JOINS}"
        " JOIN ancestries s ON s.ancestor_id = t.conversation_id"
        "  AND s.boundary_position >= t.position"
        f" JOIN conversations c ON c.id = s.conversation_id{ENTRY}"
        " LEFT JOIN turn_overrides o ON o.conversation_id = c.id AND o.turn_id = t.id"
        f" WHERE {where} AND {_STANDS} AND o.deleted_at IS NULL"
        " AND COALESCE(o.visibility, 'visible') <> 'hidden'"
        f" UNION ALL SELECT {conversation}, NULL, NULL, NULL, NULL, 0 FROM d"
        f" JOIN conversations c ON c.id = d.conversation_id{ENTRY}"
        f" WHERE {where} AND d.turn_id IS NULL",
        principal_id=principal_id,
        workspace_id=workspace_id,
    )


def texts(
    tx: Tx, variant_ids: Collection[int], size: int
) -> dict[int, tuple[str | None, str | None]]:
    """Return prompt and content of candidates, each up to `size` characters."""
    rows = tx.rows(
        f"SELECT v.id, {head(tx.dialect, 'v.prompt')}, {head(tx.dialect, 'v.content')}"
        f" FROM variants v WHERE {among('v.id', variant_ids)}",
        size=size,
    )
    return {row[0]: (read_head(row[1], size), read_head(row[2], size)) for row in rows}


def steers(tx: Tx, variant_ids: Collection[int], size: int) -> dict[int, list[str]]:
    """Return what was said to candidates while they were under way, in order."""
    found: dict[int, list[str]] = {}
    for variant_id, value in tx.rows(
        f"SELECT s.variant_id, {head(tx.dialect, 's.text')} FROM steps s"
        f" WHERE {among('s.variant_id', variant_ids)} AND s.part = 'steer' AND s.text IS NOT NULL"
        " ORDER BY s.id",
        size=size,
    ):
        found.setdefault(variant_id, []).append(read_head(value, size) or "")
    return found
