"""The SQL of the integrity check: each rule finds the rows that break it.

The first column of a rule's SELECT is the id of the broken row in the rule's table (for `sessions`
and the detail tables: of the conversation, task, … they belong to).
"""

from collections.abc import Iterator
from dataclasses import dataclass

from stenograph.storage.database import Tx

_SETTLED = "('completed', 'failed', 'canceled', 'timed_out')"
_SETTLED_RUN = "('completed', 'canceled')"
_SETTLED_TASK = "('completed', 'failed', 'canceled', 'timed_out', 'uncertain', 'skipped')"


@dataclass(frozen=True, slots=True)
class Rule:
    """What no row may be: `sql` finds those that are, `sentence` says so to a person."""

    table: str
    sentence: str
    sql: str


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
    ("sessions", "mode", "standard ephemeral"),
    ("sessions", "status", "running exit error cancelled suspended"),
)

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
    ("events", "id", "payload"),
)

_OWNERS = (
    Rule(
        "turns",
        "Its active candidate belongs to another turn.",
        "SELECT t.id FROM turns t JOIN variants v ON v.id = t.active_variant_id"
        " WHERE v.turn_id <> t.id",
    ),
    Rule(
        "turns",
        "It has no active candidate.",
        "SELECT id FROM turns WHERE active_variant_id IS NULL",
    ),
    Rule(
        "runs",
        "Its candidate lies in another conversation.",
        "SELECT r.id FROM runs r JOIN variants v ON v.id = r.variant_id"
        " JOIN turns t ON t.id = v.turn_id WHERE r.conversation_id <> t.conversation_id",
    ),
    Rule(
        "tasks",
        "Its selected invocation belongs to another task.",
        "SELECT k.id FROM tasks k JOIN invocations i ON i.id = k.selected_invocation_id"
        " WHERE i.task_id IS NULL OR i.task_id <> k.id",
    ),
    Rule(
        "tasks",
        "Its parent or its round belongs to another run.",
        "SELECT k.id FROM tasks k JOIN tasks o ON o.id = k.parent_id OR o.id = k.round_id"
        " WHERE o.run_id <> k.run_id",
    ),
    Rule(
        "invocations",
        "It belongs to neither a task nor a direct reply, or to both.",
        "SELECT id FROM invocations WHERE (task_id IS NULL) = (variant_id IS NULL)",
    ),
    Rule(
        "steps",
        "Its turn or candidate lies elsewhere than the step.",
        "SELECT s.id FROM steps s JOIN turns t ON t.id = s.turn_id"
        " LEFT JOIN variants v ON v.id = s.variant_id"
        " WHERE t.conversation_id <> s.conversation_id OR v.turn_id <> s.turn_id",
    ),
    Rule(
        "steps",
        "Its model call belongs to another candidate's run.",
        "SELECT s.id FROM steps s JOIN tasks k ON k.id = s.task_id JOIN runs r ON r.id = k.run_id"
        " WHERE s.variant_id IS NULL OR r.variant_id <> s.variant_id",
    ),
    Rule(
        "messages",
        "Its turn or step lies in another conversation.",
        "SELECT m.id FROM messages m LEFT JOIN turns t ON t.id = m.turn_id"
        " LEFT JOIN steps s ON s.id = m.step_id"
        " WHERE t.conversation_id <> m.conversation_id OR s.conversation_id <> m.conversation_id",
    ),
    Rule(
        "sessions",
        "It lies in another organization than its conversation.",
        "SELECT s.conversation_id FROM sessions s JOIN conversations c ON c.id = s.conversation_id"
        " JOIN workspaces w ON w.id = c.workspace_id WHERE w.organization_id <> s.organization_id",
    ),
    Rule(
        "sessions",
        "It and its conversation name different parents.",
        "SELECT s.conversation_id FROM sessions s JOIN conversations c ON c.id = s.conversation_id"
        " WHERE s.parent_conversation_id IS NOT NULL"
        " AND (c.parent_id IS NULL OR c.parent_id <> s.parent_conversation_id)",
    ),
    Rule(
        "conversations",
        "It is a fork, and its line of ancestors does not start at its source.",
        "SELECT c.id FROM conversations c WHERE c.source_id IS NOT NULL AND EXISTS"
        " (SELECT 1 FROM ancestries a WHERE a.conversation_id = c.id AND a.depth = 1"
        "  AND a.ancestor_id <> c.source_id)",
    ),
    Rule(
        "conversations",
        "Its line of ancestors has a gap.",
        "SELECT conversation_id FROM ancestries GROUP BY conversation_id"
        " HAVING count(*) <> max(depth)",
    ),
)

#: Where a conversation's own turns start: behind the last inherited position of a fork.
_FIRST = (
    "coalesce((SELECT a.boundary_position + 1 FROM ancestries a"
    " WHERE a.conversation_id = c.id AND a.depth = 1), 0)"
)

