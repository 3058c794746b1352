"""What a model says, told to who watches while it is said (agent-api.md 7, `transcript`).

`watch` is a desk's: it hears every delta and neither waits nor writes. As long as nobody watches it
keeps what one model call said so far, as the call itself does, and does nothing with it. From the
first who watches on, deltas are masked and published (`events/live.py`); whoever comes in the
middle of a text gets it from there on, and never the rest of a secret that began before.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import structlog

from stenograph.engine import store
from stenograph.engine.desk import Heard
from stenograph.engine.models.answer import (
    Delta,
    ReasoningDelta,
    Response,
    TextDelta,
    ToolCallStarted,
)
from stenograph.engine.models.failures import ModelFailedError
from stenograph.engine.results import storable
from stenograph.engine.work import Work
from stenograph.events import live
from stenograph.events.live import Frame
from stenograph.runs import task as tasks
from stenograph.sessions import secret
from stenograph.storage.database import Database, Tx
from stenograph.storage.sealing import Sealer
from stenograph.trajectories.redaction.redactor import Redactor
from stenograph.trajectories.redaction.streaming import Pattern, StreamedText

_log = structlog.get_logger()


def watch(database: Database, sealer: Sealer) -> Callable[[Work, Heard], None]:
    """Return what a `Desk` of this database calls with all that its models say."""
    calls: dict[str, _Call] = {}

    def hear(work: Work, heard: Heard) -> None:
        try:
            _hear(calls, database, sealer, work, heard)
        except Exception as error:
            # Whatever ails the telling, the turn goes on; what is settled is told from the record.
            calls.pop(work.candidate, None)
            _log.error("not_told_live", error=type(error).__name__)

    return hear


@dataclass(slots=True)
class _Call:
    """A model call that speaks. `said`: what was heard and is not told, of which nobody watched
    the first `unwatched`."""

    work: Work
    said: list[Delta] = field(default_factory=list)
    unwatched: int = 0
    telling: "_Telling | None" = None
    loading: "asyncio.Future[None] | None" = None


def _hear(
    calls: dict[str, _Call], database: Database, sealer: Sealer, work: Work, heard: Heard
) -> None:
    candidate, conversation_id = work.candidate, work.conversation.id
    if heard is None or isinstance(heard, ModelFailedError | Response):
        call = calls.pop(candidate, None)
        if call is not None and call.telling is not None:
            for frame in call.telling.end(heard):
                live.publish(conversation_id, frame)
        return
    call = calls.setdefault(candidate, _Call(work))
    if call.telling is not None:
        for frame in call.telling.tell(heard):
            live.publish(conversation_id, frame)
        return
    if call.loading is None and live.is_watched(conversation_id, "transcript"):
        call.unwatched = len(call.said)
        if database.reads_wait:
            call.loading = asyncio.ensure_future(_load(calls, database, sealer, call))
        else:
            with database.read() as tx:
                call.telling = _telling(tx, sealer, work)
    call.said.append(heard)
    _catch_up(call)


async def _load(calls: dict[str, _Call], database: Database, sealer: Sealer, call: _Call) -> None:
    def look() -> _Telling:
        with database.read() as tx:
            return _telling(tx, sealer, call.work)

    telling = await asyncio.to_thread(look)
    # A call that is over by now is told by the record.
    if calls.get(call.work.candidate) is call:
        call.telling = telling
        _catch_up(call)


def _catch_up(call: _Call) -> None:
    """Tell what was said since somebody watches."""
    if call.telling is None:
        return
    for number, delta in enumerate(call.said):
        for frame in call.telling.tell(delta):
            if number >= call.unwatched:
                live.publish(call.work.conversation.id, frame)
    call.said.clear()


def _telling(tx: Tx, sealer: Sealer, work: Work) -> "_Telling":
    key, hidden = None, False
    if work.run is not None and (key := store.newest_round(tx, work.run.id)) is not None:
        hidden = tasks.find(tx, work.run, key).visibility == "hidden"
    named = {
        "turn_public_id": work.turn.public_id,
        "variant_public_id": work.variant.public_id,
        "run_public_id": None if work.run is None else work.run.public_id,
        "task_key": key,
    }
    secrets = secret.values(tx, sealer, work.conversation.id)
    return _Telling(
        work,
        {name: value for name, value in named.items() if value is not None},
        hidden,
        Redactor(secrets, "ephemeral") if secrets else None,
        Pattern(secrets) if secrets else None,
    )


@dataclass(slots=True)
class _Telling:
    """Makes frames of what one model call says. `texts`: those that it has begun, by kind and, of
    arguments, the call's index."""

    work: Work
    named: Mapping[str, Any]
    hidden: bool
    redactor: Redactor | None
    pattern: Pattern | None
    texts: dict[tuple[str, int], StreamedText] = field(default_factory=dict)

    def tell(self, delta: Delta) -> list[Frame]:
        """Return the frames of a delta: none while it is held back."""
        match delta:
            case TextDelta(text):
                return self._more("text", 0, text)
            case ReasoningDelta(text):
                return self._more("reasoning", 0, text)
            case ToolCallStarted(index, call_id, name):
                started = {"tool_call_id": self._whole(call_id), "name": self._whole(name)}
                return self._frame("tool_call_started", {"index": index, **started})
            case _:
                return self._more("arguments", delta.index, delta.text)

    def end(self, how: Response | ModelFailedError | None) -> list[Frame]:
        """Return the last frames: what was held back, or that nothing of it counts."""
        if isinstance(how, Response):
            return [
                frame
                for (kind, index), text in self.texts.items()
                for frame in self._piece(kind, index, text.end())
            ]
        reason = "failed"
        if how is not None:
            reason = "refused" if how.kind == "refused" else "retry"
        return self._frame("stream_reset", {"reason": reason})

    def _more(self, kind: str, index: int, text: str) -> list[Frame]:
        if self.pattern is not None:
            streamed = self.texts.setdefault((kind, index), StreamedText(self.pattern))
            text = streamed.feed(text)
        return self._piece(kind, index, text)

    def _piece(self, kind: str, index: int, text: str) -> list[Frame]:
        if not text:
            return []
        text = storable(text)
        match kind:
            case "text":
                return self._frame("text_delta", {"text": text})
            case "reasoning":
                return self._frame("reasoning_delta", {"kind": "text", "text": text})
            case _:
                return self._frame("tool_call_arguments_delta", {"index": index, "text": text})

    def _frame(self, kind: str, data: Mapping[str, Any]) -> list[Frame]:
        if self.hidden:
            return []
        work = self.work
        told = {**self.named, **data}
        return [Frame("transcript", kind, told, work.turn.id, work.variant.id)]

    def _whole(self, text: str) -> str:
        text = storable(text)
        return text if self.redactor is None else self.redactor.text(text)
