"""A conversation as messages for a model: what was said, called and returned before one call.

Concealed, hidden and excluded turns are left out, as are candidates that their turn does not
show. A fork's inherited turns are there as it sees them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from stenograph.conversations import turn as turns
from stenograph.conversations import variant as variants
from stenograph.conversations.turn import UNSETTLED, Turn
from stenograph.conversations.variant import Variant
from stenograph.engine import results, store
from stenograph.engine.models.request import (
    Message,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    system,
    user,
)
from stenograph.engine.work import Work
from stenograph.storage.database import Row, Tx

_PAGE = 200


class CallRest(msgspec.Struct, omit_defaults=True):
    """What of a call has no column. `extra` and `excerpt` are also an export's
    (`trajectories/recording/columns.py`); `preview` is what the model was told."""

    extra: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
    excerpt: bool = False
    preview: str | None = None


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


def messages(tx: Tx, work: Work, before: int) -> tuple[Message, ...]:
    """Return what a model call of a candidate is told; `before` is its place in the trajectory."""
    told: list[Message] = []
    if work.instructions:
        told.append(system(work.instructions))
    for chunk in _earlier(tx, work):
        shown = _shown(tx, chunk)
        said = _said(tx, [candidate.id for _, candidate in shown])
        for turn, candidate in shown:
            told.extend(_turn(turn, candidate, said))
    said = _said(tx, [work.variant.id])
    if work.variant.prompt is not None:
        told.append(user(work.variant.prompt))
    told.extend(_entries(said, work.variant.id, before))
    return tuple(told)


def _earlier(tx: Tx, work: Work) -> Iterator[list[Turn]]:
    after = -1
    while True:
        listed = turns.window(
            tx, work.conversation, after=after, before=work.turn.position, limit=_PAGE
        )
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
    said = _Said(replies=store.reply_reasoning(tx, candidates))
    rounds: list[int] = []
    for row in store.said(tx, candidates):
        said.entries.setdefault(row[0], []).append(row)
        if row[4] is not None:
            rounds.append(row[4])
    for row in store.results(tx, rounds):
        said.results.setdefault(row[0], []).append(row)
    return said


def _turn(turn: Turn, candidate: Variant, said: _Said) -> Iterator[Message]:
    """Tell a turn that has ended; one that failed before the model said anything is left out."""
    if turn.kind == "message":
        yield Message(turn.role, (Text(candidate.content or ""),))
        return
    done = list(_entries(said, candidate.id, None))
    answered = any(message.role == "assistant" for message in done)
    if candidate.status != "completed" and not answered and candidate.status != "canceled":
        return
    if candidate.prompt is not None:
        yield user(candidate.prompt)
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


def _entries(said: _Said, candidate: int, before: int | None) -> Iterator[Message]:
    """Tell the rounds of a candidate with their results, and its steers, up to a place."""
    for _, position, part, text, task_id, message, reasoning, trace in said.entries.get(
        candidate, ()
    ):
        if before is not None and position >= before:
            return
        if part == "steer":
            yield user(text or "")
            continue
        calls = said.results.get(task_id, [])
        yield Message("assistant", _parts(message, reasoning, trace, calls))
        if calls:
            yield Message("tool", tuple(_result(call) for call in calls))


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
