"""The facts of one session of a log: what it is called, who ran it, when, with what model."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import msgspec

from stenograph.accounts import principal
from stenograph.accounts import store as accounts
from stenograph.accounts.access import Caller
from stenograph.clock import parse_iso
from stenograph.conversations import store as conversations
from stenograph.sessions import secret
from stenograph.sessions import store as sessions
from stenograph.storage.database import Tx
from stenograph.trajectories.importers.draft import SessionDraft, StepDraft
from stenograph.trajectories.recording import store_sessions
from stenograph.trajectories.recording.turns import Recorder, Target
from stenograph.trajectories.redaction.redactor import Redactor

Mode: TypeAlias = Literal["standard", "ephemeral"]
Change: TypeAlias = Literal["created", "grown", "unchanged"]


@dataclass(frozen=True, slots=True)
class Recorded:
    """What became of one session of a log. Ids are public ids; a session is a conversation."""

    session_id: str
    parent_session_id: str | None
    workspace_id: str
    conversation_id: str
    format: str
    title: str | None
    change: Change
    turns: int
    steps: int
    kept_aside: dict[str, int]
    replaced_characters: int
    warnings: list[str]


@dataclass(slots=True)
class Import:
    """One import under way."""

    tx: Tx
    caller: Caller
    mode: Mode
    secrets: dict[str, bytes]
    workspace_id: int
    #: Masks what is made of a text by cutting or rewording it: no reading could find it there.
    redactor: Redactor
    recorded: list[Recorded] = field(default_factory=list)


def moment(text: str | None) -> int | None:
    return None if text is None else parse_iso(text)


def moments(steps: Sequence[StepDraft]) -> list[int]:
    found = (moment(step.step.timestamp) for step in steps)
    return [at for at in found if at is not None]


def title_of(draft: SessionDraft, redactor: Redactor) -> str | None:
    """Return the log's title, or the beginning of its first prompt."""
    if draft.title:
        return redactor.text(draft.title)
    for step in draft.steps:
        if step.part == "prompt":
            text = step.step.message if isinstance(step.step.message, str) else ""
            return " ".join(redactor.text(text).split())[:80] or None
    return None


def model_of(draft: SessionDraft) -> str | None:
    if draft.agent.model_name is not None:
        return draft.agent.model_name
    named = (s.step.model_name for s in reversed(draft.steps))
    return next((name for name in named if name is not None), None)


def begin(work: Import, draft: SessionDraft, parent: int | None, at: int) -> int:
    """Make the conversation that a log's session becomes, with its facts; returns its row id."""
    conversation_id = conversations.add_conversation(
        work.tx,
        at,
        workspace_id=work.workspace_id,
        creator_id=work.caller.principal_id,
        answerer_id=agent_profile(work, draft),
        title=title_of(draft, work.redactor),
        parent_id=parent,
    )
    sessions.insert_session(
        work.tx,
        conversation_id,
        organization_id=work.caller.organization_id,
        owner_id=work.caller.principal_id,
        parent_conversation_id=parent,
        mode=work.mode,
        status="running",
        model=model_of(draft),
        tags="[]",
        options="{}",
        agent=msgspec.json.encode(draft.agent).decode(),
        document=msgspec.json.encode(draft.document).decode(),
        # Logs of programs name their files; a document is told by the names it gave itself.
        document_session_id=draft.session_id if draft.format == "atif" else None,
        document_trajectory_id=draft.trajectory_id,
        created_at=at,
        started_at=at,
    )
    secret.give(work.tx, conversation_id, work.secrets)
    return conversation_id


def recorder_for(work: Import, draft: SessionDraft, conversation_id: int) -> Recorder:
    target = Target(
        conversation_id=conversation_id,
        workspace_id=work.workspace_id,
        organization_id=work.caller.organization_id,
        agent_model=draft.agent.model_name,
        source="import",
        answerer_id=agent_profile(work, draft),
        speaker_id=work.caller.principal_id,
    )
    return Recorder(work.tx, target, draft.turn_ends)


def save_media(
    work: Import, draft: SessionDraft, conversation_id: int, steps: Sequence[StepDraft]
) -> None:
    """Keep the files that these steps point at."""
    if not draft.media:
        return
    named = b"".join(msgspec.json.encode(step.step) for step in steps)
    for media in draft.media:
        if msgspec.json.encode(media.path) in named:
            store_sessions.save_media(
                work.tx, conversation_id, media.path, media.media_type, media.data
            )


def agent_profile(work: Import, draft: SessionDraft) -> int:
    """Return the agent of this name in the organization; it is made when first seen."""
    name = work.redactor.text(draft.agent.name)
    handle = re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip("._-")[:30] or "agent"
    for candidate in (handle, f"{handle}-agent"):
        found = accounts.principal(work.tx, work.caller.organization_id, candidate)
        if found is None:
            return principal.create(
                work.tx, work.caller.organization_id, candidate, role=None, name=name[:80]
            )
        if found[2] == "agent":
            return int(found[0])
    return work.caller.principal_id
