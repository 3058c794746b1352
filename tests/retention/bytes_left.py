"""Where words still stand: in the rows of every table, and in the files of the database."""

from pathlib import Path

from stenograph.storage.database import Database
from stenograph.storage.location import Location


def in_tables(database: Database, words: dict[str, str]) -> set[str]:
    """Return the names of the words that a reading of all tables finds."""
    with database.read() as tx:
        if tx.dialect == "sqlite":
            names = tx.rows("SELECT name FROM sqlite_master WHERE type = 'table'")
        else:
            names = tx.rows("SELECT tablename::text FROM pg_tables WHERE schemaname = 'public'")
        found = set()
        for (table,) in names:
            for row in tx.each(f'SELECT * FROM "{table}"'):
                texts = [bytes(v) if isinstance(v, bytes | memoryview) else str(v) for v in row]
                whole = b"\0".join(t if isinstance(t, bytes) else t.encode() for t in texts)
                found |= {name for name, word in words.items() if word.encode() in whole}
    return found


def in_files(database: Database, location: Location, words: dict[str, str]) -> set[str]:
    """Return the names of the words that stand in any file of the database, its logs included."""
    if location.is_postgres:
        with database.read() as tx:
            folder = Path(tx.value("SELECT setting FROM pg_settings WHERE name = 'data_directory'"))
    else:
        folder = location.path.parent
    found: set[str] = set()
    for path in folder.rglob("*"):
        if path.is_file() and not path.name.startswith("postmaster"):
            data = path.read_bytes()
            found |= {name for name, word in words.items() if word.encode() in data}
    return found
