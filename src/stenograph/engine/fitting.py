"""How a history fits a model's window: how long it is, what is cut, left out, or summed up.

Lengths are in tokens. What a provider counted for the last answered call is the truth up to there;
what came since is estimated from its UTF-8 bytes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from stenograph.engine.models.request import (
    Message,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    aside,
)
from stenograph.engine.units import Unit

#: Bytes of a token, for what nobody has counted. English prose has more, code and JSON fewer.
_BYTES = 3.5
#: The share of a window from which on a history is too long.
FULL = 0.8
#: The share of a window that is kept as it was said when the rest is summed up.
KEPT = 0.2
#: The share of a window that one tool result may have in a request; the record keeps all of it.
_RESULT = 0.25
#: What a message takes besides its words.
_FRAME = 4


@dataclass(frozen=True, slots=True)
class Split:
    """A history in two: what a summary is to stand for, and what stays as it was said."""

    replaced: tuple[Unit, ...]
    kept: tuple[Unit, ...]


def tokens(text: str) -> int:
    """Estimate the length of a text."""
    return int(len(text.encode("utf-8", "replace")) / _BYTES) + 1 if text else 0


def length(messages: Sequence[Message]) -> int:
    """Estimate the length of messages."""
    return sum(_FRAME + sum(map(_part, message.parts)) for message in messages)


def _part(part: Part) -> int:
    match part:
        case Text() | Reasoning():
            return tokens(part.text)
        case ToolCall():
            return tokens(part.name) + tokens(part.arguments)
        case ToolResult():
            return tokens(part.output)
        case _:
            return 1_000  # about what the providers take for a picture


def total(units: Sequence[Unit], *, counted: bool = True) -> int:
    """Return the length of a history; `counted` false: what was counted before is no measure."""
    for n in range(len(units) - 1, -1, -1):
        unit = units[n]
        if counted and unit.used is not None:
            behind = unit.messages[len(unit.messages) - unit.behind :]
            return unit.used + length(behind) + sum(length(it.messages) for it in units[n + 1 :])
    return sum(length(unit.messages) for unit in units)


def measure(units: Sequence[Unit]) -> int | None:
    """Return the task whose count `total` goes by."""
    return next((it.task_id for it in reversed(units) if it.used is not None), None)


def shortened(units: Sequence[Unit], window: int) -> tuple[Unit, ...]:
    """Cut the tool results that alone would fill a good part of a window."""
    most = int(window * _RESULT * _BYTES)
    return tuple(replace(it, messages=tuple(_cut(m, most) for m in it.messages)) for it in units)


def _cut(message: Message, most: int) -> Message:
    if message.role != "tool":
        return message
    return Message("tool", tuple(_cut_result(part, most) for part in message.parts))


def _cut_result(part: Part, most: int) -> Part:
    if not isinstance(part, ToolResult) or len(part.output) <= most:
        return part
    return replace(part, output=middle_out(part.output, most))


def middle_out(text: str, most: int) -> str:
    """Cut a text to about `most` characters: three quarters of it from its beginning."""
    if len(text) <= most:
        return text
    head, tail = most * 3 // 4, most // 4
    return f"{text[:head]}\n[… {len(text) - head - tail} characters left out …]\n{text[-tail:]}"


def split(units: Sequence[Unit], keep: int) -> Split:
    """Part a history: its newest turns and rounds stay, up to `keep` tokens, and the last round in
    any case, for nobody has answered its results. The prompt and the instructions always stay."""
    movable = [unit for unit in units if unit.kind not in ("system", "prompt")]
    room, cut = keep, len(movable)
    rounds = [n for n, unit in enumerate(movable) if unit.kind == "round"]
    must = rounds[-1] if rounds else _trailing(movable)
    for n in range(len(movable) - 1, -1, -1):
        room -= length(movable[n].messages)
        if movable[n].kind == "summary" or (n < must and room < 0):
            break
        cut = n
    gone = {id(unit) for unit in movable[:cut]}
    return Split(tuple(movable[:cut]), tuple(unit for unit in units if id(unit) not in gone))


def _trailing(movable: Sequence[Unit]) -> int:
    """Return where the steers begin with which a running turn without rounds ends."""
    at = len(movable)
    while at and movable[at - 1].kind == "steer":
        at -= 1
    return at


def trimmed(units: Sequence[Unit], most: int) -> tuple[tuple[Unit, ...], int]:
    """Leave out the oldest turns, then the oldest rounds of the running one, until a history has
    `most` tokens; returns it with how many units it lost. The last round always stays."""
    kept = list(units)
    rounds = [unit for unit in kept if unit.kind == "round"]
    order = [unit for unit in kept if unit.kind == "turn"] + rounds[:-1]
    size = sum(length(unit.messages) for unit in kept)
    lost: list[Unit] = []
    for unit in order:
        if size <= most:
            break
        size -= length(unit.messages)
        lost.append(unit)
    if not lost:
        return tuple(units), 0
    first = next(n for n, unit in enumerate(kept) if unit is lost[0])
    gone = {id(unit) for unit in lost}
    note = Unit("note", (aside(_note(lost)),))
    rest = [unit for unit in kept[first:] if id(unit) not in gone]
    return (*kept[:first], note, *rest), len(lost)


def _note(lost: Sequence[Unit]) -> str:
    rounds = sum(unit.kind == "round" for unit in lost)
    turns = len(lost) - rounds
    parts = [f"{turns} earlier turns"] * bool(turns)
    parts += [f"{rounds} rounds of the running turn"] * bool(rounds)
    return f"Left out here, as there is no room for them: {' and '.join(parts)}."
