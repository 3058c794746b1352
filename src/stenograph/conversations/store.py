"""The SQL of workspaces, conversations, who may see them, and their events."""

from collections.abc import Sequence

from stenograph.ids import new_id
from stenograph.storage.database import Row, Tx

_WORKSPACE = (
    "w.id, w.public_id, w.name, w.access_mode, w.state, w.metadata, w.lock_version,"
    " w.archived_at, w.created_at, w.updated_at"
)
#: A living workspace of the caller's organization, which the caller belongs to.
_VISIBLE_WORKSPACE = (
    "w.organization_id = :organization_id AND w.deleted_at IS NULL"
    " AND (w.access_mode = 'account_wide' OR w.owner_id = :principal_id"
    "  OR EXISTS (SELECT 1 FROM workspace_members m"
    "   WHERE m.workspace_id = w.id AND m.principal_id = :principal_id))"
)
#: What the caller may do: creator and answerer everything, else a named entry, else the default.
LEVEL = (
    "CASE WHEN c.creator_id = :principal_id OR c.answerer_id = :principal_id THEN 'full'"
    " ELSE COALESCE(a.level, c.access_default) END"
)
ENTRY = (
    " LEFT JOIN conversation_access a"
    " ON a.conversation_id = c.id AND a.principal_id = :principal_id"
)
_CONVERSATION = (
    f"{LEVEL}, c.id, c.public_id, c.workspace_id, w.state, c.creator_id, c.answerer_id,"
    " EXISTS (SELECT 1 FROM ancestries s WHERE s.conversation_id = c.id), c.side,"
    " c.context_revision, c.active_turn_id, c.next_sequence, c.archived_at"
)


# Workspaces


def workspace(tx: Tx, organization_id: int, principal_id: int, public_id: str) -> Row | None:
    """Find a workspace the principal belongs to."""
    return tx.row(
        f"SELECT {_WORKSPACE} FROM workspaces w"
        f" WHERE w.public_id = :public_id AND {_VISIBLE_WORKSPACE}",
        public_id=public_id,
        organization_id=organization_id,
        principal_id=principal_id,
    )


def workspaces(
    tx: Tx,
    organization_id: int,
    principal_id: int,
    *,
    after: int | None,
    limit: int,
    descending: bool,
) -> list[Row]:
    """List the workspaces the principal belongs to, in order of making or newest first."""
    beyond = "" if after is None else f" AND w.id {'<' if descending else '>'} :after"
    return tx.rows(
        f"SELECT {_WORKSPACE} FROM workspaces w WHERE {_VISIBLE_WORKSPACE}{beyond}"
        f" ORDER BY w.id {'DESC' if descending else 'ASC'} LIMIT :limit",
        organization_id=organization_id,
        principal_id=principal_id,
        limit=limit,
        **({} if after is None else {"after": after}),
    )


def shared_workspace(tx: Tx, organization_id: int, name: str) -> int | None:
    """Return the living workspace of that name that the whole organization sees."""
    found = tx.value(
        "SELECT id FROM workspaces WHERE organization_id = :organization_id AND name = :name"
        " AND access_mode = 'account_wide' AND state = 'active' AND deleted_at IS NULL"
        " ORDER BY id LIMIT 1",
        organization_id=organization_id,
        name=name,
    )
    return None if found is None else int(found)


def workspace_people(tx: Tx, workspace_id: int) -> tuple[Row, Row]:
    """Return owner and creator: public id, handle, kind, display name."""
    row = tx.row(
        "SELECT o.public_id, o.handle, o.kind, o.display_name,"
        " m.public_id, m.handle, m.kind, m.display_name FROM workspaces w"
        " JOIN principals o ON o.id = w.owner_id JOIN principals m ON m.id = w.creator_id"
        " WHERE w.id = :id",
        id=workspace_id,
    )
    assert row is not None
    return row[:4], row[4:]


