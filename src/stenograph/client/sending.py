"""Who carries calls and scripts out: blocking (`Sync`), or on an event loop (`Async`).

This is all that there is twice. Both raise `ConnectionFailed` where httpx raises of the transport.
"""

import asyncio
import random
import time
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
from contextlib import (
    AsyncExitStack,
    ExitStack,
    aclosing,
    asynccontextmanager,
    closing,
    contextmanager,
)
from dataclasses import dataclass
from typing import Any, TypeVar

import httpx

from stenograph.client.calls import Answer, Call, failure
from stenograph.client.errors import ConnectionFailed, Error, is_passing
from stenograph.client.records import Frame
from stenograph.client.sse import Parser
from stenograph.client.steps import Give, Hear, Listen, Script, Wait

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Retries:
    """How often what is safe to send twice is sent again, and when.

    That is a GET, and a POST with an idempotency key, when nobody answered, or with 429, 502, 503
    or 504. The waits double from `first` seconds on, by chance up to a quarter shorter; what a
    `Retry-After` says counts instead. Where more than `longest` seconds would have to be waited,
    the error is raised at once. Feeds reconnect after the same waits, as often as they must.
    """

    attempts: int = 2
    first: float = 0.5
    longest: float = 30.0

    def pause(self, attempt: int, error: Error | None = None) -> float:
        """Return the seconds to wait after so many attempts that failed before this one."""
        if error is not None and error.retry_after is not None:
            return error.retry_after
        wait = min(self.first * 2.0 ** min(attempt, 60), self.longest)
        return wait * random.uniform(0.75, 1)  # noqa: S311

    def again(self, call: Call[Any], attempt: int, error: Error) -> float | None:
        """Return the seconds after which to send a call again; None: not at all."""
        if attempt >= self.attempts or not (call.is_safe and is_passing(error)):
            return None
        wait = self.pause(attempt, error)
        return wait if wait <= self.longest else None


def _answer(response: httpx.Response) -> Answer:
    headers = {name.lower(): value for name, value in response.headers.items()}
    return Answer(response.status_code, headers, response.content)


def _is_stream(response: httpx.Response, call: Call[Any]) -> bool:
    kind = response.headers.get("content-type", "")
    return response.status_code == call.status and kind.startswith("text/event-stream")


def _failed(error: httpx.RequestError) -> ConnectionFailed:
    return ConnectionFailed(f"{type(error).__name__}: {error}")


@dataclass(frozen=True, slots=True)
class Sync:
    """Sends with an `httpx.Client`. `stream` are the limits of what is followed."""

    http: httpx.Client
    retries: Retries
    stream: httpx.Timeout

    def send(self, call: Call[T]) -> T:
        """Send a call, again if need be, and read its answer. Raises `Error`."""
        attempt = 0
        while True:
            try:
                return call.result(self._ask(call))
            except Error as error:
                wait = self.retries.again(call, attempt, error)
                if wait is None:
                    raise
            attempt += 1
            time.sleep(wait)

    def _ask(self, call: Call[Any]) -> Answer:
        try:
            return _answer(self.http.request(**call.options()))
        except httpx.RequestError as error:
            raise _failed(error) from error

    def play(self, script: Script[T]) -> Generator[T, None, None]:
        """Carry out a script, and give what it gives."""
        with ExitStack() as line:
            heard: Iterator[Frame] = iter(())
            outcome: Any = None
            trouble: Error | None = None
            while True:
                try:
                    step = script.send(outcome) if trouble is None else script.throw(trouble)
                except StopIteration:
                    return
                outcome, trouble = None, None
                if isinstance(step, Give):
                    yield step.item
                    continue
                try:
                    match step:
                        case Call():
                            outcome = self.send(step)
                        case Wait(seconds):
                            time.sleep(seconds)
                        case Listen(call):
                            line.close()
                            heard = line.enter_context(self._stream(call))
                        case Hear():
                            outcome = next(heard, None)
                except Error as error:
                    trouble = error

    @contextmanager
    def _stream(self, call: Call[Any]) -> Iterator[Iterator[Frame]]:
        try:
            with self.http.stream(**call.options(), timeout=self.stream) as response:
                if not _is_stream(response, call):
                    response.read()
                    raise failure(_answer(response))
                with closing(self._frames(response)) as frames:
                    yield frames
        except httpx.RequestError as error:
            raise _failed(error) from error

    def _frames(self, response: httpx.Response) -> Generator[Frame, None, None]:
        parser = Parser()
        try:
            for chunk in response.iter_bytes():
                yield from parser.feed(chunk)
        except httpx.RequestError as error:
            raise _failed(error) from error


@dataclass(frozen=True, slots=True)
class Async:
    """Sends with an `httpx.AsyncClient`; all else as in `Sync`."""

    http: httpx.AsyncClient
    retries: Retries
    stream: httpx.Timeout

    async def send(self, call: Call[T]) -> T:
        """Send a call, again if need be, and read its answer. Raises `Error`."""
        attempt = 0
        while True:
            try:
                return call.result(await self._ask(call))
            except Error as error:
                wait = self.retries.again(call, attempt, error)
                if wait is None:
                    raise
            attempt += 1
            await asyncio.sleep(wait)

    async def _ask(self, call: Call[Any]) -> Answer:
        try:
            return _answer(await self.http.request(**call.options()))
        except httpx.RequestError as error:
            raise _failed(error) from error

    async def play(self, script: Script[T]) -> AsyncGenerator[T, None]:
        """Carry out a script, and give what it gives."""
        async with AsyncExitStack() as line:
            heard: AsyncIterator[Frame] = _silence()
            outcome: Any = None
            trouble: Error | None = None
            while True:
                try:
                    step = script.send(outcome) if trouble is None else script.throw(trouble)
                except StopIteration:
                    return
                outcome, trouble = None, None
                if isinstance(step, Give):
                    yield step.item
                    continue
                try:
                    match step:
                        case Call():
                            outcome = await self.send(step)
                        case Wait(seconds):
                            await asyncio.sleep(seconds)
                        case Listen(call):
                            await line.aclose()
                            heard = await line.enter_async_context(self._stream(call))
                        case Hear():
                            outcome = await anext(heard, None)
                except Error as error:
                    trouble = error

    @asynccontextmanager
    async def _stream(self, call: Call[Any]) -> AsyncIterator[AsyncIterator[Frame]]:
        try:
            async with self.http.stream(**call.options(), timeout=self.stream) as response:
                if not _is_stream(response, call):
                    await response.aread()
                    raise failure(_answer(response))
                async with aclosing(self._frames(response)) as frames:
                    yield frames
        except httpx.RequestError as error:
            raise _failed(error) from error

    async def _frames(self, response: httpx.Response) -> AsyncGenerator[Frame, None]:
        parser = Parser()
        try:
            async for chunk in response.aiter_bytes():
                for frame in parser.feed(chunk):
                    yield frame
        except httpx.RequestError as error:
            raise _failed(error) from error


async def _silence() -> AsyncIterator[Frame]:
    return
    yield
