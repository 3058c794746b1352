"""Sum a conversation up: before a round that would be too long, or because somebody asked."""

import asyncio
from contextlib import aclosing
from functools import partial

from stenograph.engine import budget, compaction, rounds
from stenograph.engine.choice import Choice, Failure
from stenograph.engine.compaction import Asking
from stenograph.engine.desk import Desk, OutOfTime, Stopped
from stenograph.engine.models.answer import Response
from stenograph.engine.models.failures import ModelFailedError
from stenograph.engine.models.request import ModelRequest, Settings
from stenograph.engine.models.stream import stream
from stenograph.engine.rounds import Question, Round
from stenograph.runs.invocation import Invocation


async def make_room(desk: Desk, asked: Question, due: Round) -> bool:
    """Sum up what was before a round, if that is due; True: look again what the round is told.

    Raises `Stopped`, `OutOfTime`.
    """
    if not asked.room.compacts:
        return False
    await _sum_up(desk, asked.work.candidate, due, asked.choice)
    return True


async def whole_turn(desk: Desk, candidate: str) -> None:
    """Drive a turn to its end that only sums up."""
    try:
        await _sum_up(desk, candidate, None, None)
    except Stopped:
        return
    except OutOfTime:
        await desk.write(lambda tx: compaction.run_out(tx, candidate, None))


async def _sum_up(desk: Desk, candidate: str, due: Round | None, usual: Choice | None) -> None:
    key = await desk.write(lambda tx: compaction.begin(tx, candidate, due))
    while key is not None:
        asking = await desk.read(
            lambda tx: compaction.question(tx, desk.rules, candidate, key, due, usual)
        )
        if asking is None:
            raise Stopped
        if isinstance(asking, Failure):
            end = partial(compaction.give_up, candidate=candidate, key=key, failure=asking, due=due)
            await desk.write(end)
            return
        if await _attempt(desk, asking, due):
            return


async def _attempt(desk: Desk, asking: Asking, due: Round | None) -> bool:
    """Make one call; False: it failed, which is written. Raises `Stopped`, `OutOfTime`."""
    work = asking.work
    limits = budget.read(work.options)
    if asking.wait:
        left = budget.seconds_left(work, limits)
        await desk.unless_ended(work, _pause(desk, asking.wait), left)
    made = await desk.write(lambda tx: compaction.ask(tx, asking))
    if made is None:
        raise Stopped
    request = ModelRequest(
        model=asking.choice.id,
        messages=asking.messages,
        settings=Settings(
            reasoning_enabled=made.model.reasoning_enabled,
            reasoning_effort=made.model.reasoning_effort,
        ),
        attempt=asking.choice.attempt,
        purpose="summary",
    )
    left = budget.seconds_left(work, limits)
    try:
        response = await desk.unless_ended(work, _listen(desk, asking, request), left)
    except ModelFailedError as failure:
        await _miss(desk, asking, made, failure)
        return False
    except Stopped:
        await _miss(desk, asking, made, ModelFailedError("interrupted", "The turn ended meanwhile"))
        raise
    except OutOfTime:
        late = ModelFailedError("interrupted", "The time was up")
        await _miss(desk, asking, made, late, at_deadline=True)
        raise
    await desk.write(lambda tx: compaction.hear(tx, asking, made, response, due))
    return True


async def _pause(desk: Desk, seconds: float) -> None:
    await desk.pause(seconds)


async def _listen(desk: Desk, asking: Asking, request: ModelRequest) -> Response:
    """Hear a summary out; nobody watches, for it is not said to the person."""
    organization = asking.work.organization_id
    credentials = await asyncio.to_thread(desk.credentials, organization, request.model)
    async with aclosing(stream(request, credentials)) as heard:
        async for event in heard:
            if not isinstance(event, Response):
                continue
            if event.text.strip():
                return event
            raise ModelFailedError(
                "empty_answer",
                "The model did not sum up",
                usage=event.usage,
                cost_usd=event.cost_usd,
                request=event.request,
            )
    raise ModelFailedError("interrupted", "The answer broke off before its end")


async def _miss(
    desk: Desk,
    asking: Asking,
    made: Invocation,
    failure: ModelFailedError,
    *,
    at_deadline: bool = False,
) -> None:
    candidate = asking.work.candidate
    miss = partial(rounds.miss, at_deadline=at_deadline, secrets=desk.secrets)
    await desk.write(lambda tx: miss(tx, candidate, made, failure))
