"""Compactions in the record: what was said is summed up, and the summary stands for it from then.

Before a round that would be too long, the run sums up what was before (a hidden model task of its
own, with its receipt); in a conversation where nothing is answered, somebody may have it done: a
turn of the kind `compaction_summary`. Each function is one transaction's work and may be done again
(docs/decisions/0030).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from stenograph.clock import now
from stenograph.conversations import variant as variants
from stenograph.conversations.variant import Model
from stenograph.engine import (
    ending,
    fitting,
    history,
    rounds,
    store,
    summaries,
    summary_turn,
)
from stenograph.engine import room as rooms
from stenograph.engine import store_compaction as compactions
from stenograph.engine.choice import Choice, Failure, Rules, candidates, next_choice, settings_of
from stenograph.engine.fitting import KEPT, Split
from stenograph.engine.models import catalog
from stenograph.engine.models.answer import Response
from stenograph.engine.models.catalog import ModelId
from stenograph.engine.models.request import Message
from stenograph.engine.models.windows import window
from stenograph.engine.rounds import Round
from stenograph.engine.summaries import Extent, view
from stenograph.engine.summing import request
from stenograph.engine.units import Unit
from stenograph.engine.work import Work, hold, load
from stenograph.errors import StenographError
from stenograph.events.journal import Event, append
from stenograph.runs import invocation as invocations
from stenograph.runs import run as runs
from stenograph.runs import task as tasks
from stenograph.runs.invocation import Invocation
from stenograph.runs.run import Run
from stenograph.runs.task import Task
from stenograph.sessions import conversing
from stenograph.storage.database import Tx

#: The place behind everything that was said.
_END = 2**62


class Wish(msgspec.Struct, frozen=True, omit_defaults=True):
    """Who is to sum up, by name (`provider/model`), and how it is set; None: who answers."""

    model: str | None = None
    reasoning_enabled: bool | None = None
    reasoning_effort: str | None = None


@dataclass(frozen=True, slots=True)
class Asking:
    """Whom to ask for a summary after `wait` seconds, with what, and what it will stand for."""

    work: Work
    task_id: int
    key: str
    choice: Choice
    wait: float
    messages: tuple[Message, ...]
    extent: Extent
    turns: int
    tokens: int


def begin(tx: Tx, candidate: str, due: Round | None) -> str | None:
    """Return the key of the model task that sums up before a round, or (`due` None) as the turn
    itself; it is made if it is not there. None: there is nothing to do."""
    work = hold(tx, candidate) if due is not None else rounds.take_up(tx, candidate)
    if work is None or work.settled or work.run is None:
        return None
    if due is None or due.key is None:
        key = store.newest_round(tx, work.run.id) or tasks.add_round(tx, work.run).key
    else:
        key = _task_before(tx, work.run, tasks.find(tx, work.run, due.key))
    return key if tasks.find(tx, work.run, key).status not in tasks.TERMINAL else None


def _task_before(tx: Tx, run: Run, round: Task) -> str:
    found = compactions.made_for(tx, run.id, round.id)
    if found is not None:
        return str(found[0])
    key = compactions.asked_for(tx, run.id) or add(tx, run)
    compactions.assign(tx, tasks.find(tx, run, key).id, round.id)
    return key


def add(tx: Tx, run: Run, wish: Wish | None = None) -> str:
    """Add a model task that sums up before the run's next round; returns its key."""
    key = f"{compactions.NAME}-{compactions.count(tx, run.id) + 1}"
    made = tasks.add_round(tx, run, key=key, visibility="hidden")
    written = None if wish is None else msgspec.json.encode(wish).decode()
    compactions.assign(tx, made.id, None, written)
    return key


def question(
    tx: Tx, rules: Rules, candidate: str, key: str, due: Round | None, usual: Choice | None
) -> Asking | Failure | None:
    """Return whom to ask for a summary, or why nobody is any more; None: the turn has ended.

    `usual`: who answers the round.
    """
    work = load(tx, candidate)
    if work is None or work.settled or work.run is None:
        return None
    task = tasks.find(tx, work.run, key)
    given = compactions.wish(tx, task.id)
    try:
        whom = _whom(work, rules, usual, given)
    except StenographError as error:
        return Failure(error.code, error.message)
    size = window(whom[0], work.variant.prompt)
    told = history.units(tx, view(work), _END if due is None else due.position)
    by_itself = due is not None and given is None
    parts = fitting.split(told, int(size * KEPT) if by_itself else 0)
    if not any(unit.kind != "summary" for unit in parts.replaced):
        return Failure("nothing_to_compact", "There is nothing to sum up")
    tried = store.attempts(tx, task_id=task.id, variant_id=None)
    chosen = next_choice(rooms.forgiven(tried), [whom], rules)
    if isinstance(chosen, Failure):
        return chosen
    return Asking(
        work=work,
        task_id=task.id,
        key=key,
        choice=chosen[0],
        wait=chosen[1],
        # A record that the model finds too long is told again by half, and by half of that.
        messages=request(_record(told, parts), size >> rooms.too_long(tried)),
        extent=_extent(tx, work, parts, _END if due is None else due.position),
        turns=sum(unit.kind == "turn" for unit in parts.replaced),
        tokens=fitting.total(told),
    )


