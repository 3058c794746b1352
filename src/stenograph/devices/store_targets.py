"""The SQL of where sessions work."""

from collections.abc import Collection, Sequence

from stenograph.storage.database import Row, Tx, among

# A session is served while it goes on: between its turns it needs no worker.
_GOES_ON = "(c.active_turn_id IS NOT NULL OR coalesce(s.status, '') = 'running')"


def target(tx: Tx, conversation_id: int) -> Row | None:
    """Return (device, root, machine, workspace path, permissions of the root as JSON)."""
    return tx.row(
        "SELECT t.device_id, t.root_id, t.machine, t.workspace_path, r.permissions"
        " FROM session_targets t LEFT JOIN device_roots r ON r.id = t.root_id"
        " WHERE t.conversation_id = :id",
        id=conversation_id,
    )


def add_target(tx: Tx, conversation_id: int, **columns: object) -> None:
    """Say where a conversation works."""
    names = ("conversation_id", *columns)
    tx.insert_many("session_targets", names, [(conversation_id, *columns.values())])


def copy_target(tx: Tx, from_id: int, to_id: int) -> None:
    """Let a conversation work where another one does, if that works anywhere."""
    tx.run(
        "INSERT INTO session_targets"
        " (conversation_id, device_id, root_id, machine, workspace_path, bound_at)"
        " SELECT CAST(:to_id AS BIGINT), device_id, root_id, machine, workspace_path, bound_at"
        " FROM session_targets WHERE conversation_id = :from_id",
        from_id=from_id,
        to_id=to_id,
    )


def family(tx: Tx, conversation_id: int) -> list[int]:
    """Return a session, those above and those below it, ascending: they share their files."""
    rows = tx.rows(
        "WITH RECURSIVE kin (id) AS (SELECT CAST(:id AS BIGINT) UNION"
        " SELECT coalesce(above.parent_conversation_id, below.conversation_id) FROM kin"
        " CROSS JOIN (SELECT 1 AS way UNION ALL SELECT 2) AS ways"
        " LEFT JOIN sessions above ON way = 1 AND above.conversation_id = kin.id"
        " LEFT JOIN sessions below ON way = 2 AND below.parent_conversation_id = kin.id"
        " WHERE coalesce(above.parent_conversation_id, below.conversation_id) IS NOT NULL)"
        " SELECT id FROM kin ORDER BY id",
        id=conversation_id,
    )
    return [row[0] for row in rows]


def hold_targets(tx: Tx, conversation_ids: Collection[int]) -> None:
    """Hold where these conversations work until the transaction ends."""
    tx.rows(
        "SELECT conversation_id FROM session_targets"
        f" WHERE {among('conversation_id', conversation_ids)}"
        f" ORDER BY conversation_id{tx.for_update}"
    )


def bind(
    tx: Tx, conversation_ids: Collection[int], machine: str, device_id: int, root_id: int, at: int
) -> None:
    """Give those that wait for a worker of the machine, and what they call, to one of them."""
    free = f"{among('conversation_id', conversation_ids)} AND machine = :machine"
    tx.run(
        f"UPDATE session_targets SET device_id = :device_id, root_id = :root_id, bound_at = :at"
        f" WHERE {free} AND device_id IS NULL",
        machine=machine,
        device_id=device_id,
        root_id=root_id,
        at=at,
    )
    tx.run(
        f"UPDATE dispatches SET device_id = :device_id WHERE {free} AND status = 'queued'"
        " AND device_id IS NULL AND conversation_id IN"
        " (SELECT conversation_id FROM session_targets WHERE device_id = :device_id)",
        machine=machine,
        device_id=device_id,
    )


def releasable(tx: Tx) -> list[int]:
    """Return the sessions that have a machine's worker and need none now; a subagent's is kept
    while that of its parent is."""
    rows = tx.rows(
        "SELECT t.conversation_id FROM session_targets t"
        " JOIN conversations c ON c.id = t.conversation_id"
        " LEFT JOIN sessions s ON s.conversation_id = t.conversation_id"
        " WHERE t.device_id IN (SELECT v.id FROM devices v WHERE v.machine IS NOT NULL)"
        f" AND t.machine IS NOT NULL AND NOT {_GOES_ON}"
        " AND NOT EXISTS (SELECT 1 FROM session_targets p"
        "  WHERE p.conversation_id = s.parent_conversation_id AND p.device_id = t.device_id)"
        " AND NOT EXISTS (SELECT 1 FROM dispatches d"
        "  WHERE d.conversation_id = t.conversation_id AND d.status IN ('queued', 'claimed'))"
        " ORDER BY t.conversation_id"
    )
    return [row[0] for row in rows]


def unbind(tx: Tx, conversation_ids: Collection[int], device_id: int | None = None) -> None:
    """Let sessions of a machine go from their worker, or from this one only."""
    which = "device_id IS NOT NULL" if device_id is None else "device_id = :device_id"
    params = {} if device_id is None else {"device_id": device_id}
    tx.run(
        "UPDATE session_targets SET device_id = NULL, root_id = NULL, bound_at = NULL"
        f" WHERE machine IS NOT NULL AND {which}"
        f" AND {among('conversation_id', conversation_ids)}",
        **params,
    )


def served(tx: Tx, device_id: int, session_ids: Sequence[str]) -> set[str]:
    """Return those of the sessions that go on, and work on the device."""
    names, params = named(session_ids)
    rows = tx.rows(
        "SELECT c.public_id FROM conversations c"
        " JOIN session_targets t ON t.conversation_id = c.id"
        " LEFT JOIN sessions s ON s.conversation_id = c.id"
        f" WHERE c.public_id IN ({names}) AND t.device_id = :device_id AND {_GOES_ON}",
        device_id=device_id,
        **params,
    )
    return {row[0] for row in rows}


def waiting_sessions(tx: Tx, organization_id: int) -> list[Row]:
    """Return (machine, sessions) that wait for a worker to be free."""
    return tx.rows(
        "SELECT machine, count(DISTINCT conversation_id) FROM dispatches"
        " WHERE status = 'queued' AND organization_id = :id AND machine IS NOT NULL"
        " AND device_id IS NULL GROUP BY machine",
        id=organization_id,
    )


def named(session_ids: Sequence[str]) -> tuple[str, dict[str, str]]:
    """Return names for a list of parameters, and their values; nothing has the empty id."""
    params = {f"session_{n}": one for n, one in enumerate(session_ids or [""])}
    return ", ".join(f":{name}" for name in params), params
