"""The tool `glob`: paths by pattern."""

import os
from threading import Event
from typing import Annotated

import msgspec

from stenograph.engine.tools import pattern as patterns
from stenograph.engine.tools.result import Result
from stenograph.engine.tools.tree import Walk, printable
from stenograph.engine.tools.workplace import Workplace

DESCRIPTION = (
    "List files and folders (these end in /) below the root folder by pattern, such as *, "
    "src/**/*.py or **/*.{md,txt}. The insides of .git are left out."
)


class Arguments(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What `glob` takes."""

    pattern: Annotated[str, msgspec.Meta(min_length=1, description="The pattern of the paths")]
    path: Annotated[str, msgspec.Meta(min_length=1, description="The folder to start from")] = "."


def do(place: Workplace, arguments: Arguments, stop: Event) -> Result:
    """List."""
    folders, rest = patterns.split(arguments.pattern.rstrip("/") or "/")
    wanted = patterns.paths(rest)
    walk = Walk(place.root, os.path.join(arguments.path, folders), place.limits.entries, stop)
    found: list[str] = []
    truncated = False
    for path, is_folder in walk.entries():
        if wanted.search(printable(path)) is None:
            continue
        if len(found) == place.limits.found:
            truncated = True
            break
        found.append(printable(walk.path(path)) + ("/" if is_folder else ""))
    notes: tuple[str, ...] = () if found else ("nothing matches",)
    if truncated:
        notes = (f"only the first {len(found)} are listed; narrow the pattern",)
    elif walk.cut:
        notes += (f"only the first {walk.limit} files and folders were looked at",)
    text = "".join(f"{path}\n" for path in sorted(found))
    return Result("completed", text, notes, truncated or walk.cut)
