"""The `script` tool: Python that the model writes, which calls the other tools (codemode).

Its calls are tool tasks of the same round beneath its own (`engine/beneath.py`). After a crash the
script runs again from its start, and what it had called answers from the record.
"""

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from stenograph.engine import beneath, finish
from stenograph.engine.asking import offered
from stenograph.engine.beneath import Diverged, Made
from stenograph.engine.calls import SCRIPT
from stenograph.engine.desk import Desk
from stenograph.engine.toolbox import ToolContext, ToolOutcome, ToolSpec
from stenograph.engine.toolboxes import progress
from stenograph.engine.toolboxes.progress import Report
from stenograph.engine.work import Work

if TYPE_CHECKING:
    from stenograph.engine.toolboxes.sandbox import Answer, Limits

NAME = SCRIPT
#: How many calls one script may make.
CALLS = 500
#: Characters and values of one call's arguments, together.
ARGUMENTS = 1_000_000
_AGAIN = "Run again after an interruption, the script"
#: What a script may not call.
_OUT_OF_REACH = (SCRIPT, finish.NAME)

SPEC = ToolSpec(
    NAME,
    "Run Python that calls your other tools, to make many calls, or to work on what they return, in"
    " one step. Each tool is a function with keyword arguments that returns the tool's output as a"
    ' string: read(path="a.txt"), or call("read", path="a.txt"). A call that fails raises'
    ' RuntimeError. start("read", path="a.txt") begins a call to be awaited:'
    ' a, b = await asyncio.gather(start("read", path="a"), start("read", path="b")). Returns what'
    " is printed and the value of the last expression. There are a part of the standard library"
    " (json, re, math, datetime, asyncio, itertools, collections …), no files, no network, and a"
    f" clock that stands still. Limits: 60 s of computing, 64 MiB, {CALLS} calls.",
    {
        "type": "object",
        "properties": {"code": {"type": "string", "description": "The script, Python 3."}},
        "required": ["code"],
        "additionalProperties": False,
    },
)


class Script:
    """The provider of `script`."""

    def __init__(self, limits: "Limits | None" = None) -> None:
        """`limits`: others than the usual ones."""
        self._limits = limits

    async def specs(self, work: Work) -> tuple[ToolSpec, ...]:
        """Offer it to every run."""
        return (SPEC,)

    async def call(self, name: str, arguments: dict[str, Any], context: ToolContext) -> ToolOutcome:
        """Run the script to its end."""
        # Imported here: most processes run none.
        from stenograph.engine.toolboxes import sandbox

        code = arguments.get("code")
        if not isinstance(code, str):
            return ToolOutcome("failed", f"{NAME} needs its code as a string")
        desk = context.desk
        assert desk is not None
        tools = await offered(desk, context.work)
        before = await beneath.before(desk, context)
        host = _Host(desk, context, tools, before.made)
        clock = datetime.fromtimestamp(before.begun_at / 1e6, UTC)
        seed = f"{context.work.candidate}/{context.key}"
        limits = self._limits or sandbox.Limits()
        printed = sandbox.Printed(max_bytes=limits.printed)
        try:
            async with progress.shown(context, lambda: _written(printed.output)):
                ran = await sandbox.run(code, host, clock, seed, limits, printed)
            host.check_end()
        except Diverged as difference:
            await beneath.leave(desk, context)
            return ToolOutcome("uncertain", f"{difference}. What it did so far may stand.")
        await beneath.leave(desk, context)
        parts = (ran.printed.rstrip("\n"), ran.value, ran.error)
        output = "\n".join(part for part in parts if part) or "(The script printed nothing.)"
        return ToolOutcome("completed" if ran.error is None else "failed", output)


@dataclass(slots=True)
class _Host:
    """What a script may call: the tools of its session, by their names, `call`, and `start`."""

    desk: Desk
    context: ToolContext
    tools: Mapping[str, ToolSpec]
    #: What it called when it was run before.
    recorded: Sequence[Made]
    #: How many calls it has made now.
    count: int = 0

    def knows(self, name: str) -> bool:
        return name in ("call", "start") or name in self.tools

    async def begin(
        self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> "Awaitable[Answer]":
        """Begin a call: it has its place in the record before the script goes on."""
        if name in ("call", "start"):
            if not args or not isinstance(args[0], str):
                return _raised("TypeError", f"{name}() needs the name of a tool first")
            name, args = args[0], args[1:]
        elif name not in self.tools:
            return _raised("NameError", f"name {name!r} is not defined")
        if name in _OUT_OF_REACH or name not in self.tools:
            known = ", ".join(sorted(it for it in self.tools if it not in _OUT_OF_REACH)) or "none"
            return _raised("NameError", f"A script cannot call {name!r}; there are: {known}")
        if args:
            return _raised("TypeError", f"{name} takes keyword arguments only")
        if self.count >= CALLS:
            return _raised("RuntimeError", f"A script makes at most {CALLS} calls")
        try:
            arguments = _json(kwargs)
        except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as problem:
            return _raised("TypeError", f"The arguments of {name} cannot be sent: {problem}")
        number, self.count = self.count, self.count + 1
        if number >= len(self.recorded):
            key = await beneath.add(self.desk, self.context, number, name, arguments)
        else:
            key = self._recorded(number, name, arguments)
        return self._answer(name, key)

    def _recorded(self, number: int, name: str, arguments: str) -> str:
        known = self.recorded[number]
        if (known.name, known.arguments) != (name, arguments):
            other = "it with other arguments" if name == known.name else known.name
            raise Diverged(f"{_AGAIN} called {name} where it had called {other} before")
        return known.key

    async def _answer(self, name: str, key: str) -> "Answer":
        done = await beneath.settled(self.desk, self.context, key)
        if done.status == "completed":
            return {"return_value": done.output}
        return {"exc_type": "RuntimeError", "message": f"{name} {done.status}: {done.output}"}

    def check_end(self) -> None:
        """Raise `Diverged` if the script had made more calls when it was run before."""
        if self.count < len(self.recorded):
            raise Diverged(f"{_AGAIN} made {self.count} calls of the {len(self.recorded)} before")


def _written(text: str) -> Report | None:
    return progress.end_of(text) if text else None


async def _raised(kind: Any, message: str) -> "Answer":
    return {"exc_type": kind, "message": message}


def _json(arguments: dict[str, Any]) -> str:
    """Write arguments as JSON. Raises `ValueError` for those that are too large."""
    if not _is_at_most(arguments, ARGUMENTS):
        raise ValueError("they are too large")
    return msgspec.json.encode(arguments).decode()


def _is_at_most(value: object, most: int) -> bool:
    """Tell whether a value has at most so many characters and values, shared ones counted each
    time: a list that holds one list ten times is small in memory, and its text may be without end.
    """
    waiting = [value]
    while waiting:
        found = waiting.pop()
        most -= 1
        if isinstance(found, str | bytes):
            most -= len(found)
        elif isinstance(found, dict):
            most -= len(found)
            if most >= 0:
                waiting += (*found.keys(), *found.values())
        elif isinstance(found, list | tuple | set | frozenset):
            most -= len(found)
            if most >= 0:
                waiting += found
        if most < 0:
            return False
    return True
