"""The tool `read`: lines of a file."""

import io
from threading import Event
from typing import Annotated

import msgspec

from stenograph.engine import results
from stenograph.engine.tools.lines import pieces
from stenograph.engine.tools.result import Result, ToolError, decoded
from stenograph.engine.tools.workplace import Workplace

DESCRIPTION = (
    "Read a text file below the root folder, with line numbers. About 4,000 characters are shown "
    "at a time; go on with offset."
)

#: Of a preview's characters, those left for its notes.
_NOTES = 300


class Arguments(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What `read` takes."""

    path: Annotated[str, msgspec.Meta(min_length=1, description="The file, from the root folder")]
    offset: Annotated[int, msgspec.Meta(ge=1, description="The first line, counted from 1")] = 1
    limit: Annotated[int, msgspec.Meta(ge=1, le=100_000, description="How many lines")] = 2_000
    numbered: Annotated[bool, msgspec.Meta(description="Whether lines begin with number, tab")] = (
        True
    )


def do(place: Workplace, arguments: Arguments, stop: Event) -> Result:
    """Read."""
    end, room = arguments.offset + arguments.limit, place.limits.output
    taken = io.BytesIO()
    last = started = 0
    truncated = more = False
    with place.root.file(arguments.path) as file:
        for last, piece in pieces(file):
            if stop.is_set() or last >= end or truncated:
                more = True
                break
            if last < arguments.offset:
                continue
            if arguments.numbered and last > started:
                taken.write(b"%d\t" % last)
            started = last
            left = room - taken.tell()
            truncated = len(piece) > left
            taken.write(piece[: max(left, 0)])
    if last < arguments.offset and (last or arguments.offset > 1):
        raise ToolError(f"{arguments.path} has only {last} lines")
    text, binary = decoded(taken.getvalue(), cut=truncated)
    notes: tuple[str, ...] = ()
    if truncated:
        notes = (f"cut at {room} bytes, in line {started}",)
    elif more:
        notes = (f"more lines follow; go on with offset {end}",)
    return Result("completed", text, notes, truncated, binary, _preview(text, arguments.offset))


def _preview(text: str, first: int) -> str | None:
    """Return the whole lines that fit into a preview, and where to go on."""
    if len(text) <= results.PREVIEW - _NOTES:
        return None
    end = text.rfind("\n", 0, results.PREVIEW - _NOTES) + 1
    if not end:
        return None
    shown = text[:end]
    following = first + shown.count("\n")
    return f"[lines {first} to {following - 1} are shown; go on with offset {following}]\n{shown}"
