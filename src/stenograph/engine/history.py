"""A conversation as messages for a model: what was said, called and returned before one call.

Concealed, hidden and excluded turns are left out, as are candidates that their turn does not
show. A fork's inherited turns are there as it sees them. Where a compaction counts, its summary
stands for what was before it (`summaries`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from stenograph.conversations import attachment
from stenograph.conversations import turn as turns
from stenograph.conversations import variant as variants
from stenograph.conversations.attachment import Content
from stenograph.conversations.turn import UNSETTLED, Turn
from stenograph.conversations.variant import Variant
from stenograph.engine import assembly, results, store, store_assembly, summaries
from stenograph.engine.models.request import (
    Message,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from stenograph.engine.summaries import Summary, View
from stenograph.engine.units import Unit
from stenograph.engine.units import flat as flat
from stenograph.sessions.conversing import steer_input
from stenograph.storage.database import Row, Tx

_PAGE = 200


class CallRest(msgspec.Struct, omit_defaults=True):
    """What of a call has no column. `extra`, `excerpt` and `refs` are also an
    export's (`trajectories/recording/columns.py`); `preview` is what the model was told."""

    extra: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
    excerpt: bool = False
    preview: str | None = None
    refs: list[dict[str, str]] | msgspec.UnsetType = msgspec.UNSET


_WRITTEN = "arguments_as_written"


def rest_of_call(written: str | None) -> CallRest:
    """Return the rest of a call; `written` is its arguments' text where the record keeps another
    (they are no JSON object)."""
    if written is None:
        return CallRest()
    return CallRest(extra={"stenograph": {_WRITTEN: results.storable(written)}})


def read_rest(rest: str | None) -> CallRest:
    """Read a call's rest."""
    return CallRest() if rest is None else msgspec.json.decode(rest, type=CallRest)


def as_written(rest: CallRest) -> str | None:
    """Return the arguments' text as the model wrote it, where it is not the one in the column."""
    if rest.extra is msgspec.UNSET:
        return None
    own = rest.extra.get("stenograph")
    written = own.get(_WRITTEN) if isinstance(own, dict) else None
    return written if isinstance(written, str) else None


@dataclass(slots=True)
class _Said:
    """What candidates said, by candidate and by round."""

    entries: dict[int, list[Row]] = field(default_factory=dict)
    results: dict[int, list[Row]] = field(default_factory=dict)
    replies: dict[int, tuple[str, str | None]] = field(default_factory=dict)
    files: dict[int, list[Content]] = field(default_factory=dict)
    steers: dict[tuple[int, int], str | None] = field(default_factory=dict)

    def files_of(self, candidate: int, steer: str | None = None) -> list[Content]:
        """Return the files with which a candidate was asked, or steered by an input."""
        return [file for file in self.files.get(candidate, ()) if file.steer == steer]

    def files_at(self, candidate: int, place: int) -> list[Content]:
        """Return the files that came with the steer at a place."""
        steer = self.steers.get((candidate, place))
        return [] if steer is None else self.files_of(candidate, steer)


def units(tx: Tx, seen: View, before: int) -> tuple[Unit, ...]:
    """Return what a model call is told; `before` is its place in the trajectory."""
    instructions = assembly.instructions(seen.instructions, seen.wishes)
    told = [Unit("system", instructions)] if instructions else []
    summary = summaries.newest(tx, seen, before)
    if summary is not None and seen.wishes.is_raw and summary.variant_id != seen.variant_id:
        summary = None
    if summary is not None:
        told.append(Unit("summary", (summary.message,)))
    if not seen.wishes.is_raw:
        told.extend(_earlier_units(tx, seen, summary))
    said = _said(tx, [seen.variant_id])
    if seen.prompt is not None:
        files = said.files_of(seen.variant_id)
        told.append(Unit("prompt", assembly.opening(seen.prompt, seen.wishes, files)))
    told.extend(_entries(said, seen.variant_id, before, summary))
    return assembly.replayed(told, seen.wishes)


def _earlier_units(tx: Tx, seen: View, summary: Summary | None) -> Iterator[Unit]:
    for chunk in _earlier(tx, seen, after=-1 if summary is None else summary.extent.turn - 1):
        shown = _shown(tx, chunk)
        said = _said(tx, [candidate.id for _, candidate in shown])
        for turn, candidate in shown:
            parts = list(_entries(said, candidate.id, None, summary))
            found = tuple(_turn(turn, candidate, said, parts))
            if found:
                yield _earlier_turn(turn, found, parts, summary)


def _earlier_turn(
    turn: Turn, told: tuple[Message, ...], parts: Sequence[Unit], summary: Summary | None
) -> Unit:
    """Make a unit of a turn; what its last call counted is no measure once a summary came."""
    last = next((part for part in reversed(parts) if part.kind == "round"), None)
    stale = summary is not None and turn.position < summary.turn
    if last is None or last.used is None or stale:
        return Unit("turn", told, turn.position)
    behind = len(told) - 1 - next(n for n, it in enumerate(told) if it is last.messages[0])
    return Unit("turn", told, turn.position, last.task_id, last.used, behind)