_SEQUENCES = (
    Rule(
        "conversations",
        "The positions of its turns have a gap.",
        "SELECT c.id FROM conversations c JOIN turns t ON t.conversation_id = c.id"
        f" GROUP BY c.id HAVING min(t.position) <> {_FIRST}"
        " OR count(*) <> max(t.position) - min(t.position) + 1",
    ),
    Rule(
        "conversations",
        "Its next turn position is not the one behind its last turn.",
        "SELECT c.id FROM conversations c WHERE c.next_position <> coalesce((SELECT"
        f" max(t.position) + 1 FROM turns t WHERE t.conversation_id = c.id), {_FIRST})",
    ),
    Rule(
        "turns",
        "The positions of its candidates have a gap.",
        "SELECT turn_id FROM variants GROUP BY turn_id"
        " HAVING min(position) <> 0 OR count(*) <> max(position) + 1",
    ),
    Rule(
        "conversations",
        "Its next step position is taken.",
        "SELECT c.id FROM conversations c WHERE c.next_step <= (SELECT"
        " max(s.position) FROM steps s WHERE s.conversation_id = c.id)",
    ),
    Rule(
        "conversations",
        "It is recorded step by step, and a step is missing.",
        "SELECT c.id FROM conversations c JOIN sessions f ON f.conversation_id = c.id"
        " WHERE f.recorded = 1 AND c.next_step - 1 <>"
        " (SELECT count(*) FROM steps s WHERE s.conversation_id = c.id)",
    ),
    Rule(
        "conversations",
        "Its next message cursor is taken.",
        "SELECT c.id FROM conversations c WHERE c.next_cursor <= (SELECT"
        " max(m.cursor) FROM messages m WHERE m.conversation_id = c.id)",
    ),
    Rule(
        "conversations",
        "Its events are not numbered 1, 2, 3 … up to its next number.",
        "SELECT c.id FROM conversations c"
        " LEFT JOIN (SELECT conversation_id, count(*) AS n, min(sequence) AS low,"
        "   max(sequence) AS high FROM events GROUP BY conversation_id) e"
        "  ON e.conversation_id = c.id"
        " WHERE c.next_sequence <> coalesce(e.high, 0) + 1 OR e.low <> 1 OR e.n <> e.high",
    ),
    Rule(
        "runs",
        "The key of its next round is taken.",
        "SELECT r.id FROM runs r JOIN tasks k ON k.run_id = r.id"
        " AND k.key = 'r' || CAST(r.next_round AS TEXT)",
    ),
)

_TOTALS = (
    Rule(
        "conversations",
        "Its usage is not the sum of its receipts.",
        "SELECT c.id FROM conversations c"
        " LEFT JOIN usage_totals u ON u.conversation_id = c.id"
        " LEFT JOIN (SELECT conversation_id, count(*) AS n, sum(prompt_tokens) AS prompt,"
        "   sum(completion_tokens) AS completion, sum(cost_usd) AS cost"
        "   FROM usage_receipts GROUP BY conversation_id) r"
        "  ON r.conversation_id = c.id"
        " WHERE coalesce(u.requests, 0) <> coalesce(r.n, 0)"
        " OR coalesce(u.prompt_tokens, 0) <> coalesce(r.prompt, 0)"
        " OR coalesce(u.completion_tokens, 0) <> coalesce(r.completion, 0)"
        " OR abs(coalesce(u.cost_usd, 0) - coalesce(r.cost, 0))"
        "  > 0.000001 * (1 + abs(coalesce(r.cost, 0)))",
    ),
    Rule(
        "invocations",
        "Two receipts bill it.",
        "SELECT invocation_id FROM usage_receipts WHERE invocation_id IS NOT NULL"
        " GROUP BY invocation_id HAVING count(*) > 1",
    ),
    Rule(
        "usage_receipts",
        "It counts something below zero.",
        "SELECT id FROM usage_receipts WHERE prompt_tokens < 0 OR completion_tokens < 0"
        " OR cached_tokens < 0 OR cache_write_tokens < 0 OR reasoning_tokens < 0 OR cost_usd < 0",
    ),
    Rule(
        "usage_receipts",
        "It names no invocation, and no details were pruned that it could have had.",
        "SELECT u.id FROM usage_receipts u LEFT JOIN runs r ON r.id = u.run_id"
        " LEFT JOIN variants v ON v.id = u.variant_id WHERE u.invocation_id IS NULL"
        " AND (u.run_id IS NOT NULL OR u.variant_id IS NOT NULL)"  # else its turn was deleted
        " AND r.details_pruned_at IS NULL AND v.details_pruned_at IS NULL",
    ),
    Rule(
        "usage_receipts",
        "Its invocation belongs to another run or candidate.",
        "SELECT u.id FROM usage_receipts u JOIN invocations i ON i.id = u.invocation_id"
        " LEFT JOIN tasks k ON k.id = i.task_id"
        " WHERE k.run_id <> u.run_id OR i.variant_id <> u.variant_id",
    ),
    Rule(
        "usage_receipts",
        "Its candidate lies in another conversation.",
        "SELECT u.id FROM usage_receipts u JOIN variants v ON v.id = u.variant_id"
        " JOIN turns t ON t.id = v.turn_id WHERE t.conversation_id <> u.conversation_id",
    ),
)

