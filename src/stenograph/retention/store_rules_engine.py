"""The SQL of the integrity check: what agents that run here need besides."""

from stenograph.retention.rule import Rule

#: Tables whose rows somebody made for an organization.
_MADE = ("devices", "enrollment_tickets", "mcp_servers", "provider_credentials")


def _of_another(table: str) -> Rule:
    return Rule(
        table,
        "Who made it belongs to another organization.",
        f"SELECT x.id FROM {table} x JOIN principals p ON p.id = x.creator_id"
        " WHERE p.organization_id <> x.organization_id",
    )


ENGINE = (
    *map(_of_another, _MADE),
    Rule(
        "devices",
        "Its key belongs to another organization.",
        "SELECT d.id FROM devices d JOIN credentials k ON k.id = d.credential_id"
        " WHERE k.organization_id <> d.organization_id",
    ),
    Rule(
        "session_targets",
        "Its worker belongs to another organization.",
        "SELECT t.conversation_id FROM session_targets t JOIN devices d ON d.id = t.device_id"
        " JOIN conversations c ON c.id = t.conversation_id"
        " JOIN workspaces w ON w.id = c.workspace_id WHERE w.organization_id <> d.organization_id",
    ),
    Rule(
        "session_targets",
        "Its folder is one of another worker.",
        "SELECT t.conversation_id FROM session_targets t JOIN device_roots r ON r.id = t.root_id"
        " WHERE t.device_id IS NULL OR r.device_id <> t.device_id",
    ),
    Rule(
        "dispatches",
        "Its call belongs to another conversation.",
        "SELECT d.id FROM dispatches d JOIN tasks k ON k.id = d.task_id"
        " JOIN runs r ON r.id = k.run_id WHERE r.conversation_id IS NULL"
        " OR r.conversation_id <> d.conversation_id",
    ),
    Rule(
        "dispatches",
        "It or its worker belongs to another organization than its conversation.",
        "SELECT d.id FROM dispatches d JOIN conversations c ON c.id = d.conversation_id"
        " JOIN workspaces w ON w.id = c.workspace_id LEFT JOIN devices v ON v.id = d.device_id"
        " WHERE w.organization_id <> d.organization_id OR v.organization_id <> d.organization_id",
    ),
    Rule(
        "dispatches",
        "Its status, its lease and its times contradict each other.",
        "SELECT id FROM dispatches WHERE (status IN ('queued', 'claimed')) = (settled_at IS NOT"
        " NULL) OR (status = 'claimed' AND (claim IS NULL OR lease_expires_at IS NULL))"
        " OR (status = 'queued' AND claim IS NOT NULL)",
    ),
    Rule(
        "approvals",
        "Its decision has no moment, or none was made then.",
        "SELECT task_id FROM approvals WHERE (decision IS NULL) <> (decided_at IS NULL)",
    ),
    Rule(
        "tasks",
        "It waits for a person, and nobody was asked.",
        "SELECT k.id FROM tasks k WHERE k.status = 'needs_approval'"
        " AND NOT EXISTS (SELECT 1 FROM approvals a WHERE a.task_id = k.id)",
    ),
    Rule(
        "attachments",
        "Its size is not that of its bytes.",
        "SELECT id FROM attachments WHERE byte_size <> length(data)",
    ),
    Rule(
        "attachments",
        "Its input or its candidate lies in another conversation.",
        "SELECT a.id FROM attachments a LEFT JOIN inputs n ON n.id = a.input_id"
        " LEFT JOIN variants v ON v.id = a.variant_id LEFT JOIN turns t ON t.id = v.turn_id"
        " WHERE n.conversation_id <> a.conversation_id OR t.conversation_id <> a.conversation_id",
    ),
    Rule(
        "mcp_servers",
        "It has both an address and a command, or neither.",
        "SELECT id FROM mcp_servers WHERE (url IS NULL) = (command IS NULL)",
    ),
    Rule(
        "ephemeral_workspaces",
        "It lies in itself, or its organization does not say in what.",
        "SELECT e.organization_id FROM ephemeral_workspaces e"
        " JOIN organizations o ON o.id = e.organization_id WHERE e.parent_id = e.organization_id"
        " OR o.parent_id IS NULL OR o.parent_id <> e.parent_id",
    ),
    Rule(
        "ephemeral_workspaces",
        "It was retired or had its session, and its key is there.",
        "SELECT organization_id FROM ephemeral_workspaces WHERE ciphertext IS NOT NULL"
        " AND (retired_at IS NOT NULL OR conversation_id IS NOT NULL)",
    ),
)
