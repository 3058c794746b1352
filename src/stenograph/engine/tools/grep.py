"""The tool `grep`: lines by regular expression."""

from collections.abc import Iterator
from dataclasses import dataclass
from threading import Event
from typing import Annotated, Any

import msgspec

from stenograph.engine import results
from stenograph.engine.tools import pattern as patterns
from stenograph.engine.tools.lines import blocks
from stenograph.engine.tools.result import Result, ToolError
from stenograph.engine.tools.tree import Walk, printable
from stenograph.engine.tools.workplace import Workplace

DESCRIPTION = (
    "Search the text files below the root folder by regular expression (RE2 syntax), line by line. "
    "Answers path:line:text. Binary files and the insides of .git are left out."
)

#: Characters of a line that are shown.
_SHOWN = 400
#: Bytes at a file's beginning that tell whether it is binary.
_SNIFFED = 8_192
#: Bytes that are matched at once.
_BLOCK = 64 << 10


class Arguments(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What `grep` takes."""

    pattern: Annotated[str, msgspec.Meta(min_length=1, description="The regular expression")]
    path: Annotated[str, msgspec.Meta(min_length=1, description="The folder or file to search")] = (
        "."
    )
    glob: Annotated[str, msgspec.Meta(min_length=1, description="Only files like this: *.py")] | (
        None
    ) = None
    ignore_case: Annotated[bool, msgspec.Meta(description="Whether a is A as well")] = False
    limit: Annotated[int, msgspec.Meta(ge=1, description="How many lines at most")] = 200


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What is searched: `line` decides; `block` rules out most of what no line of it matches."""

    line: Any
    block: Any | None

    def lines(self, block: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield the lines that match, with their numbers from 0."""
        if self.block is not None and self.block.search(block) is None:
            return
        for number, line in enumerate(block.removesuffix(b"\n").split(b"\n")):
            if self.line.search(line) is not None:
                yield number, line


def do(place: Workplace, arguments: Arguments, stop: Event) -> Result:
    """Search."""
    asked = (arguments.pattern, arguments.ignore_case)
    wanted = _Wanted(patterns.expression(*asked), patterns.anywhere(*asked))
    walk = Walk(place.root, arguments.path, place.limits.entries, stop)
    limit = min(arguments.limit, place.limits.found)
    found: list[str] = []
    truncated = False
    for file in _files(place, arguments, walk):
        for line in _matches(place, file, wanted, stop):
            if len(found) == limit:
                truncated = True
                break
            found.append(line)
        if truncated:
            break
    notes: tuple[str, ...] = () if found else ("nothing matches",)
    if truncated:
        notes = (f"only the first {limit} lines are shown; narrow the search",)
    elif walk.cut:
        notes += (f"only the first {walk.limit} files and folders were looked at",)
    return Result("completed", "".join(found), notes, truncated or walk.cut)


def _files(place: Workplace, arguments: Arguments, walk: Walk) -> Iterator[str]:
    if not place.root.is_folder(arguments.path):
        # Opened once before, so that a file named by the call is read or its error told.
        with place.root.file(arguments.path):
            pass
        yield arguments.path
        return
    glob = arguments.glob
    # Without a folder in it, the pattern is one of names, wherever they are.
    wanted = patterns.paths(glob if "/" in glob else f"**/{glob}") if glob else None
    for path, is_folder in walk.entries():
        if not is_folder and (wanted is None or wanted.search(printable(path))):
            yield walk.path(path)


def _matches(place: Workplace, path: str, wanted: _Wanted, stop: Event) -> Iterator[str]:
    secrets = tuple(place.env.values())
    try:
        with place.root.file(path) as file:
            if b"\x00" in file.read(_SNIFFED):
                return
            file.seek(0)
            for first, block in blocks(file, _BLOCK):
                if stop.is_set():
                    return
                for number, line in wanted.lines(block.replace(b"\r\n", b"\n")):
                    text = results.beginning(line.decode(errors="replace"), _SHOWN, secrets)
                    yield f"{printable(path)}:{first + number}:{text}\n"
    except (OSError, ToolError):
        # A link that leads out, a pipe, a file gone meanwhile: no text file of this root.
        return
