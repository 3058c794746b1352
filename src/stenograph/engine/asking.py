"""One round: ask a model, again where that is worth it, and write what it said."""

import asyncio
from contextlib import aclosing, suppress
from functools import partial

from stenograph.conversations import steering
from stenograph.engine import assembly, budget, compacting, finish, rounds, summary_turn
from stenograph.engine.choice import Failure, candidates
from stenograph.engine.desk import Desk, HungUp, OutOfTime, Stopped
from stenograph.engine.models.answer import Response
from stenograph.engine.models.failures import ModelFailedError
from stenograph.engine.models.request import ModelRequest, Settings, Tool
from stenograph.engine.models.stream import stream
from stenograph.engine.models.windows import window
from stenograph.engine.rounds import Question, Round
from stenograph.engine.toolbox import ToolSpec
from stenograph.engine.work import Work, load
from stenograph.errors import StenographError
from stenograph.runs.invocation import Invocation


async def offered(desk: Desk, work: Work) -> dict[str, ToolSpec]:
    """Return the tools of a run by name: its providers', and in a session `finish`; of those only
    what its input names, if it names any."""
    if work.is_reply:
        return {}
    own = (finish.SPEC,) if work.is_session else ()
    wanted = work.wishes.tool_names
    return {
        spec.name: spec
        for spec in (*await desk.toolbox.specs(work), *own)
        if wanted is None or spec.name in wanted
    }


async def ask(desk: Desk, candidate: str) -> list[str] | None:
    """Do what is due of a candidate's rounds: returns the keys of the calls to make, [] if the
    next round is due at once, None when the candidate has its end."""
    work = await desk.read(lambda tx: load(tx, candidate))
    if work is not None:
        # What a provider's models can do takes a second to load, once; not in a transaction.
        await asyncio.to_thread(_look_up, desk, work)
        if work.turn.kind == summary_turn.KIND:
            await compacting.whole_turn(desk, candidate)
            return None
    due = await desk.write(lambda tx: rounds.begin(tx, desk.rules, candidate))
    if not isinstance(due, Round):
        return due
    while True:
        asked = await desk.read(lambda tx: rounds.question(tx, desk.rules, candidate, due))
        if asked is None:
            return None
        if isinstance(asked, Failure):
            end = partial(
                rounds.give_up,
                candidate=candidate,
                due=due,
                reason=asked.kind,
                message=asked.message,
            )
            await desk.write(end)
            return None
        try:
            if await compacting.make_room(desk, asked, due):
                return []
            answered = await _attempt(desk, asked, due)
        except Stopped:
            return None
        except HungUp:
            return []
        except OutOfTime:
            await desk.write(lambda tx: rounds.run_out(tx, candidate, due))
            return None
        if answered is not None:
            made, response = answered
            hear = partial(rounds.hear, candidate=candidate, made=made, due=due, response=response)
            return await desk.write(hear)


def _look_up(desk: Desk, work: Work) -> None:
    with suppress(StenographError):
        for wanted, _ in candidates(work, desk.rules):
            window(wanted)


async def _attempt(desk: Desk, asked: Question, due: Round) -> tuple[Invocation, Response] | None:
    """Make one model call; None: it failed, which is written. Raises `Stopped`, `OutOfTime`, and
    `HungUp` when it was ended so that something is said first."""
    work = asked.work
    hangs_up = None if work.is_reply else partial(
        steering.is_urgent, variant_id=work.variant.id
    )  # fmt: skip
    left = budget.seconds_left(work, budget.read(work.options))
    if asked.wait:
        await desk.unless_ended(work, _pause(desk, asked.wait), left, hangs_up)
        left = budget.seconds_left(work, budget.read(work.options))
    tools = await offered(desk, work)
    made = await desk.write(lambda tx: rounds.ask(tx, asked, due, tools))
    if made is None:
        raise Stopped
    request = ModelRequest(
        model=asked.choice.id,
        messages=asked.room.messages,
        tools=tuple(Tool(it.name, it.description, it.parameters) for it in tools.values()),
        settings=assembly.settings(
            work.wishes,
            Settings(
                reasoning_enabled=made.model.reasoning_enabled,
                reasoning_effort=made.model.reasoning_effort,
                cache=due.key is not None,
            ),
        ),
        attempt=asked.choice.attempt,
    )
    try:
        response = await desk.unless_ended(work, _listen(desk, work, request), left, hangs_up)
    except ModelFailedError as failure:
        await _miss(desk, work, made, failure)
        desk.watch(work, failure)
        return None
    except HungUp:
        desk.watch(work, _hung_up("Something is said first"))
        await desk.write(lambda tx: rounds.hang_up(tx, work.candidate, made))
        raise
    except asyncio.CancelledError:
        desk.watch(work, None)
        raise
    except Stopped:
        desk.watch(work, None)
        await _miss(desk, work, made, _hung_up("The turn ended meanwhile"))
        raise
    except OutOfTime:
        desk.watch(work, None)
        await _miss(desk, work, made, _hung_up("The time was up"), at_deadline=True)
        raise
    return made, response


async def _pause(desk: Desk, seconds: float) -> None:
    await desk.pause(seconds)


async def _listen(desk: Desk, work: Work, request: ModelRequest) -> Response:
    credentials = await asyncio.to_thread(desk.credentials, work.organization_id, request.model)
    async with aclosing(stream(request, credentials)) as heard:
        async for event in heard:
            desk.watch(work, event)
            if isinstance(event, Response):
                return event
    raise ModelFailedError("interrupted", "The answer broke off before its end")


def _hung_up(why: str) -> ModelFailedError:
    return ModelFailedError("interrupted", why)


async def _miss(
    desk: Desk,
    work: Work,
    made: Invocation,
    failure: ModelFailedError,
    *,
    at_deadline: bool = False,
) -> None:
    miss = partial(rounds.miss, at_deadline=at_deadline, secrets=desk.secrets)
    await desk.write(lambda tx: miss(tx, work.candidate, made, failure))
