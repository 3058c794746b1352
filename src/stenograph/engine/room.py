"""Whether what a model is to be told fits its window, and what is done if not.

Beyond `fitting.FULL` of the window a run's history is summed up before the round is asked, once a
round (`compaction`). Where that is not possible, or has failed, the oldest of it is left out: of
that request, never of the record. A provider that finds a request too long is asked again with
less, twice.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from stenograph.engine import assembly, fitting, history, store_assembly, store_compaction
from stenograph.engine.choice import Choice, Failure, failure_of
from stenograph.engine.fitting import FULL, KEPT
from stenograph.engine.models.request import Message, Reasoning
from stenograph.engine.models.windows import window
from stenograph.engine.summaries import view
from stenograph.engine.units import Unit
from stenograph.engine.work import Work
from stenograph.events.journal import Event, append
from stenograph.runs import approval
from stenograph.runs import task as tasks
from stenograph.runs.invocation import Invocation
from stenograph.runs.run import Run
from stenograph.storage.database import Row, Tx

#: How often a model may find one round too long before that is its failure.
_AGAIN = 2
#: Compactions of a run that may fail before none is tried any more.
_FAILURES = 2
#: The share of a window that a compaction has to replace to be worth a model call.
_WORTH = 0.1
_TOO_LONG = "context_too_long"


@dataclass(frozen=True, slots=True)
class Room:
    """What a model is told, about how many tokens that is, and how many it takes.

    `compacts`: it is summed up first. `lost`: how many turns and rounds were left out, as
    there is no room for them, or as the input wants it.
    """

    messages: tuple[Message, ...]
    tokens: int
    window: int
    compacts: bool = False
    lost: int = 0


def forgiven(tried: Sequence[Row]) -> list[Row]:
    """Return the attempts (rows of `store.attempts`) without those that were only too long, as long
    as less may help."""
    found: list[Row] = []
    seen: dict[tuple[str, str], int] = {}
    for row in tried:
        if _is_too_long(row):
            seen[row[2], row[3]] = seen.get((row[2], row[3]), 0) + 1
            if seen[row[2], row[3]] <= _AGAIN:
                continue
        found.append(row)
    return found


def too_long(tried: Sequence[Row]) -> int:
    """Return how many of the attempts were only too long."""
    return sum(map(_is_too_long, tried))


def _is_too_long(row: Row) -> bool:
    failure = failure_of(row)
    return failure is not None and failure.kind == _TOO_LONG


def prepare(
    tx: Tx, work: Work, key: str | None, position: int, choice: Choice, tried: Sequence[Row]
) -> Room | Failure:
    """Return what a round (`key`; None: a direct reply) at a place is to be asked with, or the
    failure if it is too long and nothing can be left out."""
    size = window(choice.id, work.variant.prompt)
    told = fitting.shortened(history.units(tx, view(work), position), size)
    told, apart = assembly.limited(told, work.wishes, size)
    measured = fitting.measure(told)
    counted = measured is None or not (
        store_compaction.was_trimmed(tx, measured) or store_assembly.was_asked_apart(tx, measured)
    )
    tokens = fitting.total(told, counted=counted)
    limit = int(size * FULL)
    mine = (choice.id.provider_id, choice.id.model_ref)
    refused = [row for row in tried if _is_too_long(row) and (row[2], row[3]) == mine]
    made: str | None = None
    if work.run is not None and key is not None:
        made = _made(tx, work.run, key)
        asked = store_compaction.asked_for(tx, work.run.id) is not None
        over = tokens > limit or (bool(refused) and made is None)
        if made not in tasks.TERMINAL and (
            asked or made is not None or (over and _may(tx, work) and _pays(told, size, refused))
        ):
            return Room(history.flat(told), tokens, size, compacts=True)
    less = len(refused) - (made == "completed")
    lost = 0
    most = min(limit, tokens >> max(less, 0))
    if tokens > most:
        # The estimate is scaled: the units are measured by their bytes, the whole was counted.
        whole = fitting.total(told, counted=False)
        told, lost = fitting.trimmed(told, most * whole // max(tokens, 1))
        if less > 0 and not lost:
            failure = failure_of(refused[-1])
            assert failure is not None
            return failure
        tokens = tokens * fitting.total(told, counted=False) // max(whole, 1)
    return Room(history.flat(told), tokens, size, lost=lost + apart)


def _made(tx: Tx, run: Run, key: str) -> str | None:
    found = store_compaction.made_for(tx, run.id, tasks.find(tx, run, key).id)
    return None if found is None else found[1]


def _may(tx: Tx, work: Work) -> bool:
    assert work.run is not None
    if not approval.read_policy(work.options).compaction:
        return False
    return store_compaction.failures(tx, work.run.id) < _FAILURES


def _pays(told: Sequence[Unit], size: int, refused: Sequence[Row]) -> bool:
    """Tell whether summing up would make room: one summary for another would not."""
    replaced = [it for it in fitting.split(told, int(size * KEPT)).replaced if it.kind != "summary"]
    least = 0 if refused else int(size * _WORTH)
    return bool(replaced) and sum(fitting.length(it.messages) for it in replaced) >= least


def tell(tx: Tx, work: Work, room: Room, made: Invocation, task_key: str | None) -> None:
    """Say that a request holds less than what was said: turns, or reasoning that only another
    provider could read."""
    key = {} if task_key is None else {"task_key": task_key}
    about = (work.turn.id, work.variant.id, made.run_id, made.task_id, None)
    if room.lost:
        payload = {**key, "left_out": room.lost, "window_tokens": room.window}
        append(tx, work.conversation.id, Event("context_trimmed", *about, payload))
    lost = _unreadable(room.messages, made.model.provider_id)
    if lost and _is_new(tx, made):
        payload = {**key, "provider_id": made.model.provider_id, "messages": lost}
        append(tx, work.conversation.id, Event("reasoning_replay_downgraded", *about, payload))


def _unreadable(messages: Sequence[Message], provider_id: str | None) -> int:
    own = f'{{"provider_id": "{provider_id}"'
    return sum(
        isinstance(part, Reasoning) and part.trace is not None and not part.trace.startswith(own)
        for message in messages
        for part in message.parts
    )


def _is_new(tx: Tx, made: Invocation) -> bool:
    """Tell whether a run asks this provider for the first time in a row."""
    if made.run_id is None:
        return True
    last = store_compaction.last_provider(tx, made.run_id, made.id)
    return last != made.model.provider_id
