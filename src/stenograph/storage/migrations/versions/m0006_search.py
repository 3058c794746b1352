"""The index that search reads, and the queue of what has changed since it was written.

`search_documents` holds the terms of one field of one turn, or of a title; `terms` has an index of
the database's own kind over it. Triggers note what changed in `search_changes`, whoever writes;
`conversations/search_index.py` makes terms of it (docs/decisions/0042-search.md).
"""

from alembic import op

from stenograph.storage.migrations import ddl

revision = "0006"
down_revision = "0005"

#: No foreign keys: whoever writes the index would wait for those who append to a conversation.
_TABLES = """
CREATE TABLE search_changes (
  id {{serial}},
  turn_id BIGINT,
  conversation_id BIGINT
);

CREATE TABLE search_documents (
  id {{key}},
  workspace_id BIGINT NOT NULL,
  conversation_id BIGINT NOT NULL,
  turn_id BIGINT,
  variant_id BIGINT,
  terms {terms} NOT NULL
);
CREATE INDEX search_documents_turn ON search_documents (turn_id) WHERE turn_id IS NOT NULL;
CREATE INDEX search_documents_title ON search_documents (conversation_id) WHERE turn_id IS NULL;
"""

#: FTS5 splits at spaces and folds nothing: the terms were made before they came here.
_SQLITE_INDEX = """
CREATE VIRTUAL TABLE search_index USING fts5 (
  terms, content = 'search_documents', content_rowid = 'id',
  tokenize = "ascii tokenchars '_'", detail = none, columnsize = 0
)
"""
_SQLITE_UPKEEP = {
    "INSERT": ("NEW",),
    "DELETE": ("OLD",),
    "UPDATE OF terms": ("OLD", "NEW"),
}
_INDEXED = {
    "NEW": "INSERT INTO search_index (rowid, terms) VALUES (NEW.id, NEW.terms);",
    "OLD": "INSERT INTO search_index (search_index, rowid, terms)"
    " VALUES ('delete', OLD.id, OLD.terms);",
}

#: A short list of pending entries, for every search reads it through.
_POSTGRES_INDEX = """
CREATE INDEX search_documents_newest ON search_documents (workspace_id, id);
CREATE INDEX search_index ON search_documents USING gin (terms)
  WITH (gin_pending_list_limit = 256)
"""

_NOTE_TURN = "INSERT INTO search_changes (turn_id) VALUES ({});"
_NOTE_TITLE = "INSERT INTO search_changes (conversation_id) VALUES ({});"
#: Table, event, condition, what to do. `IS DISTINCT FROM` is SQLite's `IS NOT`.
_TRIGGERS = (
    ("turns", "INSERT", "NEW.active_variant_id IS NOT NULL", _NOTE_TURN.format("NEW.id")),
    (
        "turns",
        "UPDATE OF active_variant_id",
        "NEW.active_variant_id IS DISTINCT FROM OLD.active_variant_id",
        _NOTE_TURN.format("NEW.id"),
    ),
    (
        "turns",
        "DELETE",
        "OLD.id IS NOT NULL",
        "DELETE FROM search_documents WHERE turn_id = OLD.id; " + _NOTE_TURN.format("OLD.id"),
    ),
    (
        "variants",
        "UPDATE OF prompt, content",
        "NEW.prompt IS DISTINCT FROM OLD.prompt OR NEW.content IS DISTINCT FROM OLD.content",
        _NOTE_TURN.format("NEW.turn_id"),
    ),
    ("steps", "INSERT", "NEW.part = 'steer'", _NOTE_TURN.format("NEW.turn_id")),
    (
        "steps",
        "UPDATE OF part, turn_id, variant_id, text",
        "NEW.part = 'steer' OR OLD.part = 'steer'",
        _NOTE_TURN.format("NEW.turn_id") + " " + _NOTE_TURN.format("OLD.turn_id"),
    ),
    ("steps", "DELETE", "OLD.part = 'steer'", _NOTE_TURN.format("OLD.turn_id")),
    ("conversations", "INSERT", "NEW.title IS NOT NULL", _NOTE_TITLE.format("NEW.id")),
    (
        "conversations",
        "UPDATE OF title",
        "NEW.title IS DISTINCT FROM OLD.title",
        _NOTE_TITLE.format("NEW.id"),
    ),
    (
        "conversations",
        "DELETE",
        "OLD.id IS NOT NULL",
        "DELETE FROM search_documents WHERE turn_id IS NULL AND conversation_id = OLD.id; "
        + _NOTE_TITLE.format("OLD.id"),
    ),
)

#: What was there before there was an index.
_BACKLOG = """
INSERT INTO search_changes (turn_id)
  SELECT id FROM turns WHERE active_variant_id IS NOT NULL ORDER BY id;
INSERT INTO search_changes (conversation_id)
  SELECT id FROM conversations WHERE title IS NOT NULL ORDER BY id
"""


def upgrade() -> None:
    postgres = op.get_bind().dialect.name == "postgresql"
    ddl.execute(_TABLES.format(terms="TSVECTOR" if postgres else "TEXT"))
    ddl.execute(_POSTGRES_INDEX if postgres else _SQLITE_INDEX)
    for table, event, condition, act in _TRIGGERS:
        name = f"search_{table}_{event.split()[0].lower()}"
        (_postgres_trigger if postgres else _sqlite_trigger)(name, table, event, condition, act)
    if not postgres:
        for event, sides in _SQLITE_UPKEEP.items():
            name = f"search_index_{event.split()[0].lower()}"
            act = " ".join(_INDEXED[side] for side in sides)
            _sqlite_trigger(name, "search_documents", event, "1", act)
    ddl.execute(_BACKLOG)


def _sqlite_trigger(name: str, table: str, event: str, condition: str, act: str) -> None:
    condition = condition.replace("IS DISTINCT FROM", "IS NOT")
    op.execute(f"CREATE TRIGGER {name} AFTER {event} ON {table} WHEN {condition} BEGIN {act} END")


def _postgres_trigger(name: str, table: str, event: str, condition: str, act: str) -> None:
    op.execute(
        f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS"
        f" $$ BEGIN {act} RETURN NULL; END $$"
    )
    op.execute(
        f"CREATE TRIGGER {name} AFTER {event} ON {table} FOR EACH ROW"
        f" WHEN ({condition}) EXECUTE FUNCTION {name}()"
    )
