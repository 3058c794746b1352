"""Calls that a call makes itself: tasks of the same round, beneath the script's own.

They go the way of every other call (`calling.call`). When a script is run again after a crash,
the calls it asks for are matched, in order, with those it has made: what was settled is answered
from the record and not done again.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from stenograph.engine import ending, history, store, store_children
from stenograph.engine.calling import call
from stenograph.engine.desk import Desk, Stopped
from stenograph.engine.toolbox import ToolContext
from stenograph.engine.work import hold
from stenograph.runs import task as tasks
from stenograph.runs.task import Call, Status
from stenograph.storage.database import Tx


class Diverged(Exception):
    """A script that is run again does something else than is in the record of it."""


@dataclass(frozen=True, slots=True)
class Made:
    """A call in the record of a script: the key of its task, whom it calls, arguments as JSON."""

    key: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Before:
    """What is in the record of a script: when it was first begun, in microseconds, and its calls,
    in order."""

    begun_at: int
    made: Sequence[Made]


@dataclass(frozen=True, slots=True)
class Settled:
    """How a call ended, and what it returned, as far as that is kept."""

    status: Status
    output: str


async def before(desk: Desk, context: ToolContext) -> Before:
    """Return what is in the record of a script that begins, or begins again."""

    def look(tx: Tx) -> Before:
        rows = store_children.calls_beneath(tx, context.task_id)
        return Before(store_children.begun_at(tx, context.task_id), [Made(*row) for row in rows])

    return await desk.read(look)


async def add(desk: Desk, context: ToolContext, number: int, name: str, arguments: str) -> str:
    """Add the call that a script makes after `number` others, and return its key.

    Raises `Stopped`, or `Diverged` when another process runs the script too.
    """
    return await desk.write(lambda tx: _add(tx, context, number, name, arguments))


def _add(tx: Tx, context: ToolContext, number: int, name: str, arguments: str) -> str:
    work = hold(tx, context.work.candidate)
    if work is None or work.settled or work.run is None:
        raise Stopped
    script = tasks.find(tx, work.run, context.key)
    if script.status in tasks.TERMINAL:
        raise Stopped
    if store_children.count_beneath(tx, script.id) != number:
        raise Diverged("The script is being run twice at once")
    stem = script.tool_call_id or script.key
    added = tasks.add_beneath(tx, work.run, script, Call(name, arguments, f"{stem}.{number + 1}"))
    rest = history.CallRest(extra={"parent_tool_call_id": stem})
    store.set_rest(tx, added.id, msgspec.json.encode(rest).decode())
    return added.key


async def settled(desk: Desk, context: ToolContext, key: str) -> Settled:
    """Make a call, unless that was done, and return what came of it. Raises `Stopped`."""
    await call(desk, context.work.candidate, key)
    return await desk.read(lambda tx: _settled(tx, context, key))


def _settled(tx: Tx, context: ToolContext, key: str) -> Settled:
    run = context.work.run
    assert run is not None
    status, output = store_children.outcome(tx, run.id, key)
    if status not in tasks.TERMINAL or not store.is_unsettled(tx, context.work.candidate):
        raise Stopped
    return Settled(status, output or "")


async def leave(desk: Desk, context: ToolContext) -> None:
    """End the calls that a script began and does not wait for any more, before its own end."""
    await desk.write(lambda tx: _leave(tx, context))


def _leave(tx: Tx, context: ToolContext) -> None:
    work = hold(tx, context.work.candidate)
    if work is None or work.settled or work.run is None:
        return
    left = store_children.open_beneath(tx, context.task_id)
    for _, key, status in left:
        begun = status in ("running", "dispatched", "awaiting_input")
        tasks.settle(
            tx,
            work.run,
            tasks.find(tx, work.run, key),
            "uncertain" if begun else "canceled",
            output="The script ended without waiting for this call.",
            error="The script ended without waiting for this call",
        )
    ending.cancel_children(tx, work.run, [row_id for row_id, _, _ in left])
