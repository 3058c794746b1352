"""A log that is seen for the first time, and what is done at the end of every import."""

import msgspec

from stenograph.clock import now
from stenograph.sessions import store as sessions
from stenograph.trajectories.importers.draft import SessionDraft
from stenograph.trajectories.recording import store, store_sessions
from stenograph.trajectories.recording.branches import add_branch, difference
from stenograph.trajectories.recording.session import (
    Import,
    begin,
    model_of,
    moment,
    moments,
    recorder_for,
    save_media,
)
from stenograph.trajectories.recording.turns import SESSION_STATUS, Recorder


def create(work: Import, draft: SessionDraft, parent: int | None) -> int:
    at = moment(draft.started_at) or min(moments(draft.steps), default=now())
    conversation_id = begin(work, draft, parent, at)
    import_id = work.tx.insert(
        "imports",
        organization_id=work.caller.organization_id,
        conversation_id=conversation_id,
        format=draft.format,
        source_key=draft.key,
        parent_key=draft.parent_key,
        steps=len(draft.steps),
        report=msgspec.json.encode(draft.kept_aside).decode(),
        imported_at=now(),
    )
    store_sessions.save_originals(work.tx, import_id, draft.originals)
    recorder = recorder_for(work, draft, conversation_id)
    recorder.add(draft.steps)
    finish(work, draft, recorder, conversation_id)
    return conversation_id


def finish(work: Import, draft: SessionDraft, recorder: Recorder, conversation_id: int) -> None:
    """Close the last turn, add what was abandoned, and say how the session stands."""
    recorder.close()
    for branch in difference(work.tx, draft, conversation_id).missing:
        add_branch(work, draft, recorder, branch)
    save_media(work, draft, conversation_id, draft.steps)
    last = store.last_turn(work.tx, conversation_id)
    status = "completed" if last is None else last.status
    end = max(moments(draft.steps), default=now())
    sessions.update(
        work.tx,
        conversation_id,
        status=SESSION_STATUS[status],
        outcome="success" if status == "completed" else None,
        model=model_of(draft),
        agent=msgspec.json.encode(draft.agent).decode(),
        document=msgspec.json.encode(draft.document).decode(),
        ended_at=end,
    )
    if recorder.audio:
        sessions.update(work.tx, conversation_id, audio=1)
    store_sessions.touch(work.tx, conversation_id, end)
