"""Write `docs/schema.md` and `docs/settings.md` from what the code says: `make docs`."""

import ast
import sqlite3
import tempfile
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

from stenograph import settings
from stenograph.settings import Settings
from stenograph.storage import location, migrate

DOCS = Path(__file__).parent
NOTE = "<!-- Written by `make docs`; do not edit. -->\n\n"


def schema() -> str:
    """Describe every table of a migrated database."""
    with tempfile.TemporaryDirectory() as folder:
        place = location.locate(Path(folder), None)
        location.connect(place).close()
        migrate.upgrade(place)
        connection = sqlite3.connect(place.path)
        try:
            described = "".join(_tables(connection))
        finally:
            connection.close()
    return (
        f"# The schema\n\n{NOTE}Revision {migrate.head()}. Times are whole microseconds since"
        " 1970-01-01T00:00:00Z, flags are 0 or 1, JSON is text. On PostgreSQL `INTEGER PRIMARY"
        " KEY` is an identity column, `BLOB` is `BYTEA`, and all else is the same.\n"
        f"{described}"
    )


def _tables(connection: sqlite3.Connection) -> Iterator[str]:
    tables = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        " AND name <> 'alembic_version' ORDER BY rowid"
    ).fetchall()
    for (table,) in tables:
        targets = {
            row[3]: f"{row[2]}{', deleted with it' if row[6] == 'CASCADE' else ''}"
            for row in connection.execute(f"PRAGMA foreign_key_list({table})")
        }
        yield f"\n## {table}\n\n| column | type | null | refers to |\n|---|---|---|---|\n"
        for _, name, kind, required, default, key in connection.execute(
            f"PRAGMA table_info({table})"
        ):
            null = "" if required or key else "yes"
            shown = f"{kind}{' PRIMARY KEY' if key else ''}"
            shown += f" DEFAULT {default}" if default is not None else ""
            yield f"| {name} | {shown} | {null} | {targets.get(name, '')} |\n"
        yield from _indexes(connection, table)


def _indexes(connection: sqlite3.Connection, table: str) -> Iterator[str]:
    lines = []
    for _, name, unique, origin, partial in connection.execute(f"PRAGMA index_list({table})"):
        if origin == "pk":
            continue
        columns = ", ".join(row[2] for row in connection.execute(f"PRAGMA index_info({name})"))
        where = ""
        if partial:
            (written,) = connection.execute(
                "SELECT sql FROM sqlite_master WHERE name = ?", [name]
            ).fetchone()
            where = " where " + " ".join(written.split(" WHERE ", 1)[1].split())
        lines.append(f"- {'unique' if unique else 'index'} ({columns}){where}\n")
    if lines:
        yield "\n" + "".join(sorted(lines))


def environment() -> str:
    """Describe every setting."""
    said = _sentences()
    rows = []
    for setting in fields(Settings):
        variable = "DATABASE_URL" if setting.name == "database" else setting.name.upper()
        default = "`~/.stenograph`" if setting.name == "data" else f"`{setting.default}`"
        if setting.default is None:
            default = ""
        rows.append(f"| `STENO_{variable}` | {default} | {said[setting.name]} |\n")
    return (
        f"# Settings\n\n{NOTE}Each is read from the environment; an option of the command line"
        " wins over it.\n\n| variable | default | |\n|---|---|---|\n" + "".join(rows)
    )


def _sentences() -> dict[str, str]:
    """Return the `#:` comment above each field of `Settings`."""
    path = Path(settings.__file__)
    lines = path.read_text(encoding="utf-8").splitlines()
    found = {}
    for node in ast.walk(ast.parse("\n".join(lines))):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            first = node.lineno - 1
            while lines[first - 1].strip().startswith("#:"):
                first -= 1
            comment = (
                line.strip().removeprefix("#:").strip() for line in lines[first : node.lineno - 1]
            )
            found[node.target.id] = " ".join(comment)
    return found


if __name__ == "__main__":
    (DOCS / "schema.md").write_text(schema(), encoding="utf-8")
    (DOCS / "settings.md").write_text(environment(), encoding="utf-8")
