"""The SQL of sessions as logs make them: conversations, forks, imports, originals, media."""

import hashlib
from dataclasses import dataclass

import msgspec
import zstandard

from stenograph.clock import now
from stenograph.sessions import store as sessions
from stenograph.storage.database import Tx


def counts(tx: Tx, conversation_id: int) -> tuple[str, int, int]:
    """Return the public id of a conversation, and how many turns and main-line steps it has."""
    row = tx.row(
        "SELECT c.public_id, (SELECT count(*) FROM turns t WHERE t.conversation_id = c.id),"
        " (SELECT count(*) FROM steps s LEFT JOIN turns t ON t.id = s.turn_id"
        "  WHERE s.conversation_id = c.id"
        "  AND (s.turn_id IS NULL OR s.variant_id = t.active_variant_id))"
        " FROM conversations c WHERE c.id = :id",
        id=conversation_id,
    )
    assert row is not None
    return row[0], row[1], row[2]


def set_steps(tx: Tx, import_id: int, steps: int) -> None:
    """Say how many steps a log has that was taken in."""
    tx.run("UPDATE imports SET steps = :steps WHERE id = :id", id=import_id, steps=steps)


def public_id(tx: Tx, table: str, row_id: int) -> str:
    """Return the public id of a row."""
    return str(tx.value(f"SELECT public_id FROM {table} WHERE id = :id", id=row_id))


def call_that_refers(tx: Tx, conversation_id: int, trajectory_id: str) -> int | None:
    """Return the tool call whose result points at a child document of that id."""
    needle = msgspec.json.encode(trajectory_id).decode()
    found = tx.value(
        "SELECT k.id FROM runs r JOIN tasks k ON k.run_id = r.id"
        " JOIN task_details d ON d.task_id = k.id"
        " WHERE r.conversation_id = :id AND k.kind = 'tool_task'"
        " AND d.rest LIKE :shape ESCAPE '!' ORDER BY k.id LIMIT 1",
        id=conversation_id,
        shape=f'%"trajectory_id":{_like(needle)}%',
    )
    return None if found is None else int(found)


def _like(text: str) -> str:
    return text.replace("!", "!!").replace("%", "!%").replace("_", "!_")


def retitle(tx: Tx, conversation_id: int, old: str | None, new: str | None) -> None:
    """Give a conversation another title, unless a person gave it one."""
    tx.run(
        "UPDATE conversations SET title = :new WHERE id = :id AND title = :old",
        id=conversation_id,
        old=old,
        new=new,
    )


def touch(tx: Tx, conversation_id: int, at: int) -> None:
    """Say that something was said in a conversation."""
    tx.run(
        "UPDATE conversations SET last_activity_at = :at, updated_at = :now WHERE id = :id",
        id=conversation_id,
        at=at,
        now=now(),
    )


def adopt(tx: Tx, child_id: int, parent_id: int) -> bool:
    """Put a session under the one that started it; False where that one is below it itself."""
    if tx.value(
        "WITH RECURSIVE below (id) AS (SELECT CAST(:child_id AS BIGINT) UNION"
        "  SELECT s.conversation_id FROM sessions s JOIN below"
        "  ON s.parent_conversation_id = below.id)"
        " SELECT 1 FROM below WHERE id = :parent_id",
        child_id=child_id,
        parent_id=parent_id,
    ):
        return False
    sessions.update(tx, child_id, parent_conversation_id=parent_id)
    tx.run(
        "UPDATE conversations SET parent_id = :parent_id WHERE id = :id",
        id=child_id,
        parent_id=parent_id,
    )
    return True


def named_children(tx: Tx, conversation_id: int) -> list[tuple[int, str]]:
    """Return the sessions below one that its results can name, with that name."""
    return [
        (row[0], row[1])
        for row in tx.rows(
            "SELECT conversation_id, document_trajectory_id FROM sessions"
            " WHERE parent_conversation_id = :id AND document_trajectory_id IS NOT NULL"
            " ORDER BY conversation_id",
            id=conversation_id,
        )
    ]


def link_child(tx: Tx, task_id: int, child_id: int) -> None:
    """Say which session a tool call started."""
    tx.run(
        "UPDATE tasks SET child_conversation_id = :child_id WHERE id = :id",
        id=task_id,
        child_id=child_id,
    )


@dataclass(frozen=True, slots=True)
class RecordedSession:
    """A session that an agent elsewhere is recorded into; `steps` is how many it has.

    `active_turn_id` is the turn that its agent is answering.
    """

    conversation_id: int
    workspace_id: int
    organization_id: int
    owner_id: int
    status: str
    model: str | None
    steps: int
    active_turn_id: int | None


def lock_recorded(tx: Tx, conversation_id: int) -> RecordedSession | None:
    """Hold a recorded session until the transaction ends; None if it is of another kind."""
    row = tx.row(
        "SELECT c.id, c.workspace_id, s.organization_id, s.owner_id, s.status, s.model,"
        " c.next_step - 1, c.active_turn_id FROM conversations c"
        " JOIN sessions s ON s.conversation_id = c.id"
        f" WHERE c.id = :id AND s.recorded = 1{tx.for_update}",
        id=conversation_id,
    )
    return None if row is None else RecordedSession(*row)


