"""The tools of one root, for the worker that has it."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from threading import Event
from typing import Any, TypeAlias, TypeVar

import msgspec
import structlog

from stenograph.engine.toolbox import ToolOutcome, ToolSpec
from stenograph.engine.tools import bash, edit, glob, grep, read, root, write
from stenograph.engine.tools.result import Result, ToolError, failed
from stenograph.engine.tools.workplace import Limits, Permission, Permissions, Workplace

_log = structlog.get_logger()

A = TypeVar("A", bound=msgspec.Struct)
_Does: TypeAlias = Callable[[Workplace, Any], Awaitable[Result]]


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool's declaration. `repeatable`: doing it twice is as good as doing it once."""

    name: str
    description: str
    arguments: type[msgspec.Struct]
    does: _Does
    needs: tuple[Permission, ...]
    repeatable: bool = True

    @property
    def spec(self) -> ToolSpec:
        """What a model is told of it."""
        _, schemas = msgspec.json.schema_components([self.arguments])
        schema = schemas[self.arguments.__name__]
        told = {key: value for key, value in schema.items() if key not in ("title", "description")}
        return ToolSpec(self.name, self.description, told)


def _threaded(do: Callable[[Workplace, A, Event], Result]) -> _Does:
    """Do what waits for disks in a thread, which is told to stop when nobody waits any more."""

    async def does(place: Workplace, arguments: A) -> Result:
        stop = Event()
        try:
            async with asyncio.timeout(place.limits.timeout) as clock:
                return await asyncio.to_thread(do, place, arguments, stop)
        except TimeoutError:
            if not clock.expired():
                raise
            return Result("timed_out", f"Timed out after {place.limits.timeout:g} seconds")
        finally:
            stop.set()

    return does


#: Every tool there is.
TOOLS = (
    Tool("bash", bash.DESCRIPTION, bash.Arguments, bash.do, ("execute",), repeatable=False),
    Tool("read", read.DESCRIPTION, read.Arguments, _threaded(read.do), ("read",)),
    Tool("write", write.DESCRIPTION, write.Arguments, _threaded(write.do), ("write",)),
    Tool(
        "edit",
        edit.DESCRIPTION,
        edit.Arguments,
        _threaded(edit.do),
        ("read", "write"),
        repeatable=False,
    ),
    Tool("glob", glob.DESCRIPTION, glob.Arguments, _threaded(glob.do), ("read",)),
    Tool("grep", grep.DESCRIPTION, grep.Arguments, _threaded(grep.do), ("read",)),
)
_BY_NAME = {tool.name: tool for tool in TOOLS}


@dataclass(frozen=True, slots=True)
class LocalToolbox:
    """The tools of a root; `specs` are those that its permissions allow."""

    place: Workplace
    tools: tuple[Tool, ...]
    specs: tuple[ToolSpec, ...] = field(repr=False)

    async def call(self, name: str, arguments: dict[str, Any], *, resumed: bool) -> ToolOutcome:
        """Do it; `uncertain`, if it was begun before and cannot be repeated."""
        tool = _BY_NAME.get(name)
        if resumed and tool is not None and not tool.repeatable:
            return ToolOutcome(
                "uncertain",
                f"This call of {name} was begun before, and its end was not seen: look at what it "
                "did before you call it again.",
            )
        result = await self.run(name, arguments)
        return result.outcome(tuple(self.place.env.values()))

    async def run(self, name: str, arguments: dict[str, Any]) -> Result:
        """Do it. Whatever goes wrong is the result; only cancellation is raised."""
        try:
            tool = _allowed(self.place.permissions, name)
            return await tool.does(self.place, msgspec.convert(arguments, tool.arguments))
        except msgspec.ValidationError as problem:
            return failed(f"The arguments of {name} are not right: {problem}")
        except ToolError as problem:
            return failed(str(problem))
        except OSError as problem:
            about = arguments.get("path") or problem.filename or name
            return failed(f"{about}: {problem.strerror or problem}")
        except Exception as problem:
            _log.exception("tool_raised", tool=name)
            return failed(f"{name} failed by a fault of its own: {type(problem).__name__}")


def local(
    folder: str | os.PathLike[str],
    permissions: Permissions,
    env: Mapping[str, str],
    limits: Limits | None = None,
) -> LocalToolbox:
    """Return the tools of a folder; raises `ToolError` if there is none.

    `env` is what commands are given besides a `PATH` and a `HOME`, which it may replace: a
    session's secrets go here, and nothing of this process's own environment does.
    """
    place = Workplace(root.at(folder), permissions, limits or Limits(), dict(env))
    tools = tuple(tool for tool in TOOLS if not permissions.missing(tool.needs))
    return LocalToolbox(place, tools, tuple(tool.spec for tool in tools))


def _allowed(permissions: Permissions, name: str) -> Tool:
    tool = _BY_NAME.get(name)
    if tool is None:
        raise ToolError(f"There is no tool named {name!r}; there are: {', '.join(_BY_NAME)}")
    missing = permissions.missing(tool.needs)
    if missing:
        raise ToolError(f"The root folder may not be used to {' or '.join(missing)}")
    return tool
