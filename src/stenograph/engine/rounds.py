"""The rounds of a candidate in the record: where it stands, a model call begun, settled, lost.

Each function is one transaction's work and may be done again: it looks for what is missing
(docs/decisions/0030).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from stenograph.clock import now
from stenograph.conversations import steering
from stenograph.conversations import variant as variants
from stenograph.conversations.variant import Model, model_of
from stenograph.engine import assembly, budget, ending, finish, history, store, store_compaction
from stenograph.engine import room as rooms
from stenograph.engine.choice import Choice, Failure, InvocationRest, Rules, candidates, next_choice
from stenograph.engine.models.answer import Response
from stenograph.engine.models.answer import Usage as Counted
from stenograph.engine.models.catalog import ModelId
from stenograph.engine.models.failures import ModelFailedError
from stenograph.engine.models.pricing import cost_usd
from stenograph.engine.models.request import ToolCall
from stenograph.engine.results import Secrets, beginning, no_secrets, storable
from stenograph.engine.room import Room
from stenograph.engine.toolbox import ToolSpec
from stenograph.engine.work import Work, hold, load
from stenograph.errors import StenographError
from stenograph.runs import approval
from stenograph.runs import invocation as invocations
from stenograph.runs import run as runs
from stenograph.runs import task as tasks
from stenograph.runs.invocation import Invocation, Usage
from stenograph.runs.task import Call, Task
from stenograph.sessions import conversing
from stenograph.storage.database import Row, Tx
from stenograph.trajectories.atif.reading import is_deep
from stenograph.trajectories.atif.rules import MAX_FREE_NESTING

#: Characters of what a provider says of a failure.
_MESSAGE = 4_000
#: Kinds of failure that cost nothing, by what the providers say: there was no answer to bill.
_UNBILLED = frozenset(
    {
        "rate_limited", "overloaded", "quota_exhausted", "unauthorized", "invalid_request",
        "context_too_long",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Round:
    """A model call that is due. `key` is None for a direct reply, `position` its place in the
    trajectory."""

    key: str | None
    position: int


@dataclass(frozen=True, slots=True)
class Question:
    """What a model is asked, and who is, after `wait` seconds."""

    work: Work
    choice: Choice
    wait: float
    room: Room


def begin(tx: Tx, rules: Rules, candidate: str) -> Round | list[str] | None:
    """Return what a candidate waits for: a model call, the calls of these keys, or nothing more."""
    work = take_up(tx, candidate)
    if work is None:
        return None
    try:
        limits = budget.read(work.options)
        candidates(work, rules)
    except StenographError as error:
        ending.fail(tx, work, "failed", error.code)
        return None
    newest = None
    if work.run is not None and (key := store.newest_round(tx, work.run.id)) is not None:
        newest = tasks.find(tx, work.run, key)
        if newest.status in tasks.TERMINAL:
            due = _after(tx, work, newest)
            if due is not None:
                return due or None
    place = store.step_position(tx, work.variant.id, None if newest is None else newest.id)
    if newest is not None and newest.status not in tasks.TERMINAL and place is not None:
        return Round(newest.key, _told_now(tx, work, newest) or place)
    if work.is_reply and place is not None:
        return Round(None, place)
    if (limit := budget.exceeded(tx, work, limits)) is not None:
        status: ending.End = "timed_out" if limit == "wall_clock" else "failed"
        ending.fail(tx, work, status, f"budget_{limit}")
        return None
    return _open(tx, work, newest)


def take_up(tx: Tx, candidate: str) -> Work | None:
    """Hold a candidate, account for calls that were lost, and say that it is worked on; a
    run-backed one gets its run. None: it has its end."""
    work = hold(tx, candidate)
    if work is None:
        return None
    bill_lost(tx, work)
    return None if work.settled else _started(tx, work)


def _started(tx: Tx, work: Work) -> Work:
    if work.variant.status == "pending":
        store.run_candidate(tx, work.variant.id)
        variants.project(tx, work.turn, work.variant.id, "running")
        if work.instructions:
            store.add_system_step(tx, work.conversation.id, work.instructions, now())
    if work.run is None and not work.is_reply:
        usual = approval.read_policy(work.options).mode
        mode = approval.tightened(usual, work.wishes.approval_mode)
        runs.open(tx, work.turn, work.variant, approval_mode=mode)
    found = load(tx, work.candidate)
    assert found is not None
    return found


def _after(tx: Tx, work: Work, round: Task) -> list[str] | None:
    """Return the calls of a settled round that wait, [] when it was the last; None: go on.

    What a person said since is read before anything counts as the end.
    """
    calls = store.calls_of(tx, round.id)
    waiting = [key for key, status, _ in calls if status not in tasks.TERMINAL]
    if waiting:
        return waiting
    conversing.take_steers(tx, work.conversation.id, work.turn.id, work.variant.id)
    if store.is_steered(tx, work.variant.id):
        return None
    assert work.run is not None
    declared = [
        tasks.find(tx, work.run, key)
        for key, status, name in calls
        if name == finish.NAME and status == "completed"
    ]
    if declared:
        said = finish.declared(store.call_details(tx, declared[-1].id)[0])
        model, message = _answer(tx, round)
        ending.deliver(tx, work, said.summary or message or "", model, outcome=said.outcome)
        return []
    if not calls:
        model, message = _answer(tx, round)
        ending.deliver(tx, work, message or "", model)
        return []
    return None


def _told_now(tx: Tx, work: Work, round: Task) -> int | None:
    """Let what is to be said at once go before a round that has no answer, and return the place
    that the round has then; None: there is nothing."""
    if not steering.is_urgent(tx, work.variant.id):
        return None
    conversing.take_steers(tx, work.conversation.id, work.turn.id, work.variant.id)
    store_compaction.put_behind(tx, work.conversation.id, round.id)
    return store.step_position(tx, work.variant.id, round.id)


def _answer(tx: Tx, round: Task) -> tuple[Model, str | None]:
    assert round.selected_invocation_id is not None
    *model, message = store.answer(tx, round.selected_invocation_id)
    return model_of(*model), message


def _open(tx: Tx, work: Work, newest: Task | None) -> Round:
    """Add the next round, and give it its place in the trajectory."""
    added: Task | None = None
    if work.run is not None:
        conversing.take_steers(tx, work.conversation.id, work.turn.id, work.variant.id)
        after = []
        if newest is not None:
            calls = store.calls_of(tx, newest.id)
            after = [tasks.find(tx, work.run, key) for key, _, _ in calls[:1]]
        added = tasks.add_round(tx, work.run, after=after)
    position = store.add_step(
        tx,
        work.conversation.id,
        turn_id=work.turn.id,
        variant_id=work.variant.id,
        task_id=None if added is None else added.id,
        at=now(),
    )
    return Round(None if added is None else added.key, position)


def question(tx: Tx, rules: Rules, candidate: str, due: Round) -> Question | Failure | None:
    """Return what to ask and whom, or why nobody is asked any more; None: the turn has ended."""
    work = load(tx, candidate)
    if work is None or work.settled:
        return None
    tried = _tried(tx, work, due)
    chosen = next_choice(rooms.forgiven(tried), candidates(work, rules), rules)
    if isinstance(chosen, Failure):
        return chosen
    choice, wait = chosen
    room = rooms.prepare(tx, work, due.key, due.position, choice, tried)
    return room if isinstance(room, Failure) else Question(work, choice, wait, room)


def _tried(tx: Tx, work: Work, due: Round) -> list[Row]:
    if work.run is None or due.key is None:
        return store.attempts(tx, task_id=None, variant_id=work.variant.id)
    return store.attempts(tx, task_id=tasks.find(tx, work.run, due.key).id, variant_id=None)


def ask(tx: Tx, asked: Question, due: Round, tools: Mapping[str, ToolSpec]) -> Invocation | None:
    """Write that a model is asked, and what; None: the turn has ended meanwhile."""
    work = hold(tx, asked.work.candidate)
    if work is None or work.settled:
        return None
    model = asked.choice.model
    if work.run is not None and due.key is not None:
        round = tasks.find(tx, work.run, due.key)
        made = invocations.select(tx, work.run, round, model)
    else:
        made = invocations.attach(tx, work.turn, work.variant, model)
    options = {
        "model": str(asked.choice.id),
        "reasoning_enabled": model.reasoning_enabled,
        "reasoning_effort": model.reasoning_effort,
        "tool_names": sorted(tools),
        **assembly.options(work.wishes),
    }
    if tools:
        definitions = _encoded([tools[name].definition for name in sorted(tools)])
        store.keep_tools(tx, work.conversation.id, definitions)
    invocations.seal(tx, made, history.entries(asked.room.messages), options)
    rooms.tell(tx, work, asked.room, made, due.key)
    return made


def hear(
    tx: Tx, candidate: str, made: Invocation, due: Round, response: Response
) -> list[str] | None:
    """Write what a model answered: returns the keys of what it calls, [] to go on, None: ended.

    An answer that comes after the turn's end is not kept, but it was billed.
    """
    work = hold(tx, candidate)
    if work is None:
        return None
    if work.settled:
        _bill_late(tx, work, made, _usage(response.usage, response.cost_usd))
        return None
    kept = keep(tx, work, made, response, {"attempts": len(_tried(tx, work, due))})
    if kept is None:
        return None
    text, reasoning, trace = kept
    if work.run is None or due.key is None:
        ending.deliver(tx, work, text, made.model, reasoning=reasoning, reasoning_trace=trace)
        return None
    round = tasks.settle(tx, work.run, tasks.find(tx, work.run, due.key))
    made_calls = _add_calls(tx, work, round, response.tool_calls)
    if made_calls:
        return made_calls
    due_next = _after(tx, work, round)
    return [] if due_next is None else None


def keep(
    tx: Tx, work: Work, made: Invocation, response: Response, about: dict[str, int | str]
) -> tuple[str, str | None, str | None] | None:
    """Write what a model answered and what it took: returns text, reasoning and trace.

    None: somebody else wrote the call's end. `about` is for the export; a first attempt is not
    worth a word.
    """
    usage = _usage(response.usage, response.cost_usd)
    if work.settled or store.invocation_status(tx, made.id) != "running":
        _bill_late(tx, work, made, usage)
        return None
    text, reasoning = storable(response.text), storable(response.reasoning) or None
    trace = None if response.reasoning_trace is None else storable(response.reasoning_trace)
    invocations.settle(
        tx,
        made,
        message=text,
        reasoning=reasoning,
        reasoning_trace=trace,
        response=storable(response.response),
        usage=usage,
    )
    store.note_invocation(
        tx, made.id, llm_call_count=response.llm_call_count, rest=_rest(response, about)
    )
    return text, reasoning, trace


def _rest(response: Response, about: dict[str, int | str]) -> str | None:
    """Write what an export says of a model call besides its columns."""
    counts = {
        **response.usage.details,
        "cache_write_tokens": response.usage.cache_write_tokens,
        "reasoning_tokens": response.usage.reasoning_tokens,
    }
    known = {name: count for name, count in counts.items() if count is not None}
    own = {name: value for name, value in about.items() if (name, value) != ("attempts", 1)}
    rest = InvocationRest(
        extra={"stenograph": own} if own else msgspec.UNSET,
        metrics={"extra": known} if known else None,
    )
    return None if rest == InvocationRest() else _json(rest)


def _add_calls(tx: Tx, work: Work, round: Task, calls: tuple[ToolCall, ...]) -> list[str]:
    if not calls:
        return []
    assert work.run is not None
    inputs = [_input(call) for call in calls]
    ids = _apart([storable(call.id) for call in calls])
    added = tasks.add_calls(
        tx,
        work.run,
        round,
        [
            Call(storable(call.name), arguments, call_id)
            for call, call_id, (arguments, _) in zip(calls, ids, inputs, strict=True)
        ],
    )
    for made, (_, written) in zip(added, inputs, strict=True):
        if written is not None:
            store.set_rest(tx, made.id, _json(history.rest_of_call(written)))
    return [made.key for made in added]


def _apart(ids: Sequence[str]) -> list[str]:
    """Return ids of which none is there twice: results find their calls by them."""
    known: dict[str, None] = {}
    for number, name in enumerate(ids):
        while name in known:
            name = f"{name}-{number}"
        known[name] = None
    return list(known)


def _input(call: ToolCall) -> tuple[str, str | None]:
    """Return a call's arguments as the record keeps them, a JSON object that an export may hold,
    and as they were written where that is something else."""
    if is_deep(call.arguments.encode("utf-8", "surrogatepass"), MAX_FREE_NESTING):
        return "{}", call.arguments
    try:
        if isinstance(msgspec.json.decode(call.arguments), dict):
            return call.arguments, None
    except (msgspec.DecodeError, UnicodeEncodeError):
        pass
    return "{}", call.arguments


def miss(
    tx: Tx,
    candidate: str,
    made: Invocation,
    failure: ModelFailedError,
    *,
    at_deadline: bool,
    secrets: Secrets = no_secrets,
) -> None:
    """Write that a model gave no answer, and what it billed for that."""
    work = hold(tx, candidate)
    if work is None:
        return
    usage = None
    if failure.usage is not None:
        usage = _usage(failure.usage, failure.cost_usd)
    elif failure.kind not in _UNBILLED:
        usage = _usage(Counted(), cost_usd(_id(made.model), Counted()))
    if _is_forgotten(work) or store.invocation_status(tx, made.id) != "running":
        _bill_late(tx, work, made, usage)
        return
    invocations.settle(tx, made, "timed_out" if at_deadline else "failed", usage=usage)
    message = storable(failure.message)
    if len(message) > _MESSAGE:
        message = beginning(message, _MESSAGE, secrets(tx, work.conversation.id))
    kept = Failure(failure.kind, message, failure.retry_after)
    store.note_invocation(
        tx,
        made.id,
        llm_call_count=0 if usage is None else 1,
        rest=_json(InvocationRest(failure=kept)),
    )


def hang_up(tx: Tx, candidate: str, made: Invocation) -> None:
    """Write that a model call was ended because there is something to tell the model first. What it
    took until then no provider says."""
    work = hold(tx, candidate)
    if work is None:
        return
    usage = _usage(Counted(), cost_usd(_id(made.model), Counted()))
    if _is_forgotten(work) or store.invocation_status(tx, made.id) != "running":
        _bill_late(tx, work, made, usage)
        return
    invocations.settle(tx, made, "canceled", usage=usage)
    store.note_invocation(tx, made.id, llm_call_count=1, rest=None)


def _bill_late(tx: Tx, work: Work, made: Invocation, usage: Usage | None) -> None:
    """Account for a model call whose end somebody else wrote."""
    if _is_forgotten(work):
        if usage is not None:
            invocations.charge(tx, made, usage, forgotten=True)
        return
    if usage is not None and not store.is_billed(tx, made.id):
        invocations.charge(tx, made, usage)
    store.note_invocation(tx, made.id, llm_call_count=0 if usage is None else 1, rest=None)


def _is_forgotten(work: Work) -> bool:
    """Tell whether retention has taken a candidate's model calls; their row ids may be others'."""
    run = work.run
    pruned_at = work.variant.details_pruned_at or (None if run is None else run.details_pruned_at)
    return pruned_at is not None


def give_up(tx: Tx, candidate: str, due: Round, reason: str, message: str) -> None:
    """End a turn whose model gives no answer any more."""
    _end(tx, candidate, due, "failed", reason, message)


def run_out(tx: Tx, candidate: str, due: Round) -> None:
    """End a turn whose time was up while a model was asked."""
    _end(tx, candidate, due, "timed_out", "budget_wall_clock", "The time of the turn was up")


def _end(
    tx: Tx,
    candidate: str,
    due: Round,
    status: Literal["failed", "timed_out"],
    reason: str,
    message: str,
) -> None:
    work = hold(tx, candidate)
    if work is None or work.settled:
        return
    if work.run is not None and due.key is not None:
        round = tasks.find(tx, work.run, due.key)
        tasks.settle(tx, work.run, round, status, error=storable(message))
    ending.fail(tx, work, status, reason)


def bill_lost(tx: Tx, work: Work) -> None:
    """Account for model calls that a process took with it: nobody knows what they cost."""
    run_id = None if work.run is None else work.run.id
    for row_id, task_id, status, *model in store.unbilled(tx, work.variant.id, run_id):
        lost = Invocation(
            row_id,
            work.conversation.id,
            work.turn.id,
            work.variant.id,
            run_id,
            task_id,
            model_of(*model),
        )
        usage = _usage(Counted(), cost_usd(_id(lost.model), Counted()))
        if status == "running":
            invocations.settle(tx, lost, "failed", usage=usage)
        else:
            invocations.charge(tx, lost, usage)
        store.note_invocation(tx, row_id, llm_call_count=1, rest=None)


def _id(model: Model) -> ModelId:
    return ModelId(model.provider_id or "", model.model_ref or "")


def _usage(counted: Counted, cost: float | None) -> Usage:
    return Usage(
        counted.prompt_tokens,
        counted.completion_tokens,
        counted.cached_tokens,
        counted.cache_write_tokens,
        counted.reasoning_tokens,
        cost,
    )


def _encoded(definitions: list[dict[str, Any]]) -> str:
    return msgspec.json.encode(definitions).decode()


def _json(value: msgspec.Struct) -> str:
    return msgspec.json.encode(value).decode()
