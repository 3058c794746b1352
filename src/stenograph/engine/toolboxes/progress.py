"""What a call has written so far, or how far it is: told live and never kept.

A worker sends the end of the output, again and again. Of one that does not begin at the beginning,
and at its end, half a secret may stand, which no list of secrets holds: both ends are left out up
to where that cannot be.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import structlog

from stenograph.devices import dispatch
from stenograph.devices.device import Device
from stenograph.engine import results
from stenograph.engine.results import Secrets
from stenograph.engine.toolbox import ToolContext
from stenograph.engine.work import Work, load
from stenograph.events import live
from stenograph.events.live import Frame
from stenograph.runs import task as tasks
from stenograph.sessions import secret
from stenograph.storage.database import Tx
from stenograph.storage.sealing import Sealer
from stenograph.trajectories.redaction.redactor import Redactor
from stenograph.trajectories.redaction.streaming import masked_window

_log = structlog.get_logger()

#: Characters of an output's end that are looked at, and of them those that are told.
WINDOW = 8_000
SHOWN = 2_000
#: Characters that a step's message may have; a longer one is left out.
MESSAGE = 2_000
#: Seconds between two looks at a call that this server makes.
EVERY = 0.25


@dataclass(frozen=True, slots=True)
class Report:
    """The end of an output, and how many characters it has in all."""

    text: str
    characters: int


@dataclass(frozen=True, slots=True)
class Step:
    """How far a call is: `progress` of `total`, in whatever it counts, None: who knows."""

    progress: float
    total: float | None
    message: str | None


Progress: TypeAlias = Report | Step


def end_of(output: str, characters: int = 0) -> Report:
    """Return the report of an output, or of an end of one that has so many characters in all."""
    return Report(results.storable(output[-WINDOW:]), max(characters, len(output)))


def told(
    tx: Tx, sealer: Sealer, worker: Device, claim_id: str, report: Report
) -> tuple[int, Frame | None]:
    """Return the conversation (row id) and the frame for a report; None: it is nobody's to see.

    Raises `ConflictError` (`stale_claim`) unless the worker holds the claim.
    """
    found = dispatch.held(tx, worker, claim_id)
    work = load(tx, found.candidate)
    if found.status != "claimed" or work is None or work.run is None:
        raise dispatch.stale()
    if not live.is_watched(found.conversation_id, "progress"):
        return found.conversation_id, None

    def secrets(tx: Tx, conversation_id: int) -> tuple[str, ...]:
        return secret.values(tx, sealer, conversation_id)

    return found.conversation_id, _frame(tx, secrets, work, found.task_key, report)


@asynccontextmanager
async def shown(context: ToolContext, look: Callable[[], Progress | None]) -> AsyncIterator[None]:
    """Tell who watches, as long as this is entered, how far a call is that this server makes.

    `look` is asked for it a few times a second, while somebody watches; it does not wait.
    """
    telling = asyncio.create_task(_tell(context, look))
    try:
        yield
    finally:
        telling.cancel()
        await asyncio.gather(telling, return_exceptions=True)


async def _tell(context: ToolContext, look: Callable[[], Progress | None]) -> None:
    desk, work = context.desk, context.work
    last: Progress | None = None
    while desk is not None:
        await asyncio.sleep(EVERY)
        if not live.is_watched(work.conversation.id, "progress"):
            continue
        try:
            found = look()
            if found is None or found == last:
                continue
            make = partial(_frame, secrets=desk.secrets, work=work, key=context.key, found=found)
            frame = await desk.read(make)
        except Exception as error:
            # Whatever ails the telling, the call goes on.
            _log.error("progress_not_told", error=type(error).__name__)
            return
        last = found
        if frame is not None:
            live.publish(work.conversation.id, frame)


def _frame(tx: Tx, secrets: Secrets, work: Work, key: str, found: Progress) -> Frame | None:
    """Return the frame about a call of a run; None: the call is hidden."""
    assert work.run is not None
    task = tasks.find(tx, work.run, key)
    if task.visibility == "hidden":
        return None
    values = tuple(secrets(tx, work.conversation.id))
    cover = Redactor(values, "ephemeral").text if values else str
    said: dict[str, Any]
    if isinstance(found, Report):
        is_whole = found.characters <= len(found.text)
        text = masked_window(found.text, values, from_start=is_whole)
        kind, said = "tool_output", {"text": text[-SHOWN:], "characters": found.characters}
    else:
        message = None if found.message is None else cover(found.message)
        said = {"progress": found.progress, "total": found.total, "message": message}
        kind = "tool_progress"
    named = {
        "turn_public_id": work.turn.public_id,
        "variant_public_id": work.variant.public_id,
        "run_public_id": work.run.public_id,
        "task_key": key,
        "name": cover(task.name or ""),
    }
    data = named | {name: value for name, value in said.items() if value is not None}
    return Frame("progress", kind, data, work.turn.id, work.variant.id)
