"""One tool call of a round: begun in the record, done by its provider, settled once.

A call that a person has to approve waits before it begins (`Held`). The engine's own `finish` is
never asked about, and a `script` is not as a whole: each call that it makes is.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from stenograph.engine import finish, history, results, store
from stenograph.engine.results import Secrets, no_secrets
from stenograph.engine.toolbox import ToolContext, ToolOutcome, ToolSpec
from stenograph.engine.work import Work, hold
from stenograph.runs import approval
from stenograph.runs import task as tasks
from stenograph.runs.task import Task
from stenograph.storage.database import Tx

#: Characters of the reason that a failed call shows in lists.
ERROR = 500
#: Whose calls are asked about one by one (`toolboxes/script.py`).
SCRIPT = "script"


@dataclass(frozen=True, slots=True)
class Begun:
    """A call that is to be made now."""

    work: Work
    name: str
    arguments: dict[str, Any]
    context: ToolContext


@dataclass(frozen=True, slots=True)
class Held:
    """A call that waits for a person's decision; `task_id` is its row."""

    work: Work
    task_id: int


def begin(
    tx: Tx,
    candidate: str,
    key: str,
    offered: Mapping[str, ToolSpec],
    secrets: Secrets = no_secrets,
) -> Begun | Held | None:
    """Begin a call, and return it if a provider has to do it, or if a person has to allow it.

    None: it is settled, or its turn is; among others a call that no provider can do: malformed
    arguments, a tool that nobody offers, one that was denied, the engine's own `finish`.
    """
    work = hold(tx, candidate)
    if work is None or work.settled or work.run is None:
        return None
    task = tasks.find(tx, work.run, key)
    if task.status in tasks.TERMINAL:
        return None
    resumed = task.status not in ("queued", "needs_approval")
    given, rest = store.call_details(tx, task.id)
    name = task.name or ""
    outcome = _own_outcome(name, given, history.as_written(history.read_rest(rest)), offered)
    if outcome is None and not resumed:
        refusal = _refusal(tx, work, task)
        if isinstance(refusal, Held):
            return refusal
        outcome = refusal
    task = tasks.start(tx, work.run, task)
    if outcome is not None:
        settle(tx, candidate, key, outcome, secrets)
        return None
    context = ToolContext(work, key, task.id, task.tool_call_id, resumed)
    return Begun(work, name, msgspec.json.decode(given), context)


def _refusal(tx: Tx, work: Work, task: Task) -> ToolOutcome | Held | None:
    """Return why a call is not made, or that somebody has to say; None: it may be made."""
    assert work.run is not None
    decided = approval.decided(tx, task)
    if decided is not None:
        decision, note = decided
        if decision == "approve":
            return None
        said = f": {note}" if note else "."
        return ToolOutcome("failed", f"The person denied this call{said}")
    name = task.name or ""
    verdict = approval.verdict(approval.read_policy(work.options), work.run.approval_mode, name)
    if verdict == "deny":
        return ToolOutcome("failed", f"The rules of this session deny calls of {name}.")
    if verdict == "allow" or name == SCRIPT:
        return None
    approval.request(tx, work.run, task)
    return Held(work, task.id)


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


def settle(
    tx: Tx, candidate: str, key: str, outcome: ToolOutcome, secrets: Secrets = no_secrets
) -> None:
    """Write what came of a call, unless it has its end already; no cut halves one of `secrets`."""
    work = hold(tx, candidate)
    if work is None or work.run is None or work.settled:
        return
    task = tasks.find(tx, work.run, key)
    if task.status in tasks.TERMINAL:
        return
    is_long = len(outcome.output) > ERROR
    values = secrets(tx, work.conversation.id) if is_long else ()
    output, is_part = results.kept(outcome.output, values)
    failed = outcome.status != "completed"
    tasks.settle(
        tx,
        work.run,
        task,
        outcome.status,
        output=output,
        error=results.beginning(output, ERROR, values) if failed else None,
    )
    rest = history.read_rest(store.call_details(tx, task.id)[1])
    rest.excerpt = is_part
    if outcome.preview is not None or len(output) > results.PREVIEW:
        told = output if outcome.preview is None else results.storable(outcome.preview)
        rest.preview = results.preview(told, values)
    if is_part or rest.preview is not None:
        store.set_rest(tx, task.id, msgspec.json.encode(rest).decode())
