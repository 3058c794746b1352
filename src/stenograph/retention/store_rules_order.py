"""The SQL of the integrity check: what belongs to what, and what has numbers without gaps."""

from stenograph.retention.rule import Rule

OWNERS = (
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

SEQUENCES = (
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
