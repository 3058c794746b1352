"""The tool `write`: a file, new or in place of another."""

from threading import Event
from typing import Annotated

import msgspec

from stenograph.engine.tools.result import Result, ToolError
from stenograph.engine.tools.workplace import Workplace

DESCRIPTION = (
    "Write a file below the root folder, in place of one that is there. Missing folders are made. "
    "To change a part of a file, use edit."
)


class Arguments(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What `write` takes."""

    path: Annotated[str, msgspec.Meta(min_length=1, description="The file, from the root folder")]
    content: Annotated[str, msgspec.Meta(description="All that the file is to hold")]


def do(place: Workplace, arguments: Arguments, stop: Event) -> Result:
    """Write."""
    data = encoded("content", arguments.content)
    with place.changing:
        replaced = place.root.replace(arguments.path, data, stop.is_set)
    verb = "Replaced" if replaced else "Created"
    return Result("completed", f"{verb} {arguments.path}: {len(data)} bytes")


def encoded(field: str, text: str) -> bytes:
    """Return the bytes of an argument; raises `ToolError` for what no file could hold."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise ToolError(f"The argument {field} is not valid Unicode") from None
