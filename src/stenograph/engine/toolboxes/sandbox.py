"""Python that a model wrote, run by pydantic-monty: no files, no network, no environment.

Each script has a worker process of its own, which ends with it: whatever the script does to its
interpreter, it is done to nobody else. The worker is driven from a thread, a step at a time, so
that a script which computes holds up no event loop, and one that waits for a call holds no thread.

The same code with the same answers does the same: the clock stands, `random` begins from a seed.
"""

import asyncio
import os
import re
import signal
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, Protocol, TypeAlias, TypeVar

from pydantic_monty import (
    CollectString,
    ExternalSettledResult,
    FunctionSnapshot,
    FutureSnapshot,
    Monty,
    MontyComplete,
    MontyCrashedError,
    MontyError,
    MontyRuntimeError,
    MontySession,
    MontySyntaxError,
    NameLookupSnapshot,
    SyncSnapshot,
)

T = TypeVar("T")
Answer: TypeAlias = ExternalSettledResult
#: What collects a script's output; its `output` may be read on any thread, while the script runs.
Printed: TypeAlias = CollectString

#: How many scripts compute at the same time.
_THREADS = ThreadPoolExecutor(16, thread_name_prefix="script")
_FILE = "<python-input-0>"
_AWAIT = re.compile(rb"\bawait\s*$")


@dataclass(frozen=True, slots=True)
class Limits:
    """`seconds`: of computing, without the calls; `asleep`: seconds of sleeping in all; `memory` in
    bytes; `printed`: bytes of output."""

    seconds: float = 60.0
    asleep: float = 600.0
    memory: int = 64 * 2**20
    depth: int = 200
    printed: int = 1_000_000
    suspensions: int = 5_000


@dataclass(frozen=True, slots=True)
class Ran:
    """What a script printed, its last expression as text, and how it failed (None: it did not)."""

    printed: str
    value: str
    error: str | None


