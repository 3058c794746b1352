"""One tool call of a round: begun in the record, done by its provider, settled once."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from stenograph.engine import finish, history, results, store
from stenograph.engine.toolbox import ToolContext, ToolOutcome, ToolSpec
from stenograph.engine.work import Work, hold
from stenograph.runs import task as tasks
from stenograph.storage.database import Tx

#: Characters of the reason that a failed call shows in lists.
ERROR = 500


@dataclass(frozen=True, slots=True)
class Begun:
    """A call that is to be made now."""

    work: Work
    name: str
    arguments: dict[str, Any]
    context: ToolContext


def begin(tx: Tx, candidate: str, key: str, offered: Mapping[str, ToolSpec]) -> Begun | None:
    """Begin a call, and return it if a provider has to do it.

    None: it is settled, or its turn is; among others a call that no provider can do: malformed
    arguments, a tool that nobody offers, the engine's own `finish`.
    """
    work = hold(tx, candidate)
    if work is None or work.settled or work.run is None:
        return None
    task = tasks.find(tx, work.run, key)
    if task.status in tasks.TERMINAL:
        return None
    resumed = task.status == "running"
    task = tasks.start(tx, work.run, task)
    given, rest = store.call_details(tx, task.id)
    name = task.name or ""
    outcome = _own_outcome(name, given, history.as_written(history.read_rest(rest)), offered)
    if outcome is not None:
        settle(tx, candidate, key, outcome)
        return None
    context = ToolContext(work, key, task.id, task.tool_call_id, resumed)
    return Begun(work, name, msgspec.json.decode(given), context)


def _own_outcome(
    name: str, given: str, written: str | None, offered: Mapping[str, ToolSpec]
) -> ToolOutcome | None:
    if name not in offered:
        known = ", ".join(sorted(offered)) or "none"
        return ToolOutcome("failed", f"There is no tool named {name!r}; there are: {known}")
    if written:
        return ToolOutcome("failed", f"The arguments of {name} are not a JSON object: {written}")
    if name != finish.NAME:
        return None
    try:
        finish.declared(given)
    except msgspec.ValidationError as error:
        return ToolOutcome("failed", f"The arguments of {name} are not right: {error}")
    return ToolOutcome("completed", "The session ends here.")


def settle(tx: Tx, candidate: str, key: str, outcome: ToolOutcome) -> None:
    """Write what came of a call, unless it has its end already."""
    work = hold(tx, candidate)
    if work is None or work.run is None or work.settled:
        return
    task = tasks.find(tx, work.run, key)
    if task.status in tasks.TERMINAL:
        return
    output, is_part = results.kept(outcome.output)
    failed = outcome.status != "completed"
    tasks.settle(
        tx,
        work.run,
        task,
        outcome.status,
        output=output,
        error=output[:ERROR] if failed else None,
    )
    rest = history.read_rest(store.call_details(tx, task.id)[1])
    rest.excerpt = is_part
    if outcome.preview is not None:
        rest.preview = results.preview(results.storable(outcome.preview))
    if is_part or outcome.preview is not None:
        store.set_rest(tx, task.id, msgspec.json.encode(rest).decode())
