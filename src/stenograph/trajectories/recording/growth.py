"""A log that is seen again: where it agrees with the record, and what is taken from it.

What is there already is compared step by step; from the first difference on, the log's word is
taken. A log that is the same changes nothing, and one that is shorter than before neither: the
record forgets nothing that it was shown, unless retention says so.
"""

from collections.abc import Sequence

from stenograph.errors import ForbiddenError
from stenograph.storage.database import Tx
from stenograph.trajectories.importers.draft import SessionDraft, StepDraft
from stenograph.trajectories.recording import store, store_branches, store_sessions
from stenograph.trajectories.recording.branches import Difference, difference
from stenograph.trajectories.recording.creation import finish
from stenograph.trajectories.recording.session import Change, Import, recorder_for
from stenograph.trajectories.recording.turns import COMPLETED, OpenTurn, Recorder


def grow(
    work: Import, known: store_sessions.StoredImport, draft: SessionDraft, warnings: list[str]
) -> Change:
    """Bring a session to what its log says now."""
    line = store.main_line(work.tx, known.conversation_id)
    same = _agreeing(line, draft.steps)
    older = sum(map(len, draft.originals.values())) < known.size
    if len(draft.steps) < len(line) and (
        older or (same == len(draft.steps) and not draft.abandoned)
    ):
        warnings.append(
            f"The log holds {len(draft.steps)} steps, the record {len(line)}:"
            " nothing was taken from it."
        )
        return "unchanged"
    branches = difference(work.tx, draft, known.conversation_id)
    grows = (
        not same == len(line) == len(draft.steps)
        or bool(branches.missing or branches.stale)
        or _ends_otherwise(work.tx, known, draft)
    )
    if grows and not (work.caller.is_admin or work.caller.principal_id == known.owner_id):
        raise ForbiddenError(
            "Somebody else imported this log; only they or an administrator may add to it",
            code="forbidden",
        )
    if _takes_from_forks(work.tx, known, line, same, branches):
        warnings.append(
            "A fork was made of what the log now tells otherwise: nothing was taken from it."
        )
        return "unchanged"
    store_sessions.save_originals(work.tx, known.id, draft.originals)
    if not grows:
        return "unchanged"
    for branch in branches.stale:
        store_branches.forget(work.tx, branch)
    recorder = recorder_for(work, draft, known.conversation_id)
    _rewind(work.tx, recorder, line, same, draft.steps)
    recorder.add(draft.steps[same:])
    finish(work, draft, recorder, known.conversation_id)
    store_sessions.set_steps(work.tx, known.id, len(draft.steps))
    return "grown"


def _ends_otherwise(tx: Tx, known: store_sessions.StoredImport, draft: SessionDraft) -> bool:
    """Tell whether the log now knows another end of its last turn."""
    last = store.last_turn(tx, known.conversation_id)
    if last is not None and not last.pruned:
        prompts = store.prompts(tx, known.conversation_id)
        if draft.turn_ends.get(prompts - 1, COMPLETED)[0] != last.status:
            return True
    return False


def _takes_from_forks(
    tx: Tx,
    known: store_sessions.StoredImport,
    line: Sequence[store.StoredStep],
    same: int,
    branches: Difference,
) -> bool:
    """Tell whether a turn would go that a fork shows, which somebody made or uses."""
    kept = {step.turn_id for step in line[:same]}
    gone = [step.turn_id for step in line[same:] if step.turn_id not in kept and step.turn_id]
    if not gone:
        return False
    stale = [branch.fork_id for branch in branches.stale if branch.fork_id is not None]
    last = store_branches.last_shared(tx, known.conversation_id, stale)
    return last >= 0 and store.position_of(tx, gone[0]) <= last


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
    if last is None or last.pruned:
        return  # a turn whose details were deleted takes no new ones; what follows is a new turn
    round = store.rounds(tx, last.run_id) + 1
    continues = same == len(steps) or steps[same].part != "prompt"
    cut = any(step.turn_id == last.id for step in dropped)
    ends_otherwise = recorder.ends.get(ordinal, COMPLETED)[0] != last.status
    if continues or cut or ends_otherwise or round == 1:
        recorder.open = OpenTurn(last.id, last.variant_id, last.run_id, ordinal, round)
