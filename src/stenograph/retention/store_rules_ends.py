"""The SQL of the integrity check: sums, how things ended, and what pruning leaves."""

from stenograph.retention.rule import SETTLED, SETTLED_RUN, SETTLED_TASK, Rule

TOTALS = (
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

FEED = (
    Rule(
        "turns",
        "It has ended, and its session's feed has no reply for it.",
        "SELECT t.id FROM turns t JOIN sessions f ON f.conversation_id = t.conversation_id"
        f" WHERE t.kind = 'direct_reply' AND t.status IN {SETTLED} AND NOT EXISTS"
        " (SELECT 1 FROM messages m WHERE m.turn_id = t.id AND m.kind = 'reply')",
    ),
    Rule(
        "turns",
        "Its feed has two replies for it.",
        "SELECT turn_id FROM messages WHERE kind = 'reply' AND turn_id IS NOT NULL"
        " GROUP BY conversation_id, turn_id HAVING count(*) > 1",
    ),
)

STATES = (
    Rule(
        "runs",
        "It has ended, and a task of it has not.",
        f"SELECT r.id FROM runs r WHERE r.status IN {SETTLED_RUN} AND EXISTS (SELECT 1"
        f" FROM tasks k WHERE k.run_id = r.id AND k.status NOT IN {SETTLED_TASK})",
    ),
    Rule(
        "runs",
        "Its status and its time of completion contradict each other.",
        f"SELECT id FROM runs WHERE (status IN {SETTLED_RUN}) = (completed_at IS NULL)",
    ),
    Rule(
        "runs",
        "It has ended, and its candidate has not.",
        "SELECT r.id FROM runs r JOIN variants v ON v.id = r.variant_id"
        f" WHERE r.status IN {SETTLED_RUN} AND v.status NOT IN {SETTLED}",
    ),
    Rule(
        "turns",
        "It has ended, and its active candidate has not.",
        "SELECT t.id FROM turns t JOIN variants v ON v.id = t.active_variant_id"
        f" WHERE t.status IN {SETTLED} AND v.status NOT IN {SETTLED}",
    ),
    Rule(
        "invocations",
        "It has ended, and its end has no time.",
        f"SELECT id FROM invocations WHERE status IN {SETTLED} AND terminal_at IS NULL",
    ),
    Rule(
        "sessions",
        "It has ended, and a turn of it is under way.",
        "SELECT f.conversation_id FROM sessions f WHERE f.status IN ('exit', 'error', 'cancelled')"
        " AND EXISTS (SELECT 1 FROM turns t WHERE t.conversation_id = f.conversation_id"
        f" AND t.status NOT IN {SETTLED})",
    ),
)

#: Candidates whose details were pruned, whichever row says so.
_PRUNED = (
    "(SELECT v.id FROM variants v LEFT JOIN runs r ON r.variant_id = v.id"
    " WHERE v.details_pruned_at IS NOT NULL OR r.details_pruned_at IS NOT NULL)"
)

REMAINS = (
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