def add_member(tx: Tx, workspace_id: int, principal_id: int) -> None:
    """Let someone into a workspace; once is enough."""
    tx.run(
        "INSERT INTO workspace_members (workspace_id, principal_id)"
        " VALUES (:workspace_id, :principal_id) ON CONFLICT DO NOTHING",
        workspace_id=workspace_id,
        principal_id=principal_id,
    )


#: Who belongs to the workspace `w`, of the active principals `p` of its organization.
BELONGS = (
    "p.organization_id = w.organization_id AND p.deactivated_at IS NULL"
    " AND (w.access_mode = 'account_wide' OR p.id = w.owner_id"
    "  OR EXISTS (SELECT 1 FROM workspace_members m"
    "   WHERE m.workspace_id = w.id AND m.principal_id = p.id))"
)


def members(tx: Tx, workspace_id: int) -> list[Row]:
    """List who belongs to a workspace: public id, handle, kind, display name."""
    return tx.rows(
        "SELECT p.public_id, p.handle, p.kind, p.display_name FROM workspaces w"
        f" JOIN principals p ON {BELONGS} WHERE w.id = :id ORDER BY p.id",
        id=workspace_id,
    )


# Conversations


def conversation(
    tx: Tx, organization_id: int, principal_id: int, workspace: str, public_id: str
) -> Row | None:
    """Find a conversation the principal may read: its level, then what the verbs look at."""
    return tx.row(
        f"SELECT {_CONVERSATION} FROM workspaces w"
        f" JOIN conversations c ON c.workspace_id = w.id{ENTRY}"
        f" WHERE w.public_id = :workspace AND {_VISIBLE_WORKSPACE}"
        " AND c.public_id = :public_id AND c.deleted_at IS NULL"
        f" AND {LEVEL} <> 'none'",
        workspace=workspace,
        public_id=public_id,
        organization_id=organization_id,
        principal_id=principal_id,
    )


def conversation_of_run(
    tx: Tx, organization_id: int, principal_id: int, workspace: str, run_public_id: str
) -> Row | None:
    """Find a run by way of its conversation: the run's row id, then as `conversation`."""
    return tx.row(
        f"SELECT r.id, {_CONVERSATION} FROM runs r"
        " JOIN variants v ON v.id = r.variant_id JOIN turns t ON t.id = v.turn_id"
        " JOIN conversations c ON c.id = r.conversation_id"
        f" JOIN workspaces w ON w.id = c.workspace_id{ENTRY}"
        f" WHERE r.public_id = :public_id AND w.public_id = :workspace AND {_VISIBLE_WORKSPACE}"
        " AND c.deleted_at IS NULL AND t.deleted_at IS NULL AND v.deleted_at IS NULL"
        f" AND {LEVEL} <> 'none'",
        workspace=workspace,
        public_id=run_public_id,
        organization_id=organization_id,
        principal_id=principal_id,
    )


def lock(tx: Tx, conversation_id: int) -> None:
    """Hold the conversation until the transaction ends: before what is in it, as everywhere."""
    tx.row(f"SELECT id FROM conversations WHERE id = :id{tx.for_update}", id=conversation_id)


def hold(tx: Tx, conversation_id: int) -> Row | None:
    """As `lock`, and return what changes: context revision, active turn, next event, archival.

    None: it was deleted.
    """
    return tx.row(
        "SELECT context_revision, active_turn_id, next_sequence, archived_at FROM conversations"
        f" WHERE id = :id AND deleted_at IS NULL{tx.for_update}",
        id=conversation_id,
    )


def update(tx: Tx, conversation_id: int, **columns: object) -> None:
    """Set columns of a conversation."""
    sets = ", ".join(f"{name} = :{name}" for name in columns)
    tx.run(f"UPDATE conversations SET {sets} WHERE id = :id", id=conversation_id, **columns)


