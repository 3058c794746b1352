"""Take a log into the record: once, and again when it has grown.

The session a log became is found by the log's own identity. What is there already is compared
step by step; from the first difference on, the log's word is taken. A log that is the same
changes nothing, and a log that is shorter than before neither: the record forgets nothing that
it was shown, unless retention says so.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import msgspec

from stenograph.accounts.access import Caller
from stenograph.clock import now, parse_iso
from stenograph.ids import new_id
from stenograph.storage.database import Tx
from stenograph.trajectories.importers.draft import Abandoned, SessionDraft, StepDraft
from stenograph.trajectories.recording import store, store_sessions
from stenograph.trajectories.recording.columns import plain
from stenograph.trajectories.recording.turns import (
    SESSION_STATUS,
    OpenTurn,
    Recorder,
    Target,
    start_variant,
)

Mode: TypeAlias = Literal["standard", "ephemeral"]
Change: TypeAlias = Literal["created", "grown", "unchanged"]

#: The workspace that imported logs lie in; the whole organization sees it.
WORKSPACE = "Imported logs"


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
class _Import:
    """One import under way."""

    tx: Tx
    caller: Caller
    mode: Mode
    secrets: dict[str, bytes]
    workspace_id: int
    recorded: list[Recorded] = field(default_factory=list)


def record(
    tx: Tx,
    caller: Caller,
    draft: SessionDraft,
    *,
    mode: Mode = "standard",
    secrets: dict[str, bytes] | None = None,
) -> list[Recorded]:
    """Record a session and its subagents, the session itself first.

    `secrets`: sealed values by name that are masked in every reading of the session.
    """
    store.lock(tx, caller.organization_id)
    work = _Import(tx, caller, mode, secrets or {}, _workspace(tx, caller))
    parent = None
    if draft.parent_key is not None:
        parents = store_sessions.find_imports(
            tx, caller.organization_id, draft.format, draft.parent_key
        )
        parent = parents[0].conversation_id if parents else None
    _session(work, draft, parent)
    return work.recorded


def _workspace(tx: Tx, caller: Caller) -> int:
    found = store.find_workspace(tx, caller.organization_id, WORKSPACE)
    if found is not None:
        return found
    at = now()
    return tx.insert(
        "workspaces",
        public_id=new_id(),
        organization_id=caller.organization_id,
        owner_id=caller.principal_id,
        creator_id=caller.principal_id,
        name=WORKSPACE,
        access_mode="account_wide",
        state="active",
        metadata="{}",
        lock_version=0,
        created_at=at,
        updated_at=at,
    )


def _session(work: _Import, draft: SessionDraft, parent: int | None) -> int:
    """Record one session under `parent`, then its children. Returns its row id."""
    tx = work.tx
    known = _find(work, draft, parent)
    warnings = list(draft.warnings)
    if known is None:
        conversation_id = _create(work, draft, parent)
        change: Change = "created"
    else:
        conversation_id = known.conversation_id
        change = _grow(work, known, draft, warnings)
        if parent is not None and known.parent_conversation_id is None:
            store_sessions.adopt(tx, conversation_id, parent)
    public, turns, steps = store_sessions.counts(tx, conversation_id)
    above = None if parent is None else store_sessions.public_id(tx, "conversations", parent)
    work.recorded.append(
        Recorded(
            session_id=public,
            parent_session_id=above,
            workspace_id=store_sessions.public_id(tx, "workspaces", work.workspace_id),
            conversation_id=public,
            format=draft.format,
            title=_title(draft),
            change=change,
            turns=turns,
            steps=steps,
            kept_aside=draft.kept_aside,
            replaced_characters=draft.replaced_characters,
            warnings=warnings,
        )
    )
    for child in draft.children:
        _child(work, child, conversation_id)
    for orphan in store_sessions.find_orphans(
        tx, work.caller.organization_id, draft.format, draft.key
    ):
        if orphan != conversation_id:
            store_sessions.adopt(tx, orphan, conversation_id)
    return conversation_id


def _child(work: _Import, draft: SessionDraft, parent: int) -> None:
    child_id = _session(work, draft, parent)
    if draft.trajectory_id is not None:
        task_id = store_sessions.call_that_refers(work.tx, parent, draft.trajectory_id)
        if task_id is not None:
            store_sessions.link_child(work.tx, task_id, child_id)


def _find(
    work: _Import, draft: SessionDraft, parent: int | None
) -> store_sessions.StoredImport | None:
    """Find the session this log became before.

    The ids of an ATIF document may repeat (RFC 0001: `session_id` is no lookup key), so there the
    steps must agree as well.
    """
    found = store_sessions.find_imports(
        work.tx, work.caller.organization_id, draft.format, draft.key
    )
    if draft.format != "atif":
        return found[0] if found else None
    digests = [store.digest(step) for step in draft.steps]
    for known in found:
        if known.parent_conversation_id != parent:
            continue
        line = store.main_line(work.tx, known.conversation_id)
        if all(
            step.digest is None or bytes(step.digest) == digest
            for step, digest in zip(line, digests, strict=False)
        ):
            return known
    return None


def _moment(text: str | None) -> int | None:
    return None if text is None else parse_iso(text)


def _moments(steps: Sequence[StepDraft]) -> list[int]:
    found = (_moment(step.step.timestamp) for step in steps)
    return [at for at in found if at is not None]


def _title(draft: SessionDraft) -> str | None:
    if draft.title:
        return draft.title
    for step in draft.steps:
        if step.part == "prompt":
            text = step.step.message if isinstance(step.step.message, str) else ""
            return " ".join(text.split())[:80] or None
    return None


def _create(work: _Import, draft: SessionDraft, parent: int | None) -> int:
    moments = _moments(draft.steps)
    at = _moment(draft.started_at) or min(moments, default=now())
    conversation_id = store_sessions.open_conversation(
        work.tx,
        workspace_id=work.workspace_id,
        creator_id=work.caller.principal_id,
        answerer_id=None,
        title=_title(draft),
        parent_id=parent,
        at=at,
    )
    _facts(work, draft, conversation_id, parent, at)
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
    recorder = _recorder(work, draft, conversation_id)
    recorder.add(draft.steps)
    _finish(work, draft, recorder, conversation_id)
    return conversation_id


def _facts(
    work: _Import, draft: SessionDraft, conversation_id: int, parent: int | None, at: int
) -> None:
    store_sessions.open_session(
        work.tx,
        conversation_id,
        organization_id=work.caller.organization_id,
        owner_id=work.caller.principal_id,
        parent_conversation_id=parent,
        mode=work.mode,
        status="running",
        model=_model(draft),
        tags="[]",
        options="{}",
        agent=msgspec.json.encode(draft.agent).decode(),
        document=msgspec.json.encode(draft.document).decode(),
        document_session_id=draft.session_id,
        document_trajectory_id=draft.trajectory_id,
        created_at=at,
        started_at=at,
    )
    names = ("conversation_id", "name", "ciphertext")
    rows = [(conversation_id, name, sealed) for name, sealed in work.secrets.items()]
    if rows:
        work.tx.insert_many("session_secrets", names, rows)


def _model(draft: SessionDraft) -> str | None:
    if draft.agent.model_name is not None:
        return draft.agent.model_name
    named = (s.step.model_name for s in reversed(draft.steps))
    return next((name for name in named if name is not None), None)


def _recorder(work: _Import, draft: SessionDraft, conversation_id: int) -> Recorder:
    target = Target(
        conversation_id=conversation_id,
        workspace_id=work.workspace_id,
        organization_id=work.caller.organization_id,
        agent_model=draft.agent.model_name,
        source="import",
        speaker_id=work.caller.principal_id,
    )
    return Recorder(work.tx, target, draft.turn_ends)


def _finish(work: _Import, draft: SessionDraft, recorder: Recorder, conversation_id: int) -> None:
    """Close the last turn, add what was abandoned, and say how the session stands."""
    recorder.close()
    known = store.known_keys(work.tx, conversation_id) if draft.abandoned else set()
    for branch in draft.abandoned:
        if branch.steps and branch.steps[0].key not in known:
            _abandoned(work, draft, recorder, branch)
    for media in draft.media:
        store_sessions.save_media(
            work.tx, conversation_id, media.path, media.media_type, media.data
        )
    last = store.last_turn(work.tx, conversation_id)
    status = "completed" if last is None else last.status
    end = max(_moments(draft.steps), default=now())
    store_sessions.update_session(
        work.tx,
        conversation_id,
        status=SESSION_STATUS[status],  # type: ignore[index]
        outcome="success" if status == "completed" else None,
        model=_model(draft),
        agent=msgspec.json.encode(draft.agent).decode(),
        document=msgspec.json.encode(draft.document).decode(),
        ended_at=end,
    )
    store_sessions.touch(work.tx, conversation_id, end)


def _abandoned(work: _Import, draft: SessionDraft, recorder: Recorder, branch: Abandoned) -> None:
    """Record a branch that was left: a candidate of its turn, or a fork where it went on."""
    turn_id = recorder.turns.get(branch.turn)
    prompts = sum(step.part == "prompt" for step in branch.steps)
    if turn_id is not None and prompts <= 1:
        _candidate(work, recorder, branch, turn_id)
    else:
        _fork(work, draft, recorder, branch, turn_id)


def _candidate(work: _Import, recorder: Recorder, branch: Abandoned, turn_id: int) -> None:
    first = branch.steps[0].step
    at = _moment(first.timestamp) or now()
    prompt = first.message if branch.steps[0].part == "prompt" else None
    text = prompt if isinstance(prompt, str) or prompt is None else plain(prompt)
    left = Recorder(work.tx, recorder.target, candidate=True)
    left.open = start_variant(work.tx, recorder.target, turn_id, text, at, branch.turn)
    left.add(branch.steps)
    left.close()


def _fork(
    work: _Import, draft: SessionDraft, recorder: Recorder, branch: Abandoned, turn_id: int | None
) -> None:
    source = recorder.target.conversation_id
    at = min(_moments(branch.steps), default=now())
    fork_id = store_sessions.open_conversation(
        work.tx,
        workspace_id=work.workspace_id,
        creator_id=work.caller.principal_id,
        answerer_id=None,
        title=_title(draft),
        parent_id=None,
        at=at,
    )
    position = 0 if turn_id is None else store_sessions.position_of(work.tx, turn_id)
    shared = store_sessions.turn_at(work.tx, source, position - 1)
    if shared is not None:
        store_sessions.open_fork(work.tx, fork_id, source, shared, position - 1)
    _facts(work, draft, fork_id, None, at)
    forked = _recorder(work, draft, fork_id)
    forked.ends = {}
    forked.add(branch.steps)
    forked.close()
    end = max(_moments(branch.steps), default=at)
    store_sessions.update_session(work.tx, fork_id, status="exit", outcome="success", ended_at=end)
    store_sessions.touch(work.tx, fork_id, end)


def _grow(
    work: _Import, known: store_sessions.StoredImport, draft: SessionDraft, warnings: list[str]
) -> Change:
    """Bring a session to what its log says now."""
    line = store.main_line(work.tx, known.conversation_id)
    same = _agreeing(line, draft.steps)
    if len(draft.steps) < len(line) and (
        same == len(draft.steps) or sum(map(len, draft.originals.values())) < known.size
    ):
        warnings.append(
            f"The log holds {len(draft.steps)} steps, the record {len(line)}:"
            " nothing was taken from it."
        )
        return "unchanged"
    store_sessions.save_originals(work.tx, known.id, draft.originals)
    if same == len(line) == len(draft.steps) and not _ends_otherwise(work.tx, known, draft):
        return "unchanged"
    recorder = _recorder(work, draft, known.conversation_id)
    _rewind(work.tx, recorder, line, same, draft.steps)
    recorder.add(draft.steps[same:])
    _finish(work, draft, recorder, known.conversation_id)
    work.tx.run(
        "UPDATE imports SET steps = :steps WHERE id = :id", id=known.id, steps=len(draft.steps)
    )
    return "grown"


def _ends_otherwise(tx: Tx, known: store_sessions.StoredImport, draft: SessionDraft) -> bool:
    """Tell whether the log now knows another end of its last turn, or a branch that was left."""
    last = store.last_turn(tx, known.conversation_id)
    if last is not None:
        status, _ = draft.turn_ends.get(last.prompts - 1, ("completed", None))
        if status != last.status:
            return True
    if not draft.abandoned:
        return False
    keys = store.known_keys(tx, known.conversation_id)
    return any(branch.steps and branch.steps[0].key not in keys for branch in draft.abandoned)


def _agreeing(line: Sequence[store.StoredStep], steps: Sequence[StepDraft]) -> int:
    """Count the steps from the start that record and log agree on (pruned ones always agree)."""
    count = 0
    for stored, draft in zip(line, steps, strict=False):
        if stored.digest is not None and bytes(stored.digest) != store.digest(draft):
            break
        count += 1
    return count


def _rewind(
    tx: Tx,
    recorder: Recorder,
    line: Sequence[store.StoredStep],
    same: int,
    steps: Sequence[StepDraft],
) -> None:
    """Take back what the log tells otherwise, and stand where the record continues."""
    kept, dropped = line[:same], line[same:]
    turn_ids = {step.turn_id for step in kept}
    ordinal = -1
    for step in kept:
        if step.part == "prompt":
            ordinal += 1
        if step.turn_id is not None:
            recorder.turns.setdefault(ordinal, step.turn_id)
    recorder.prompts = ordinal + 1
    conversation_id = recorder.target.conversation_id
    gone = {s.turn_id for s in dropped if s.turn_id is not None and s.turn_id not in turn_ids}
    store.delete_turns(tx, conversation_id, sorted(gone))
    store.delete_steps(tx, [step for step in dropped if step.turn_id not in gone])
    last = store.last_turn(tx, conversation_id)
    if last is None:
        return
    round = store.rounds(tx, last.run_id) + 1
    continues = same == len(steps) or steps[same].part != "prompt"
    if continues or round == 1 or any(step.turn_id == last.id for step in dropped):
        recorder.open = _reopened(tx, last, round, ordinal)


def _reopened(tx: Tx, last: store.StoredTurn, round: int, ordinal: int) -> OpenTurn:
    turn = OpenTurn(last.id, last.variant_id, last.run_id, ordinal, round)
    if found := store.last_round(tx, last.run_id):
        provider_id, model_ref, enabled, effort, message = found
        turn.model = (provider_id, model_ref, None if enabled is None else bool(enabled), effort)
        turn.answer = message
    return turn