def _record(told: Sequence[Unit], parts: Split) -> list[Unit]:
    """Return what is to be read for a summary: what it stands for, and the running turn's prompt,
    without which its rounds make no sense."""
    replaced = {id(unit) for unit in parts.replaced}
    return [unit for unit in told if id(unit) in replaced or unit.kind == "prompt"]


def _whom(
    work: Work, rules: Rules, usual: Choice | None, given: str | None
) -> tuple[ModelId, Model]:
    wish = Wish() if given is None else msgspec.json.decode(given, type=Wish)
    if wish.model is not None:
        wanted = catalog.parse(wish.model, rules.endpoints)
        return wanted, settings_of(wanted, wish.reasoning_enabled, wish.reasoning_effort)
    found = candidates(work, rules)[0] if usual is None else (usual.id, usual.model)
    if wish.reasoning_enabled is None and wish.reasoning_effort is None:
        return found
    return found[0], settings_of(found[0], wish.reasoning_enabled, wish.reasoning_effort)


def _extent(tx: Tx, work: Work, parts: Split, before: int) -> Extent:
    """Say where what stays begins; rounds of the running turn that an earlier summary stood for
    are counted on."""
    kept = [unit for unit in parts.kept if unit.kind == "turn"]
    own = [unit for unit in parts.kept if unit.kind in ("round", "steer")]
    gone = sum(unit.kind == "round" for unit in parts.replaced)
    former = summaries.newest(tx, view(work), before)
    counted = former is not None and former.variant_id == work.variant.id
    return Extent(
        turn=kept[0].at if kept else work.turn.position,
        step=own[0].at if own else 0,
        rounds=gone + (former.extent.rounds if counted and former else 0),
    )


def ask(tx: Tx, asking: Asking) -> Invocation | None:
    """Write that a model is asked for a summary, and what; None: the turn has ended meanwhile."""
    work = hold(tx, asking.work.candidate)
    if work is None or work.settled or work.run is None:
        return None
    model = asking.choice.model
    made = invocations.select(tx, work.run, tasks.find(tx, work.run, asking.key), model)
    options: dict[str, Any] = {
        "model": str(asking.choice.id),
        "reasoning_enabled": model.reasoning_enabled,
        "reasoning_effort": model.reasoning_effort,
        "tool_names": [],
    }
    invocations.seal(tx, made, history.entries(asking.messages), options)
    return made


def hear(tx: Tx, asking: Asking, made: Invocation, response: Response, due: Round | None) -> None:
    """Write a summary: the model call with its receipt, the step of the compaction, and that the
    round it was made for comes after it."""
    work = hold(tx, asking.work.candidate)
    if work is None or work.run is None:
        return
    tried = store.attempts(tx, task_id=asking.task_id, variant_id=None)
    about: dict[str, int | str] = {"kind": compactions.NAME, "attempts": len(tried)}
    kept = rounds.keep(tx, work, made, response, about)
    if kept is None:
        return
    text = kept[0]
    tasks.settle(tx, work.run, tasks.find(tx, work.run, asking.key))
    store.add_step(
        tx,
        work.conversation.id,
        turn_id=work.turn.id,
        variant_id=work.variant.id,
        task_id=asking.task_id,
        at=now(),
    )
    step_id = summaries.write(tx, work, text, asking.extent)
    if due is not None and due.key is not None:
        compactions.put_behind(tx, work.conversation.id, tasks.find(tx, work.run, due.key).id)
    payload = {
        "summary_task_key": asking.key,
        "turns": asking.turns,
        "rounds": asking.extent.rounds,
        "tokens_before": asking.tokens,
        "summary_tokens": fitting.tokens(text),
    }
    if due is not None:
        payload["task_key"] = due.key or ""
    append(
        tx,
        work.conversation.id,
        Event(
            "context_compacted",
            work.turn.id,
            work.variant.id,
            work.run.id,
            asking.task_id,
            step_id,
            payload,
        ),
    )
    if due is None:
        _deliver(tx, work, text, made.model)


def _deliver(tx: Tx, work: Work, text: str, model: Model) -> None:
    assert work.run is not None
    runs.move(tx, work.run, "completed")
    variants.settle(tx, work.turn, work.variant, "completed", content=text, model=model)
    summary_turn.leave(tx, work)
    conversing.go_on(tx, work.conversation.id)


def give_up(tx: Tx, candidate: str, key: str, failure: Failure, due: Round | None) -> None:
    """Write that there is no summary: a run goes on without, a turn that was only that fails."""
    work = hold(tx, candidate)
    if work is None or work.settled or work.run is None:
        return
    task = tasks.find(tx, work.run, key)
    skipped = failure.kind == "nothing_to_compact"
    tasks.settle(tx, work.run, task, "skipped" if skipped else "failed", error=failure.message)
    if due is None:
        ending.fail(tx, work, "failed", failure.kind)


def run_out(tx: Tx, candidate: str, due: Round | None) -> None:
    """End a turn that was only a summary because its time was up; a round's is looked after."""
    work = hold(tx, candidate)
    if work is not None and not work.settled and due is None:
        ending.fail(tx, work, "timed_out", "budget_wall_clock")
