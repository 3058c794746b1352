"""One command in a process group of its own: bounded in time and memory, ended as a whole."""

import asyncio
import os
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stenograph.engine.tools.capture import Capture

_CHUNK = 64 << 10
#: Bytes, more than a pipe holds.
_PIPE = 1 << 20
#: Seconds that a killed process is waited for; one that hangs in the kernel is left behind.
_REAPING = 5.0


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended: `status` as `subprocess` counts (negative: by a signal), None if its
    time was up; its output and errors as they came, in one."""

    status: int | None
    output: Capture


async def run(
    command: Sequence[str], folder: str, env: Mapping[str, str], seconds: float, output: Capture
) -> Ended:
    """Run a command to its end and return it; `output` takes what it writes.

    However this ends, by cancellation too, the whole group is killed: what a command left running
    in the background as well. What it put into a session of its own (`setsid`) lives on.
    Raises `OSError` if it cannot be started.
    """
    loop = asyncio.get_running_loop()
    reading, process = _start(command, folder, env)
    exited = asyncio.Event()
    threading.Thread(target=_reap, args=(process, loop, exited), daemon=True).start()
    try:
        loop.add_reader(reading, _take, loop, reading, output)
        in_time = await _within(seconds, exited)
    finally:
        # First of all, before anything here can be cancelled again.
        _kill(process.pid)
        loop.remove_reader(reading)
        try:
            await _within(_REAPING, exited)
            _drain(reading, output)
        finally:
            os.close(reading)
    return Ended(process.returncode if in_time else None, output)


def _start(
    command: Sequence[str], folder: str, env: Mapping[str, str]
) -> tuple[int, "subprocess.Popen[bytes]"]:
    reading, writing = os.pipe()
    try:
        os.set_blocking(reading, False)
        process = subprocess.Popen(  # noqa: S603 - running what it is told is what it is for
            command,
            stdin=subprocess.DEVNULL,
            stdout=writing,
            stderr=writing,
            cwd=folder,
            env=env,
            start_new_session=True,
        )
    except BaseException:
        os.close(reading)
        raise
    finally:
        os.close(writing)
    return reading, process


def _reap(
    process: "subprocess.Popen[bytes]", loop: asyncio.AbstractEventLoop, exited: asyncio.Event
) -> None:
    process.wait()
    try:
        loop.call_soon_threadsafe(exited.set)
    except RuntimeError:
        # The loop is closed: nobody waits any more.
        pass


def _kill(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        # All gone; some systems say so of a group of the dead in the second way.
        pass


async def _within(seconds: float, event: asyncio.Event) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True


def _take(loop: asyncio.AbstractEventLoop, reading: int, output: Capture) -> None:
    chunk = _read(reading)
    if chunk:
        output.add(chunk)
    elif chunk is not None:
        loop.remove_reader(reading)


def _drain(reading: int, output: Capture) -> None:
    """Take what is left in the pipe, and no more: somebody may write to it for ever."""
    left = _PIPE
    while left > 0 and (chunk := _read(reading)):
        output.add(chunk)
        left -= len(chunk)


def _read(reading: int) -> bytes | None:
    """Read what is there: None if that is nothing yet, no bytes if it is the end."""
    try:
        return os.read(reading, _CHUNK)
    except BlockingIOError:
        return None