def _earlier(tx: Tx, seen: View, after: int) -> Iterator[list[Turn]]:
    while True:
        listed = turns.window(tx, seen.conversation, after=after, before=seen.position, limit=_PAGE)
        yield [it.turn for it in listed if it.turn.visibility == "visible"]
        if len(listed) < _PAGE:
            return
        after = listed[-1].turn.position


def _shown(tx: Tx, chunk: Sequence[Turn]) -> list[tuple[Turn, Variant]]:
    """Return turns with the candidates they show; one that another process answers is not there."""
    decks = variants.shown(tx, chunk)
    return [
        (turn, candidate)
        for turn in chunk
        for candidate in decks.get(turn.id, ())
        if candidate.id == turn.active_variant_id and candidate.status not in UNSETTLED
    ]


def _said(tx: Tx, candidates: Sequence[int]) -> _Said:
    said = _Said(
        replies=store.reply_reasoning(tx, candidates), files=attachment.contents(tx, candidates)
    )
    if said.files:
        for candidate, place, rest in store_assembly.steers_with_files(tx, list(said.files)):
            said.steers[candidate, place] = steer_input(rest)
    rounds: list[int] = []
    for row in store.said(tx, candidates):
        said.entries.setdefault(row[0], []).append(row)
        if row[4] is not None:
            rounds.append(row[4])
    for row in store.results(tx, rounds):
        said.results.setdefault(row[0], []).append(row)
    return said


def _turn(turn: Turn, candidate: Variant, said: _Said, parts: Sequence[Unit]) -> Iterator[Message]:
    """Tell a turn that has ended; one that failed before the model said anything is left out, and
    so is one that only summed up."""
    if turn.kind == "compaction_summary":
        return
    if turn.kind == "message":
        files = said.files_of(candidate.id)
        yield assembly.asked(candidate.content or "", files, turn.role)
        return
    done = flat(parts)
    answered = any(message.role == "assistant" for message in done)
    if candidate.status != "completed" and not answered and candidate.status != "canceled":
        return
    if candidate.prompt is not None:
        yield assembly.asked(candidate.prompt, said.files_of(candidate.id))
    yield from done
    if done and done[-1].role == "assistant" and not done[-1].calls:
        return
    reasoning, trace = said.replies.get(candidate.id, ("", None))
    thought: tuple[Part, ...] = (Reasoning(reasoning, trace),) if reasoning or trace else ()
    yield Message("assistant", (*thought, Text(candidate.content or _ending(candidate))))


def _ending(candidate: Variant) -> str:
    if candidate.status == "completed":
        return "(This turn ended without words.)"
    return f"(This turn ended without an answer: it was {candidate.status.replace('_', ' ')}.)"


def _entries(
    said: _Said, candidate: int, before: int | None, summary: Summary | None
) -> Iterator[Unit]:
    """Tell the rounds of a candidate with their results, and its steers, between what a summary
    stands for and a place."""
    own = summary is not None and summary.variant_id == candidate
    since = summary.extent.step if own and summary else 0
    for _, place, part, text, task_id, message, reasoning, trace, used in said.entries.get(
        candidate, ()
    ):
        if before is not None and place >= before:
            return
        if place < since:
            continue
        if part == "steer":
            files = said.files_at(candidate, place)
            yield Unit("steer", (assembly.asked(text or "", files),), place)
            continue
        calls = said.results.get(task_id, [])
        told = [Message("assistant", _parts(message, reasoning, trace, calls))]
        if calls:
            told.append(Message("tool", tuple(_result(call) for call in calls)))
        counts = not (own and summary and place < summary.step)
        yield Unit("round", tuple(told), place, task_id, used if counts else None, len(told) - 1)


def _parts(
    message: str | None, reasoning: str | None, trace: str | None, calls: Sequence[Row]
) -> tuple[Part, ...]:
    parts: list[Part] = []
    if reasoning or trace:
        parts.append(Reasoning(reasoning or "", trace))
    if message:
        parts.append(Text(message))
    for _, call_id, name, _, _, arguments, _, rest in calls:
        written = as_written(read_rest(rest))
        parts.append(ToolCall(call_id, name, arguments if written is None else written))
    return tuple(parts)


def _result(call: Row) -> ToolResult:
    _, call_id, name, status, error, _, output, rest = call
    told = read_rest(rest).preview or results.preview(output or error or "")
    if status == "canceled":
        told = "The call was canceled."
    elif status != "completed" and not told:
        told = f"The call ended: {status}."
    return ToolResult(call_id, name, told, is_error=status != "completed")


def entries(told: Sequence[Message]) -> list[Any]:
    """Write messages as a sealed request shows them: without the providers' own material."""
    return [{"role": message.role, "parts": [_entry(p) for p in message.parts]} for message in told]


def _entry(part: Part) -> dict[str, Any]:
    match part:
        case Text():
            return {"type": "text", "text": part.text}
        case Reasoning():
            return {"type": "reasoning", "text": part.text}
        case ToolCall():
            return {
                "type": "tool_call", "id": part.id, "name": part.name, "arguments": part.arguments
            }  # fmt: skip
        case ToolResult():
            return {
                "type": "tool_result", "id": part.call_id, "name": part.name,
                "output": part.output, "is_error": part.is_error,
            }  # fmt: skip
        case _:
            return {"type": "image", "media_type": part.media_type}
