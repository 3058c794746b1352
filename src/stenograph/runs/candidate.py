"""A candidate answer with the run behind it: finding one, and what was sent for it."""

from dataclasses import dataclass

from stenograph.conversations import turn as turns
from stenograph.conversations import variant as variants
from stenograph.conversations.access import Conversation
from stenograph.conversations.turn import Turn
from stenograph.conversations.variant import Variant
from stenograph.errors import GoneError
from stenograph.runs import request as requests
from stenograph.runs import run as runs
from stenograph.runs import store
from stenograph.runs.request import Request
from stenograph.runs.run import Run
from stenograph.runs.task import Task
from stenograph.storage.database import Tx


@dataclass(frozen=True, slots=True)
class Candidate:
    """A candidate of a turn, and its run if a run answers it."""

    turn: Turn
    variant: Variant
    run: Run | None


def find(tx: Tx, conversation: Conversation, turn_id: str, variant_id: str) -> Candidate:
    """Return a candidate by its public ids; a hidden turn's is found, a concealed one's is not.

    Raises `NotFoundError`.
    """
    turn = turns.find(tx, conversation, turn_id)
    variant = variants.find(tx, turn, variant_id)
    return Candidate(turn, variant, runs.of(tx, variant))


def require_details(candidate: Candidate) -> None:
    """Raise `GoneError` if retention has collected the details of the candidate or its run."""
    if candidate.variant.details_pruned_at is not None:
        raise GoneError
    if candidate.run is not None:
        runs.require_details(candidate.run)


def request(tx: Tx, candidate: Candidate) -> Request:
    """Return what was sent for a direct reply, or in the first round of a run.

    Raises `GoneError`, or `NotFoundError` `request_not_sealed`.
    """
    require_details(candidate)
    if candidate.run is not None:
        return requests.read(tx, store.first_selected(tx, candidate.run.id))
    return requests.read(tx, candidate.variant.invocation_id)


def task_request(tx: Tx, task: Task) -> Request:
    """Return what was sent in one round. Raises `NotFoundError` `request_not_sealed`."""
    return requests.read(tx, task.selected_invocation_id)
