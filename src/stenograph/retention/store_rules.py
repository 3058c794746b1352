"""The SQL of the integrity check: pointers, words, JSON; and how rules are asked."""

from collections.abc import Iterator

from stenograph.retention.rule import Rule
from stenograph.retention.store_rules_ends import FEED, REMAINS, STATES, TOTALS
from stenograph.retention.store_rules_engine import ENGINE
from stenograph.retention.store_rules_order import OWNERS, SEQUENCES
from stenograph.storage.database import Tx

#: Pointers that the schema does not enforce, because they point ahead or may outlive their target.
POINTERS = (
    ("conversations", "source_turn_id", "turns"),
    ("conversations", "active_turn_id", "turns"),
    ("inputs", "turn_id", "turns"),
    ("turns", "active_variant_id", "variants"),
    ("variants", "invocation_id", "invocations"),
    ("tasks", "parent_id", "tasks"),
    ("tasks", "round_id", "tasks"),
    ("tasks", "selected_invocation_id", "invocations"),
    ("tasks", "child_conversation_id", "conversations"),
    ("usage_receipts", "run_id", "runs"),
    ("usage_receipts", "variant_id", "variants"),
    ("usage_receipts", "invocation_id", "invocations"),
    ("steps", "task_id", "tasks"),
    ("events", "turn_id", "turns"),
    ("events", "variant_id", "variants"),
    ("events", "run_id", "runs"),
    ("events", "task_id", "tasks"),
    ("events", "step_id", "steps"),
)

#: The words that a column may hold (agent-api.md 2 and 4.2, reason-api.md 3).
WORDS = (
    ("turns", "status", "pending running completed failed canceled timed_out"),
    ("turns", "visibility", "visible excluded_from_context hidden"),
    ("variants", "status", "pending running completed failed canceled timed_out"),
    (
        "runs",
        "status",
        "pending running paused needs_attention canceling completed canceled",
    ),
    ("tasks", "kind", "model_task tool_task await_task join_task delegation_task"),
    (
        "tasks",
        "status",
        "queued needs_approval running dispatched awaiting_input"
        " completed failed canceled timed_out uncertain skipped",
    ),
    ("tasks", "transcript_visibility", "visible collapsed hidden"),
    ("invocations", "status", "queued running completed failed canceled timed_out"),
    ("steps", "part", "system prompt steer agent"),
    ("messages", "kind", "prompt message reply"),
    ("inputs", "state", "pending steering blocked consumed"),
    ("devices", "lifecycle", "ephemeral persistent"),
    ("device_roots", "execution_mode", "host"),
    ("enrollment_tickets", "lifecycle", "ephemeral persistent"),
    ("dispatches", "status", "queued claimed completed failed timed_out uncertain canceled"),
    ("approvals", "decision", "approve deny"),
    ("mcp_servers", "transport", "streamable_http stdio"),
    ("sessions", "mode", "standard ephemeral"),
    ("sessions", "status", "running exit error cancelled suspended"),
)

#: What tables without an `id` are known by.
KEYS = {"sessions": "conversation_id", "approvals": "task_id"}

#: Columns that hold JSON; a reading copies it, so it must be whole.
JSON = (
    ("workspaces", "id", "metadata"),
    ("conversations", "id", "metadata"),
    ("inputs", "id", "options"),
    ("task_details", "task_id", "input"),
    ("task_details", "task_id", "rest"),
    ("invocation_details", "invocation_id", "rest"),
    ("steps", "id", "rest"),
    ("messages", "id", "attachments"),
    ("sessions", "conversation_id", "tags"),
    ("sessions", "conversation_id", "options"),
    ("sessions", "conversation_id", "agent"),
    ("sessions", "conversation_id", "document"),
    ("imports", "id", "report"),
    ("tool_sets", "id", "definitions"),
    ("device_roots", "id", "permissions"),
    ("enrollment_tickets", "id", "roots"),
    ("mcp_servers", "id", "command"),
    ("events", "id", "payload"),
)


def _dangling(table: str, column: str, target: str) -> Rule:
    return Rule(
        table,
        f"Its {column} names a row of {target} that is not there.",
        f"SELECT x.id FROM {table} x WHERE x.{column} IS NOT NULL"
        f" AND NOT EXISTS (SELECT 1 FROM {target} y WHERE y.id = x.{column})",
    )


def _unknown_word(table: str, column: str, words: str) -> Rule:
    listed = ", ".join(f"'{word}'" for word in words.split())
    key = KEYS.get(table, "id")
    return Rule(
        table,
        f"Its {column} is none of: {', '.join(words.split())}.",
        f"SELECT {key} FROM {table} WHERE {column} NOT IN ({listed})",
    )


RULES: tuple[Rule, ...] = (
    *(_dangling(*pointer) for pointer in POINTERS),
    *OWNERS,
    *SEQUENCES,
    *ENGINE,
    *TOTALS,
    *FEED,
    *(_unknown_word(*column) for column in WORDS),
    *STATES,
    *REMAINS,
)


def broken(tx: Tx, rule: Rule) -> list[int]:
    """Return the ids of the rows that break a rule, in order."""
    return sorted(row[0] for row in tx.rows(rule.sql))


def json_values(tx: Tx, table: str, key: str, column: str) -> Iterator[tuple[int, str]]:
    """Return every JSON text of a column, with the id of its row."""
    for row in tx.each(f"SELECT {key}, {column} FROM {table} WHERE {column} IS NOT NULL"):
        yield row[0], row[1]


def originals(tx: Tx) -> Iterator[tuple[int, bytes, int, bytes]]:
    """Return id, digest, size and compressed bytes of every original file that is there."""
    for row in tx.each(
        "SELECT id, digest, size, compressed FROM originals WHERE compressed IS NOT NULL"
    ):
        yield row[0], bytes(row[1]), row[2], bytes(row[3])


def sqlite_faults(tx: Tx) -> Iterator[tuple[str, int, str]]:
    """Return what SQLite itself finds wrong, as table, row id and sentence."""
    for (said,) in tx.rows("PRAGMA integrity_check"):
        if said != "ok":
            yield "the file", 0, f"SQLite says: {said}."
    for table, row_id, target, _ in tx.rows("PRAGMA foreign_key_check"):
        yield table, row_id or 0, f"It names a row of {target} that is not there."