class Host(Protocol):
    """What a script may call."""

    def knows(self, name: str) -> bool:
        """Tell whether this is the name of a function."""
        ...

    async def begin(
        self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Awaitable[Answer]:
        """Begin a call, in the order of the script, and return what waits for its answer."""
        ...


async def run(
    code: str, host: Host, clock: datetime, seed: str, limits: Limits, printed: Printed
) -> Ran:
    """Run a script to its end; what it began and did not wait for is waited for here.

    `printed` takes what it prints while it runs.

    Cancelled, it stops at once. What `host` raises comes out.
    """
    stack = ExitStack()
    try:
        session = await _in_thread(partial(_open, stack, clock, seed, limits))
        script = _Script(session, session.worker_pid, code, host, limits)
        try:
            value = await script.drive(printed)
            return Ran(printed.output, await script.shown(value), None)
        except MontyError as error:
            return Ran(printed.output, "", _told(error, limits))
        finally:
            await script.close()
    finally:
        await _in_thread(stack.close)


def _open(stack: ExitStack, clock: datetime, seed: str, limits: Limits) -> MontySession:
    pool = stack.enter_context(Monty(min_processes=0, max_processes=1))
    return stack.enter_context(
        pool.checkout(
            limits={
                "max_feed_duration_secs": limits.seconds,
                "max_memory": limits.memory,
                "max_recursion_depth": limits.depth,
                "max_suspensions": limits.suspensions,
            },
            os_policy={
                "datetime": clock,
                "sleep": "call_host",
                "random_start": {"seed": seed},
            },
        )
    )


@dataclass(slots=True)
class _Script:
    session: MontySession
    pid: int | None
    code: str
    host: Host
    limits: Limits
    #: Calls that the script waits for later, by their number.
    calls: dict[int, asyncio.Future[Answer]] = field(default_factory=dict)
    slept: float = 0.0

    async def drive(self, printed: Printed) -> object:
        """Run the script; returns the value of its last expression. Raises `MontyError`."""
        feed = partial(self.session.feed_start, self.code, print_callback=printed)
        try:
            at = await self._step(feed)
            while not isinstance(at, MontyComplete):
                at = await self._step(await self._answered(at))
            return at.output
        finally:
            # Not those that are cancelled with the script: `close` does that.
            if not _is_cancelled():
                await asyncio.gather(*self.calls.values())

    async def _answered(self, at: SyncSnapshot) -> Callable[[], SyncSnapshot]:
        """Return how a script that waits for something goes on."""
        match at:
            case NameLookupSnapshot():
                if at.object_id is None and self.host.knows(at.variable_name):
                    return partial(at.resume, value=_function(at.variable_name))
                return at.resume
            case FutureSnapshot():
                # All at once, not as they come: so it goes the same way when it is run again.
                numbers = at.pending_call_ids
                answers = await asyncio.gather(*(self.calls[number] for number in numbers))
                return partial(at.resume, dict(zip(numbers, answers, strict=True)))
            case FunctionSnapshot():
                return await self._called(at)
        raise AssertionError(at)

    async def _called(self, at: FunctionSnapshot) -> Callable[[], SyncSnapshot]:
        name = at.function_name
        if at.is_os_function:
            if name not in ("time.sleep", "asyncio.sleep"):
                return at.resume_not_handled
            waiting: Awaitable[Answer] = self._sleep(at.args[0])
        else:
            waiting = await self.host.begin(name, at.args, at.kwargs)
        if name in ("start", "asyncio.sleep") or self._is_awaited(at):
            self.calls[at.call_id] = asyncio.ensure_future(waiting)
            return partial(at.resume, {"future": ...})
        return partial(at.resume, await waiting)

    def _is_awaited(self, at: FunctionSnapshot) -> bool:
        if at.allow_eager_await:
            return True
        before = self.code.encode()[: at.position.start]
        return at.position.filename == _FILE and _AWAIT.search(before) is not None

    async def _sleep(self, seconds: float) -> Answer:
        if not 0 <= seconds <= self.limits.asleep - self.slept:
            message = f"a script sleeps at most {self.limits.asleep:g} s in all"
            return {"exc_type": "TimeoutError", "message": message}
        self.slept += seconds
        await asyncio.sleep(seconds)
        return {"return_value": None}

    async def shown(self, value: object) -> str:
        """Return a value as text. The sandbox writes it: a value that is small in memory may be
        larger than all memory as text."""
        if value is None or isinstance(value, str):
            return value or ""
        feed = partial(self.session.feed_run, "repr(_value)", inputs={"_value": value})
        try:
            return str(await self._step(feed))
        except (MontyError, TypeError, ValueError, OverflowError, RecursionError):
            return f"(a value of the type {type(value).__name__} that cannot be shown)"

    async def close(self) -> None:
        """Leave no call of the script behind."""
        for waiting in self.calls.values():
            waiting.cancel()
        await asyncio.gather(*self.calls.values(), return_exceptions=True)

    async def _step(self, act: Callable[[], T]) -> T:
        return await _in_thread(act, self._kill)

    def _kill(self) -> None:
        if self.pid is not None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)


async def _in_thread(act: Callable[[], T], stop: Callable[[], None] | None = None) -> T:
    """Do something in a thread. Cancelled, this tells it to `stop`, and returns when it has."""
    doing = asyncio.get_running_loop().run_in_executor(_THREADS, act)
    try:
        return await asyncio.shield(doing)
    except asyncio.CancelledError:
        if stop is not None:
            stop()
        await asyncio.wait({doing})
        raise


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _function(name: str) -> Callable[..., None]:
    """Return what stands for a function of the host, which is called by its name."""

    def function() -> None:
        """Only its name counts."""

    function.__name__ = function.__qualname__ = name
    return function


def _told(error: MontyError, limits: Limits) -> str:
    """Return what a model is told of a failure: where, what, and which limits there are."""
    if isinstance(error, MontyCrashedError):
        return f"The interpreter was stopped: {error}"
    if not isinstance(error, MontyRuntimeError | MontySyntaxError):
        return str(error)
    text = error.display().replace(_FILE, "script")
    if isinstance(error.exception(), TimeoutError | MemoryError):
        text += (
            f"\n(A script may compute for {limits.seconds:g} s, use {limits.memory // 2**20} MiB,"
            f" and print {limits.printed} bytes.)"
        )
    return text
