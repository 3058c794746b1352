"""Take a log into the record: a session with its subagents, once and again when it has grown."""

from collections.abc import Collection

from stenograph.accounts import store as accounts
from stenograph.accounts.access import Caller
from stenograph.conversations import workspace
from stenograph.sessions import secret
from stenograph.storage.database import Tx
from stenograph.trajectories.importers.draft import SessionDraft
from stenograph.trajectories.recording import store, store_sessions
from stenograph.trajectories.recording.creation import create
from stenograph.trajectories.recording.growth import grow
from stenograph.trajectories.recording.session import Change, Import, Mode, Recorded, title_of
from stenograph.trajectories.recording.store_sessions import StoredImport
from stenograph.trajectories.redaction.redactor import Redactor

#: The workspace that imported logs lie in; the whole organization sees it.
WORKSPACE = "Imported logs"


def record(
    tx: Tx,
    caller: Caller,
    draft: SessionDraft,
    *,
    mode: Mode = "standard",
    secrets: dict[str, bytes] | None = None,
    values: Collection[str] = (),
) -> list[Recorded]:
    """Record a session and its subagents, the session itself first.

    `secrets`: sealed values by name that are masked in every reading of the session, also of one
    that was recorded without them before. `values`: the same, opened.
    """
    # One import of an organization at a time, so that no log is taken in twice.
    accounts.hold_organization(tx, caller.organization_id)
    redactor = Redactor(values, "ephemeral")
    work = Import(
        tx, caller, mode, secrets or {}, workspace.shared(tx, caller, WORKSPACE), redactor
    )
    parent = None
    if draft.parent_key is not None:
        parents = store_sessions.find_imports(
            tx, caller.organization_id, draft.format, draft.parent_key
        )
        parent = parents[0].conversation_id if parents else None
    _session(work, draft, parent)
    if parent is not None:
        _link_children(tx, parent)
    return work.recorded


def _session(work: Import, draft: SessionDraft, parent: int | None) -> None:
    """Record one session under `parent`, then its children."""
    tx = work.tx
    known = _find(work, draft, parent)
    warnings = list(draft.warnings)
    if known is None:
        conversation_id = create(work, draft, parent)
        change: Change = "created"
    else:
        conversation_id = known.conversation_id
        if work.secrets:
            secret.give(tx, conversation_id, work.secrets)
            unmasked = title_of(draft, Redactor((), "ephemeral"))
            store_sessions.retitle(tx, conversation_id, unmasked, title_of(draft, work.redactor))
        change = grow(work, known, draft, warnings)
        if known.parent_conversation_id is not None or parent is None:
            parent = known.parent_conversation_id
        elif not store_sessions.adopt(tx, conversation_id, parent):
            warnings.append("The log names as its parent a session that it started itself.")
            parent = None
    public, turns, steps = store_sessions.counts(tx, conversation_id)
    above = None if parent is None else store_sessions.public_id(tx, "conversations", parent)
    work.recorded.append(
        Recorded(
            session_id=public,
            parent_session_id=above,
            workspace_id=store_sessions.public_id(tx, "workspaces", work.workspace_id),
            conversation_id=public,
            format=draft.format,
            title=title_of(draft, work.redactor),
            change=change,
            turns=turns,
            steps=steps,
            kept_aside=draft.kept_aside,
            replaced_characters=draft.replaced_characters,
            warnings=warnings,
        )
    )
    for child in draft.children:
        _session(work, child, conversation_id)
    for orphan in store_sessions.find_orphans(
        tx, work.caller.organization_id, draft.format, draft.key
    ):
        store_sessions.adopt(tx, orphan, conversation_id)
    _link_children(tx, conversation_id)


def _link_children(tx: Tx, conversation_id: int) -> None:
    """Say of each call that started a subagent which session that is."""
    for child_id, trajectory_id in store_sessions.named_children(tx, conversation_id):
        task_id = store_sessions.call_that_refers(tx, conversation_id, trajectory_id)
        if task_id is not None:
            store_sessions.link_child(tx, task_id, child_id)


def _find(work: Import, draft: SessionDraft, parent: int | None) -> StoredImport | None:
    """Find the session this log became before.

    The ids of an ATIF document may repeat (RFC 0001: `session_id` is no lookup key), so there the
    steps must agree as well.
    """
    found = store_sessions.find_imports(
        work.tx, work.caller.organization_id, draft.format, draft.key
    )
    if draft.format != "atif":
        return found[0] if found else None
    for known in found:
        if known.parent_conversation_id != parent or not _named_alike(known, draft):
            continue
        line = store.main_line(work.tx, known.conversation_id)
        if all(
            stored.digest is None or bytes(stored.digest) == store.digest(step)
            for stored, step in zip(line, draft.steps, strict=False)
        ):
            return known
    return None


def _named_alike(known: StoredImport, draft: SessionDraft) -> bool:
    """Tell whether a document gives itself the names that an export of the session would."""
    return draft.session_id in (None, known.session_id) and draft.trajectory_id in (
        None,
        known.trajectory_id,
    )