_FEED = (
    Rule(
        "turns",
        "It has ended, and its session's feed has no reply for it.",
        "SELECT t.id FROM turns t JOIN sessions f ON f.conversation_id = t.conversation_id"
        f" WHERE t.kind = 'direct_reply' AND t.status IN {_SETTLED} AND NOT EXISTS"
        " (SELECT 1 FROM messages m WHERE m.turn_id = t.id AND m.kind = 'reply')",
    ),
    Rule(
        "turns",
        "Its feed has two replies for it.",
        "SELECT turn_id FROM messages WHERE kind = 'reply' AND turn_id IS NOT NULL"
        " GROUP BY conversation_id, turn_id HAVING count(*) > 1",
    ),
)

_STATES = (
    Rule(
        "runs",
        "It has ended, and a task of it has not.",
        f"SELECT r.id FROM runs r WHERE r.status IN {_SETTLED_RUN} AND EXISTS (SELECT 1"
        f" FROM tasks k WHERE k.run_id = r.id AND k.status NOT IN {_SETTLED_TASK})",
    ),
    Rule(
        "runs",
        "Its status and its time of completion contradict each other.",
        f"SELECT id FROM runs WHERE (status IN {_SETTLED_RUN}) = (completed_at IS NULL)",
    ),
    Rule(
        "runs",
        "It has ended, and its candidate has not.",
        "SELECT r.id FROM runs r JOIN variants v ON v.id = r.variant_id"
        f" WHERE r.status IN {_SETTLED_RUN} AND v.status NOT IN {_SETTLED}",
    ),
    Rule(
        "turns",
        "It has ended, and its active candidate has not.",
        "SELECT t.id FROM turns t JOIN variants v ON v.id = t.active_variant_id"
        f" WHERE t.status IN {_SETTLED} AND v.status NOT IN {_SETTLED}",
    ),
    Rule(
        "invocations",
        "It has ended, and its end has no time.",
        f"SELECT id FROM invocations WHERE status IN {_SETTLED} AND terminal_at IS NULL",
    ),
    Rule(
        "sessions",
        "It has ended, and a turn of it is under way.",
        "SELECT f.conversation_id FROM sessions f WHERE f.status IN ('exit', 'error', 'cancelled')"
        " AND EXISTS (SELECT 1 FROM turns t WHERE t.conversation_id = f.conversation_id"
        f" AND t.status NOT IN {_SETTLED})",
    ),
)

#: Candidates whose details were pruned, whichever row says so.
_PRUNED = (
    "(SELECT v.id FROM variants v LEFT JOIN runs r ON r.variant_id = v.id"
    " WHERE v.details_pruned_at IS NOT NULL OR r.details_pruned_at IS NOT NULL)"
)

_REMAINS = (
    Rule(
        "runs",
        "Its details were pruned, and tasks of it are there.",
        "SELECT r.id FROM runs r WHERE r.details_pruned_at IS NOT NULL"
        " AND EXISTS (SELECT 1 FROM tasks k WHERE k.run_id = r.id)",
    ),
    Rule(
        "variants",
        "Its details were pruned, and invocations of it are there.",
        f"SELECT DISTINCT variant_id FROM invocations WHERE variant_id IN {_PRUNED}",
    ),
    Rule(
        "variants",
        "Its details were pruned, and its preface or reasoning is there.",
        "SELECT variant_id FROM variant_details WHERE (preface IS NOT NULL"
        f" OR reasoning IS NOT NULL OR reasoning_trace IS NOT NULL) AND variant_id IN {_PRUNED}",
    ),
    Rule(
        "steps",
        "The details of its turn were pruned, and its content is there.",
        # Which of its files came with a follow-up is kept (`sessions.conversing.steer_rest`).
        "SELECT id FROM steps WHERE ((rest IS NOT NULL AND NOT (part = 'steer'"
        '  AND rest LIKE \'{"extra":{"stenograph":{"input":"%"}}}\' AND length(rest) < 100))'
        " OR (part IN ('agent', 'system') AND (text IS NOT NULL OR task_id IS NOT NULL)))"
        f" AND variant_id IN {_PRUNED}",
    ),
    Rule(
        "originals",
        "Details of its session were pruned, and its bytes are there.",
        "SELECT o.id FROM originals o JOIN imports i ON i.id = o.import_id"
        " WHERE o.compressed IS NOT NULL AND EXISTS (SELECT 1 FROM runs r"
        "  WHERE r.conversation_id = i.conversation_id AND r.details_pruned_at IS NOT NULL)",
    ),
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
    key = "conversation_id" if table == "sessions" else "id"
    return Rule(
        table,
        f"Its {column} is none of: {', '.join(words.split())}.",
        f"SELECT {key} FROM {table} WHERE {column} NOT IN ({listed})",
    )


RULES: tuple[Rule, ...] = (
    *(_dangling(*pointer) for pointer in POINTERS),
    *_OWNERS,
    *_SEQUENCES,
    *_TOTALS,
    *_FEED,
    *(_unknown_word(*column) for column in WORDS),
    *_STATES,
    *_REMAINS,
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
