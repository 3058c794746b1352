"""Full-text search, where the databases differ: FTS5 here, `tsvector` with GIN there.

Both are given terms that were made before (`conversations/words.py`): letters, digits and marks,
written with spaces between them. Neither splits, folds or stems anything itself.
"""

from collections.abc import Collection, Sequence
from typing import Any

from stenograph.storage.database import Dialect, Tx

#: PostgreSQL looks through as many of the newest documents before it asks the index, whose answer
#: is in no order: a word that stands everywhere would have it sort everything.
_NEWEST = 500
#: As a size for `head`: a text whole. SQLite counts the bytes that this may take in 32 bits.
WHOLE = 2**29 - 1


def newest(
    tx: Tx,
    workspace_id: int,
    required: Sequence[str],
    among: Collection[str],
    below: int,
    limit: int,
) -> list[int]:
    """Return the highest ids below a bound of documents with all `required` terms, descending.

    `among`: one of these too, unless it is empty.
    """
    asked = {
        "asked": _expression(tx.dialect, required, sorted(among)),
        "below": below,
        "limit": limit,
    }
    if tx.dialect == "sqlite":
        rows = tx.rows(
            "SELECT rowid FROM search_index WHERE search_index MATCH :asked AND rowid < :below"
            " ORDER BY rowid DESC LIMIT :limit",
            **asked,
        )
        return [row[0] for row in rows]
    rows = tx.rows(
        "SELECT id FROM (SELECT id, terms FROM search_documents"
        "  WHERE workspace_id = :workspace_id AND id < :below ORDER BY id DESC LIMIT :newest) AS n"
        " WHERE terms @@ CAST(:asked AS tsquery) ORDER BY id DESC LIMIT :limit",
        workspace_id=workspace_id,
        newest=_NEWEST,
        **asked,
    )
    if len(rows) < limit:
        rows = tx.rows(
            "WITH found AS MATERIALIZED (SELECT id FROM search_documents"
            "  WHERE terms @@ CAST(:asked AS tsquery))"
            " SELECT id FROM found WHERE id < :below ORDER BY id DESC LIMIT :limit",
            **asked,
        )
    return [row[0] for row in rows]


def _expression(dialect: Dialect, required: Sequence[str], among: Sequence[str]) -> str:
    quote, both, either = ('"', " AND ", " OR ") if dialect == "sqlite" else ("'", " & ", " | ")
    parts = [f"{quote}{term}{quote}" for term in required]
    if among:
        parts.append(f"({either.join(f'{quote}{term}{quote}' for term in among)})")
    return both.join(parts)


def read_terms(dialect: Dialect, text: str) -> frozenset[str]:
    """Read `CAST(terms AS TEXT)`."""
    if dialect == "sqlite":
        return frozenset(text.split())
    return frozenset(text[1:-1].split("' '") if text else ())


def head(dialect: Dialect, column: str) -> str:
    """Write the beginning of a text, up to `:size` characters or a little more; see `read_head`."""
    if dialect == "sqlite":  # its `substr` of a text ends at a NUL
        return f"substr(CAST({column} AS BLOB), 1, 4 * :size)"
    return f"substr({column}, 1, 2 * :size)"  # a NUL is kept as two characters


def read_head(value: Any, size: int) -> str | None:
    """Read what `head` selected."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "ignore")
    return None if value is None else str(value)[:size]


def rebuild(tx: Tx) -> None:
    """Have the database write its index over the documents anew."""
    if tx.dialect == "sqlite":
        tx.run("INSERT INTO search_index (search_index) VALUES ('rebuild')")
    else:
        tx.run("REINDEX INDEX search_index")


def indexed(tx: Tx, term: str) -> int:
    """Count the documents that the database's index knows with a term."""
    matches = (
        "search_index WHERE search_index MATCH :asked"
        if tx.dialect == "sqlite"
        else "search_documents WHERE terms @@ CAST(:asked AS tsquery)"
    )
    asked = _expression(tx.dialect, [term], [])
    return int(tx.value(f"SELECT count(*) FROM {matches}", asked=asked))
