"""The tool `bash`: a command, run where the worker runs."""

import signal
from typing import Annotated

import msgspec

from stenograph.engine.toolbox import ToolStatus
from stenograph.engine.tools import process
from stenograph.engine.tools.capture import Capture
from stenograph.engine.tools.result import Result, ToolError
from stenograph.engine.tools.workplace import Workplace

DESCRIPTION = (
    "Run a command with bash in the root folder. It has no input; its output and errors come back "
    "together. When it ends or its time is up, all that it started is ended as well."
)

_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"


class Arguments(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What `bash` takes."""

    command: Annotated[str, msgspec.Meta(min_length=1, description="The command, a shell script")]
    timeout_seconds: (
        Annotated[float, msgspec.Meta(gt=0, description="After which it is ended")] | None
    ) = None


async def do(place: Workplace, arguments: Arguments) -> Result:
    """Run it: completed with exit status 0, failed with another, timed out."""
    limits = place.limits
    seconds = min(arguments.timeout_seconds or limits.timeout, limits.longest_timeout)
    env = {"PATH": _PATH, "HOME": place.root.path, **place.env}
    command = ("bash", "--noprofile", "--norc", "-c", arguments.command)
    # That the folder is there is told by it, not by what `bash` says of it.
    with place.root.folder("."):
        pass
    try:
        ended = await process.run(
            command, place.root.path, env, seconds, Capture(limits.output, place.watch)
        )
    except UnicodeEncodeError:
        raise ToolError("The command is not valid Unicode") from None
    except ValueError:
        raise ToolError("A command and its environment cannot hold a NUL character") from None
    text, binary = ended.output.text()
    notes = _notes(ended.status, seconds)
    if ended.output.truncated:
        notes += (f"{ended.output.total} bytes, of which {limits.output} are kept",)
    if ended.status is None:
        return Result("timed_out", text, notes, ended.output.truncated, binary)
    status: ToolStatus = "completed" if ended.status == 0 else "failed"
    return Result(status, text, notes, ended.output.truncated, binary)


def _notes(status: int | None, seconds: float) -> tuple[str, ...]:
    if status is None:
        return (f"timed out after {seconds:g} seconds, and was ended",)
    if status < 0:
        return (f"ended by {_signal(-status)}",)
    return (f"exit status {status}",) if status else ()


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
