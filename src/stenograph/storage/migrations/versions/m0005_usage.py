"""What each conversation's model calls took, added up as their receipts come and go; indexes for
lists that hold few of many conversations, for what waits, and for what a deletion looks through.

The database itself keeps the sums, so that whoever writes a receipt cannot forget them
(docs/decisions/0050).
"""

from alembic import op

from stenograph.storage.migrations import ddl

revision = "0005"
down_revision = "0003"

_TABLES = """
CREATE TABLE usage_totals (
  conversation_id {key} REFERENCES conversations (id) ON DELETE CASCADE,
  requests BIGINT NOT NULL,
  prompt_tokens BIGINT NOT NULL,
  cached_tokens BIGINT NOT NULL,
  cache_write_tokens BIGINT NOT NULL,
  completion_tokens BIGINT NOT NULL,
  reasoning_tokens BIGINT NOT NULL,
  cost_usd DOUBLE PRECISION NOT NULL,
  uncosted BIGINT NOT NULL
);

CREATE INDEX conversations_archived ON conversations (workspace_id, id)
  WHERE archived_at IS NOT NULL;
CREATE INDEX conversations_sides ON conversations (workspace_id, id) WHERE side = 1;
CREATE INDEX conversations_source ON conversations (source_id) WHERE source_id IS NOT NULL;
CREATE INDEX inputs_waiting ON inputs (conversation_id, id) WHERE consumed_at IS NULL;
CREATE INDEX turns_input ON turns (input_id) WHERE input_id IS NOT NULL;
CREATE INDEX variants_unsettled ON variants (turn_id) WHERE status IN ('pending', 'running');
CREATE INDEX runs_live ON runs (conversation_id) WHERE status NOT IN ('completed', 'canceled');
CREATE INDEX tasks_child ON tasks (child_conversation_id) WHERE child_conversation_id IS NOT NULL;
"""

_TOKENS = (
    "prompt_tokens", "cached_tokens", "cache_write_tokens", "completion_tokens", "reasoning_tokens",
)  # fmt: skip
_SUMS = (*_TOKENS, "cost_usd")
_COLUMNS = ("conversation_id", "requests", *_SUMS, "uncosted")


def _totals(source: str) -> str:
    """Add up receipts by conversation, in the order of `_COLUMNS`."""
    sums = ", ".join(f"coalesce(sum({name}), 0)" for name in _SUMS)
    return (
        f"SELECT conversation_id, count(*), {sums}, count(*) - count(cost_usd)"
        f" FROM {source} GROUP BY conversation_id"
    )


def _upsert(values: str) -> str:
    added = ", ".join(f"{name} = usage_totals.{name} + excluded.{name}" for name in _COLUMNS[1:])
    return (
        f"INSERT INTO usage_totals ({', '.join(_COLUMNS)}) {values}"
        f" ON CONFLICT (conversation_id) DO UPDATE SET {added}"
    )


def _sqlite() -> list[str]:
    one = ", ".join(f"coalesce(new.{name}, 0)" for name in _SUMS)
    less = ", ".join(f"{name} = {name} - coalesce(old.{name}, 0)" for name in _SUMS)
    add = _upsert(f"VALUES (new.conversation_id, 1, {one}, new.cost_usd IS NULL)")
    take = (
        f"UPDATE usage_totals SET requests = requests - 1, {less},"
        " uncosted = uncosted - (old.cost_usd IS NULL) WHERE conversation_id = old.conversation_id"
    )
    counted = ", ".join(("conversation_id", *_SUMS))
    return [
        f"CREATE TRIGGER usage_receipts_added AFTER INSERT ON usage_receipts BEGIN {add}; END",
        f"CREATE TRIGGER usage_receipts_taken AFTER DELETE ON usage_receipts BEGIN {take}; END",
        f"CREATE TRIGGER usage_receipts_changed AFTER UPDATE OF {counted} ON usage_receipts"
        f" BEGIN {take}; {add}; END",
    ]


def _postgres() -> list[str]:
    less = ", ".join(f"{name} = u.{name} - t.{name}" for name in _COLUMNS[1:])
    # Sorted, so that two never wait for each other crosswise.
    add = _upsert(_totals("added") + " ORDER BY conversation_id")
    take = (
        f"UPDATE usage_totals u SET {less} FROM ({_totals('taken')}) AS t ({', '.join(_COLUMNS)})"
        " WHERE u.conversation_id = t.conversation_id"
    )
    functions = [
        f"CREATE FUNCTION usage_receipts_{name}() RETURNS trigger LANGUAGE plpgsql AS"
        f" $$ BEGIN {statement}; RETURN NULL; END $$"
        for name, statement in (("added", add), ("taken", take))
    ]
    # Once a statement, however many receipts it writes. One that changes receipts takes and adds.
    triggers = [
        f"CREATE TRIGGER usage_receipts_{done}_{name} AFTER {done.upper()} ON usage_receipts"
        f" REFERENCING {rows} TABLE AS {name}"
        f" FOR EACH STATEMENT EXECUTE FUNCTION usage_receipts_{name}()"
        for done, rows, name in (
            ("insert", "NEW", "added"),
            ("delete", "OLD", "taken"),
            ("update", "NEW", "added"),
            ("update", "OLD", "taken"),
        )
    ]
    return functions + triggers


def upgrade() -> None:
    ddl.execute(_TABLES)
    op.execute(f"INSERT INTO usage_totals ({', '.join(_COLUMNS)}) {_totals('usage_receipts')}")
    triggers = _postgres if op.get_bind().dialect.name == "postgresql" else _sqlite
    for statement in triggers():
        op.execute(statement)
