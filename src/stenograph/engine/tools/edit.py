"""The tool `edit`: one passage of a file, replaced by another."""

from threading import Event
from typing import Annotated

import msgspec

from stenograph.engine.tools.result import Result, ToolError
from stenograph.engine.tools.workplace import Workplace
from stenograph.engine.tools.write import encoded

DESCRIPTION = (
    "Replace one passage of a file below the root folder. old_text has to be in the file exactly "
    "once, to the last space; take in lines around it until it is."
)


class Arguments(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What `edit` takes."""

    path: Annotated[str, msgspec.Meta(min_length=1, description="The file, from the root folder")]
    old_text: Annotated[str, msgspec.Meta(min_length=1, description="The passage as it is")]
    new_text: Annotated[str, msgspec.Meta(description="The passage as it is to be")]


def do(place: Workplace, arguments: Arguments, stop: Event) -> Result:
    """Edit. Bytes are compared, so that nothing but the passage changes, line ends included."""
    path = arguments.path
    old = encoded("old_text", arguments.old_text)
    new = encoded("new_text", arguments.new_text)
    if old == new:
        raise ToolError("old_text and new_text are the same")
    with place.changing:
        with place.root.file(path) as file:
            data = file.read(place.limits.file + 1)
        if len(data) > place.limits.file:
            raise ToolError(f"{path} is larger than the {place.limits.file} bytes that edit takes")
        at = data.find(old)
        if at < 0:
            raise ToolError(f"old_text is not in {path}")
        if data.find(old, at + 1) >= 0:
            raise ToolError(f"old_text is in {path} more than once: take in lines around it")
        place.root.replace(path, data[:at] + new + data[at + len(old) :], stop.is_set)
    line = data.count(b"\n", 0, at) + 1
    return Result("completed", f"Edited {path} at line {line}")