def ended(tx: Tx, conversation_id: int) -> tuple[str, str | None, str | None]:
    """Return status and outcome of a session, and the answer of its last turn."""
    row = tx.row(
        "SELECT s.status, s.outcome, (SELECT v.content FROM turns t"
        " JOIN variants v ON v.id = t.active_variant_id"
        " WHERE t.conversation_id = s.conversation_id ORDER BY t.position DESC LIMIT 1)"
        " FROM sessions s WHERE s.conversation_id = :id",
        id=conversation_id,
    )
    assert row is not None
    return row[0], row[1], row[2]


@dataclass(frozen=True, slots=True)
class StoredImport:
    """A log that was taken in, by its own identity; `size` is that of its original files.

    `session_id` and `trajectory_id` are what an export says; `owner_id` is who imported it.
    """

    id: int
    conversation_id: int
    parent_conversation_id: int | None
    session_id: str
    trajectory_id: str
    owner_id: int
    size: int


def find_imports(tx: Tx, organization_id: int, format: str, key: str) -> list[StoredImport]:
    """Return the sessions that logs of this identity became, oldest first; not deleted ones.

    A session's own public id is such an identity too: it is what our exports say of it.
    """
    return [
        StoredImport(*row)
        for row in tx.rows(
            "SELECT i.id, i.conversation_id, s.parent_conversation_id,"
            " coalesce(s.document_session_id, c.public_id),"
            " coalesce(s.document_trajectory_id, c.public_id), s.owner_id,"
            " (SELECT coalesce(sum(o.size), 0) FROM originals o WHERE o.import_id = i.id)"
            " FROM imports i JOIN sessions s ON s.conversation_id = i.conversation_id"
            " JOIN conversations c ON c.id = i.conversation_id"
            " WHERE i.organization_id = :organization_id AND i.format = :format"
            " AND c.deleted_at IS NULL AND i.id IN"
            " (SELECT id FROM imports WHERE organization_id = :organization_id"
            "   AND format = :format AND source_key = :key UNION"
            "  SELECT m.id FROM imports m JOIN conversations c ON c.id = m.conversation_id"
            "   WHERE c.public_id = :key) ORDER BY i.id",
            organization_id=organization_id,
            format=format,
            key=key,
        )
    ]


def find_orphans(tx: Tx, organization_id: int, format: str, parent_key: str) -> list[int]:
    """Return sessions that a log names as children of `parent_key` and that have no parent yet."""
    return [
        row[0]
        for row in tx.rows(
            "SELECT i.conversation_id FROM imports i"
            " JOIN sessions s ON s.conversation_id = i.conversation_id"
            " JOIN conversations c ON c.id = i.conversation_id"
            " WHERE i.organization_id = :organization_id AND i.format = :format"
            " AND i.parent_key = :parent_key AND s.parent_conversation_id IS NULL"
            " AND c.deleted_at IS NULL ORDER BY i.id",
            organization_id=organization_id,
            format=format,
            parent_key=parent_key,
        )
    ]


def save_originals(tx: Tx, import_id: int, files: dict[str, bytes]) -> None:
    """Keep the files a session was read from, compressed; a name's newest bytes replace older.

    Where details of the session or of one below it were pruned, digest and size are all that is
    kept: the file would bring back what was deleted.
    """
    forgotten = _is_pruned(tx, import_id)
    for name, data in files.items():
        told = hashlib.sha256(data).digest()
        known = tx.value(
            "SELECT digest FROM originals WHERE import_id = :import_id AND name = :name",
            import_id=import_id,
            name=name,
        )
        if known is not None and bytes(known) == told:
            continue
        tx.run(
            "DELETE FROM originals WHERE import_id = :import_id AND name = :name",
            import_id=import_id,
            name=name,
        )
        tx.insert(
            "originals",
            import_id=import_id,
            name=name,
            digest=told,
            size=len(data),
            compressed=None if forgotten else zstandard.compress(data),
        )


def _is_pruned(tx: Tx, import_id: int) -> bool:
    return bool(
        tx.value(
            "WITH RECURSIVE below (id) AS (SELECT conversation_id FROM imports WHERE id = :id"
            "  UNION SELECT s.conversation_id FROM sessions s"
            "  JOIN below ON s.parent_conversation_id = below.id)"
            " SELECT 1 FROM runs r JOIN below ON below.id = r.conversation_id"
            " WHERE r.details_pruned_at IS NOT NULL LIMIT 1",
            id=import_id,
        )
    )


def save_media(tx: Tx, conversation_id: int, path: str, media_type: str, data: bytes) -> None:
    """Keep a file that steps point at; the same path is the same file."""
    tx.run(
        "INSERT INTO media (conversation_id, path, media_type, data)"
        " VALUES (:conversation_id, :path, :media_type, :data)"
        " ON CONFLICT (conversation_id, path) DO NOTHING",
        conversation_id=conversation_id,
        path=path,
        media_type=media_type,
        data=data,
    )
