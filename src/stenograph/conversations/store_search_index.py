"""The SQL of the search index: what has changed, what is written for it."""

from collections.abc import Collection, Iterable, Sequence

from stenograph.storage.database import Row, Tx, among
from stenograph.storage.search import head, read_head, read_terms

COLUMNS = ("id", "workspace_id", "conversation_id", "turn_id", "variant_id", "terms")


def last_change(tx: Tx) -> int | None:
    """Return the newest change that the index does not know yet."""
    found = tx.value("SELECT max(id) FROM search_changes")
    return None if found is None else int(found)


def changes(tx: Tx, upto: int, limit: int) -> list[Row]:
    """Return the oldest changes that the index does not know yet: id, turn, conversation."""
    return tx.rows(
        "SELECT id, turn_id, conversation_id FROM search_changes WHERE id <= :upto"
        " ORDER BY id LIMIT :limit",
        upto=upto,
        limit=limit,
    )


def changed(tx: Tx, workspace_id: int, limit: int) -> list[Row]:
    """Return what has changed in a workspace and the index does not know yet: turn, conversation
    (of a title)."""
    return tx.rows(
        "SELECT DISTINCT s.turn_id, s.conversation_id FROM search_changes s"
        " LEFT JOIN turns t ON t.id = s.turn_id"
        " JOIN conversations c ON c.id = COALESCE(t.conversation_id, s.conversation_id)"
        " WHERE c.workspace_id = :workspace_id LIMIT :limit",
        workspace_id=workspace_id,
        limit=limit,
    )


def take_changes(tx: Tx, ids: Collection[int]) -> list[Row]:
    """Delete changes; returns turn and conversation of those that were still there."""
    return tx.rows(
        f"DELETE FROM search_changes WHERE {among('id', ids)} RETURNING turn_id, conversation_id"
    )


def turns(tx: Tx, turn_ids: Collection[int], size: int) -> list[Row]:
    """Return what is searched of turns.

    Columns: turn's row id and public id, conversation, workspace, active candidate, prompt,
    content. Texts have up to `size` characters.
    """
    rows = tx.rows(
        "SELECT t.id, t.public_id, c.id, c.workspace_id, v.id,"
        f" {head(tx.dialect, 'v.prompt')}, {head(tx.dialect, 'v.content')}"
        " FROM turns t JOIN conversations c ON c.id = t.conversation_id"
        " JOIN variants v ON v.id = t.active_variant_id"
        f" WHERE {among('t.id', turn_ids)} AND t.kind <> 'compaction_summary' ORDER BY t.id",
        size=size,
    )
    return [(*row[:5], read_head(row[5], size), read_head(row[6], size)) for row in rows]


def titles(tx: Tx, conversation_ids: Collection[int], size: int) -> list[Row]:
    """Return public id, row id, workspace and title of the conversations that have one."""
    rows = tx.rows(
        f"SELECT c.public_id, c.id, c.workspace_id, {head(tx.dialect, 'c.title')}"
        f" FROM conversations c WHERE {among('c.id', conversation_ids)}"
        " AND c.title IS NOT NULL ORDER BY c.id",
        size=size,
    )
    return [(*row[:3], read_head(row[3], size)) for row in rows]


def documents(tx: Tx, turn_ids: Collection[int], conversation_ids: Collection[int]) -> list[Row]:
    """Return the documents of turns and of titles: id, conversation, turn, candidate, a set of
    terms."""
    rows = tx.rows(
        "SELECT id, conversation_id, turn_id, variant_id, CAST(terms AS TEXT)"
        f" FROM search_documents WHERE {among('turn_id', turn_ids)}"
        f" OR (turn_id IS NULL AND {among('conversation_id', conversation_ids)})"
    )
    return [(*row[:4], read_terms(tx.dialect, row[4])) for row in rows]


def taken(tx: Tx, ids: Collection[int]) -> set[int]:
    """Return which of these ids documents have."""
    rows = tx.rows(f"SELECT id FROM search_documents WHERE {among('id', ids)}")
    return {row[0] for row in rows}


def remove(tx: Tx, ids: Collection[int]) -> None:
    """Delete documents."""
    if ids:
        tx.run(f"DELETE FROM search_documents WHERE {among('id', ids)}")


def insert(tx: Tx, rows: Iterable[Row]) -> None:
    """Write documents, their terms with spaces between them."""
    tx.insert_many("search_documents", COLUMNS, rows)


def note_all(tx: Tx) -> None:
    """Take everything for changed: what can be searched, and what documents there are."""
    tx.run(
        "INSERT INTO search_changes (turn_id) SELECT id FROM turns"
        " WHERE active_variant_id IS NOT NULL UNION SELECT turn_id FROM search_documents"
        " WHERE turn_id IS NOT NULL"
    )
    tx.run(
        "INSERT INTO search_changes (conversation_id) SELECT id FROM conversations"
        " WHERE title IS NOT NULL UNION SELECT conversation_id FROM search_documents"
        " WHERE turn_id IS NULL"
    )


def pending(tx: Tx, turn_ids: Sequence[int], conversation_ids: Sequence[int]) -> list[Row]:
    """Return turn and conversation of the changes that name one of these."""
    return tx.rows(
        f"SELECT turn_id, conversation_id FROM search_changes WHERE {among('turn_id', turn_ids)}"
        f" OR {among('conversation_id', conversation_ids)}"
    )


def page_of(tx: Tx, table: str, after: int, limit: int) -> list[int]:
    """Return the next rows of a table by id."""
    rows = tx.rows(
        f"SELECT id FROM {table} WHERE id > :after ORDER BY id LIMIT :limit",
        after=after,
        limit=limit,
    )
    return [row[0] for row in rows]


def by_workspace(tx: Tx) -> list[Row]:
    """Return each workspace that has documents, and how many."""
    return tx.rows(
        "SELECT workspace_id, count(*) FROM search_documents GROUP BY workspace_id"
        " ORDER BY workspace_id"
    )


def orphans(tx: Tx) -> list[int]:
    """Return the documents of turns and titles that are not there."""
    rows = tx.rows(
        "SELECT d.id FROM search_documents d LEFT JOIN turns t ON t.id = d.turn_id"
        " LEFT JOIN conversations c ON c.id = d.conversation_id"
        " WHERE (d.turn_id IS NOT NULL AND t.id IS NULL) OR c.id IS NULL ORDER BY d.id"
    )
    return [row[0] for row in rows]