_DOCUMENT = (
    "c.id, c.public_id, c.title, p.public_id, c.archived_at, c.billing_subject, u.public_id,"
    " c.spawn_key, c.label, ft.public_id, fv.public_id, s.public_id, c.side, at.public_id,"
    " c.context_revision, c.last_activity_at, c.created_at, c.updated_at, c.metadata,"
    " c.access_default, c.next_sequence"
)
_DOCUMENT_JOINS = (
    " LEFT JOIN principals p ON p.id = c.answerer_id"
    " LEFT JOIN conversations u ON u.id = c.parent_id"
    " LEFT JOIN conversations s ON s.id = c.source_id"
    " LEFT JOIN turns ft ON ft.id = c.source_turn_id"
    " LEFT JOIN variants fv ON fv.id = c.source_variant_id"
    " LEFT JOIN turns at ON at.id = c.active_turn_id"
)


def add_conversation(tx: Tx, at: int, **columns: object) -> int:
    """Insert a conversation that begins at `at`; what is left out has its usual value."""
    usual = {"public_id": new_id(), "metadata": "{}", "access_default": "full"}
    return tx.insert(
        "conversations", last_activity_at=at, created_at=at, updated_at=at, **(usual | columns)
    )


def document(tx: Tx, conversation_id: int) -> Row:
    """Return a conversation with the public ids of what it points at."""
    row = tx.row(
        f"SELECT {_DOCUMENT} FROM conversations c{_DOCUMENT_JOINS} WHERE c.id = :id",
        id=conversation_id,
    )
    assert row is not None
    return row


#: Which conversations a list holds.
FILTERS = {
    "working": "c.archived_at IS NULL AND c.parent_id IS NULL AND c.side = 0",
    "sides": "c.archived_at IS NULL AND c.parent_id IS NULL AND c.side = 1",
    "archived": "c.archived_at IS NOT NULL AND c.parent_id IS NULL AND c.side = 0",
    "children": "c.parent_id = :parent_id",
}


def conversations(
    tx: Tx,
    principal_id: int,
    workspace_id: int,
    which: str,
    *,
    columns: Sequence[str],
    after: Sequence[int] | None,
    limit: int,
    descending: bool,
    parent_id: int = 0,
) -> list[Row]:
    """List conversations the principal may read, ordered by `columns`, behind the key `after`."""
    names = [f"c.{column}" for column in columns]
    direction = "DESC" if descending else "ASC"
    beyond = ""
    params: dict[str, int] = {"parent_id": parent_id} if which == "children" else {}
    if after is not None:
        marks = [f"after_{i}" for i in range(len(names))]
        params |= dict(zip(marks, after, strict=True))
        beyond = (
            f" AND ({', '.join(names)}) {'<' if descending else '>'}"
            f" ({', '.join(':' + mark for mark in marks)})"
        )
    return tx.rows(
        f"SELECT {_DOCUMENT} FROM conversations c{ENTRY}{_DOCUMENT_JOINS}"
        f" WHERE c.workspace_id = :workspace_id AND c.deleted_at IS NULL AND {FILTERS[which]}"
        f" AND {LEVEL} <> 'none'{beyond}"
        f" ORDER BY {', '.join(f'{name} {direction}' for name in names)} LIMIT :limit",
        workspace_id=workspace_id,
        principal_id=principal_id,
        limit=limit,
        **params,
    )


# Events


def events(tx: Tx, conversation_id: int, after: int, limit: int) -> list[Row]:
    """Return the events behind a sequence number, with the public ids of the rows they name."""
    return tx.rows(
        "SELECT e.public_id, e.sequence, e.type, e.occurred_at, e.payload, t.public_id, t.kind,"
        " v.public_id, r.public_id, k.key FROM events e"
        " LEFT JOIN turns t ON t.id = e.turn_id LEFT JOIN variants v ON v.id = e.variant_id"
        " LEFT JOIN runs r ON r.id = e.run_id LEFT JOIN tasks k ON k.id = e.task_id"
        " WHERE e.conversation_id = :id AND e.sequence > :after ORDER BY e.sequence LIMIT :limit",
        id=conversation_id,
        after=after,
        limit=limit,
    )
