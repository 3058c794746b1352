"""Branches of a log that a person left by rewinding."""

from stenograph.clock import now
from stenograph.trajectories.importers.draft import Abandoned, SessionDraft
from stenograph.trajectories.recording import store, store_sessions
from stenograph.trajectories.recording.columns import plain
from stenograph.trajectories.recording.session import (
    Import,
    agent_profile,
    facts,
    moment,
    moments,
    recorder_for,
    save_media,
    title_of,
)
from stenograph.trajectories.recording.turns import Recorder, start_variant


def add_branch(work: Import, draft: SessionDraft, recorder: Recorder, branch: Abandoned) -> None:
    """Record a branch that was left: a candidate of its turn, or a fork where it went on."""
    turn_id = recorder.turns.get(branch.turn)
    prompts = sum(step.part == "prompt" for step in branch.steps)
    if turn_id is not None and prompts <= 1:
        _candidate(work, recorder, branch, turn_id)
    else:
        _fork(work, draft, recorder, branch)


def _candidate(work: Import, recorder: Recorder, branch: Abandoned, turn_id: int) -> None:
    first = branch.steps[0].step
    at = moment(first.timestamp) or now()
    prompt = first.message if branch.steps[0].part == "prompt" else None
    text = prompt if isinstance(prompt, str) or prompt is None else plain(prompt)
    left = Recorder(work.tx, recorder.target, candidate=True)
    left.open = start_variant(work.tx, recorder.target, turn_id, text, at, branch.turn)
    left.add(branch.steps)
    left.close()


def _fork(work: Import, draft: SessionDraft, recorder: Recorder, branch: Abandoned) -> None:
    source = recorder.target.conversation_id
    at = min(moments(branch.steps), default=now())
    fork_id = store_sessions.open_conversation(
        work.tx,
        workspace_id=work.workspace_id,
        creator_id=work.caller.principal_id,
        answerer_id=agent_profile(work, draft),
        title=title_of(draft, work.redactor),
        parent_id=None,
        at=at,
    )
    shared = _turn_before(work, recorder, branch)
    store_sessions.open_fork(work.tx, fork_id, source, shared)
    facts(work, draft, fork_id, None, at)
    forked = recorder_for(work, draft, fork_id)
    forked.ends = {}
    forked.add(branch.steps)
    forked.close()
    save_media(work, draft, fork_id, branch.steps)
    end = max(moments(branch.steps), default=at)
    store_sessions.update_session(work.tx, fork_id, status="exit", outcome="success", ended_at=end)
    store_sessions.touch(work.tx, fork_id, end)


def _turn_before(work: Import, recorder: Recorder, branch: Abandoned) -> tuple[int, int] | None:
    """Return the last turn that a branch shares with the main line, and its position; or None.

    The main line may end where the branch was left, so there is not always a turn beside it.
    """
    beside = recorder.turns.get(branch.turn)
    if beside is not None:
        position = store.position_of(work.tx, beside) - 1
        found = store.turn_at(work.tx, recorder.target.conversation_id, position)
        return None if found is None else (found, position)
    before = recorder.turns.get(branch.turn - 1)
    return None if before is None else (before, store.position_of(work.tx, before))
