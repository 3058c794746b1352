"""Branches of a log that a person left by rewinding.

A person may come back to one, go on, and leave it again: what the record has of it is then
written anew, so that nothing is told or counted twice.
"""

from dataclasses import dataclass

from stenograph.clock import now
from stenograph.conversations import fork
from stenograph.conversations.fork import Point
from stenograph.sessions import store as sessions
from stenograph.storage.database import Tx
from stenograph.trajectories.importers.draft import Abandoned, SessionDraft, StepDraft
from stenograph.trajectories.recording import store, store_branches, store_sessions
from stenograph.trajectories.recording.columns import plain
from stenograph.trajectories.recording.session import (
    Import,
    begin,
    moment,
    moments,
    recorder_for,
    save_media,
)
from stenograph.trajectories.recording.store_branches import Left
from stenograph.trajectories.recording.turns import Recorder, start_variant


@dataclass(frozen=True, slots=True)
class Difference:
    """Where the log and the record differ in the branches that were left."""

    missing: list[Abandoned]
    #: What the log tells otherwise now: it went on, or is the main line again.
    stale: list[Left]


def difference(tx: Tx, draft: SessionDraft, conversation_id: int) -> Difference:
    """Compare the branches of a log with those that the record has of it."""
    missing = [branch for branch in draft.abandoned if branch.steps]
    unmatched = []
    for known in store_branches.left(tx, conversation_id):
        same = next((b for b in missing if _is_told(known, b)), None)
        if same is None:
            unmatched.append(known)
        else:
            missing.remove(same)
    if not unmatched:
        return Difference(missing, [])
    told = {_identity(step) for step in draft.steps}
    told |= {_identity(step) for branch in missing for step in branch.steps}
    stale = [
        known
        for known in unmatched
        if not told.isdisjoint(known.steps)
        and (known.fork_id is None or not store_branches.is_used(tx, known.fork_id))
    ]
    return Difference(missing, stale)


def _identity(step: StepDraft) -> str:
    return step.key if step.key is not None else store.digest(step).hex()


def _is_told(known: Left, branch: Abandoned) -> bool:
    """Tell whether the record has just this branch (a step without identity may be any)."""
    return len(known.steps) == len(branch.steps) and all(
        identity in (None, _identity(step))
        for identity, step in zip(known.steps, branch.steps, strict=True)
    )


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
    fork_id = begin(work, draft, None, at)
    shared = _turn_before(work, recorder, branch)
    fork.link(work.tx, fork_id, source, shared)
    forked = recorder_for(work, draft, fork_id)
    forked.ends = {}
    forked.add(branch.steps)
    forked.close()
    save_media(work, draft, fork_id, branch.steps)
    end = max(moments(branch.steps), default=at)
    sessions.update(work.tx, fork_id, status="exit", outcome="success", ended_at=end)
    store_sessions.touch(work.tx, fork_id, end)


def _turn_before(work: Import, recorder: Recorder, branch: Abandoned) -> Point | None:
    """Return the last turn that a branch shares with the main line; or None.

    The main line may end where the branch was left, so there is not always a turn beside it.
    """
    beside = recorder.turns.get(branch.turn)
    if beside is not None:
        position = store.position_of(work.tx, beside) - 1
        found = store.turn_at(work.tx, recorder.target.conversation_id, position)
        return None if found is None else Point(found, position)
    before = recorder.turns.get(branch.turn - 1)
    return None if before is None else Point(before, store.position_of(work.tx, before))
