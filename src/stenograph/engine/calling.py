"""One tool call, from its beginning to what came of it."""

import asyncio
from dataclasses import replace

import structlog

from stenograph.engine import budget, calls
from stenograph.engine.asking import offered
from stenograph.engine.calls import Begun, Held
from stenograph.engine.desk import Desk, OutOfTime, Stopped
from stenograph.engine.toolbox import ToolOutcome
from stenograph.engine.work import load
from stenograph.events.waiting import Waiter
from stenograph.runs import approval

_log = structlog.get_logger()
_UNDECIDED = ToolOutcome("timed_out", "Nobody decided about this call in the time of the turn.")


async def call(desk: Desk, candidate: str, key: str) -> None:
    """Make a call of a candidate's run, unless it is settled."""
    work = await desk.read(lambda tx: load(tx, candidate))
    if work is None:
        return
    tools = await offered(desk, work)
    begun = await desk.write(lambda tx: calls.begin(tx, candidate, key, tools, desk.secrets))
    while isinstance(begun, Held):
        if not await _decided(desk, begun):
            await desk.write(lambda tx: calls.settle(tx, candidate, key, _UNDECIDED))
            return
        begun = await desk.write(lambda tx: calls.begin(tx, candidate, key, tools, desk.secrets))
    if begun is None:
        return
    try:
        outcome = await _outcome(desk, begun)
    except Stopped:
        return
    await desk.write(lambda tx: calls.settle(tx, candidate, key, outcome, desk.secrets))


async def _decided(desk: Desk, held: Held) -> bool:
    """Wait until a person has decided, or the turn has its end; False: its time was up before."""
    work = held.work
    left = budget.seconds_left(work, budget.read(work.options))
    try:
        async with asyncio.timeout(left):
            with Waiter(work.conversation.id) as waiter:
                while not await desk.read(
                    lambda tx: approval.is_settled(tx, work.candidate, held.task_id)
                ):
                    await waiter.wait(60)
    except TimeoutError:
        return False
    return True


async def _outcome(desk: Desk, begun: Begun) -> ToolOutcome:
    work = begun.work
    left = budget.seconds_left(work, budget.read(work.options))

    async def do() -> ToolOutcome:
        context = replace(begun.context, desk=desk)
        return await desk.toolbox.call(begun.name, begun.arguments, context)

    try:
        return await desk.unless_ended(work, do(), left)
    except Stopped:
        raise
    except OutOfTime:
        return ToolOutcome("timed_out", "The time of the turn was up.")
    except Exception as problem:
        # A tool may raise anything; its run has to hear of it and go on.
        _log.warning("tool_raised", tool=begun.name, error=type(problem).__name__)
        return ToolOutcome("failed", f"{type(problem).__name__}: {problem}")
