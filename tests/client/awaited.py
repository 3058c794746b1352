"""A `Client` that is used like an `AsyncClient`, so that what holds of both is written once."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from stenograph.client import AsyncClient, Client
from stenograph.client.surface import Resource


class Awaited:
    """Calls block, and are awaited afterwards; `called` tells which methods were, by class."""

    def __init__(self, it: Any, called: set[str] | None = None) -> None:
        self._it = it
        self.called: set[str] = set() if called is None else called

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._it, name)
        if inspect.ismethod(found) or inspect.isfunction(found):
            self.called.add(f"{type(self._it).__name__}.{name}")
            return lambda *args, **named: self._given(found(*args, **named))
        return Awaited(found, self.called) if isinstance(found, Resource) else found

    def _given(self, found: Any) -> Any:
        if isinstance(found, Resource):
            return Awaited(found, self.called)
        return _each(found) if inspect.isgenerator(found) else _soon(found)

    def __aiter__(self) -> Any:
        return _each(iter(self._it))


async def _soon(found: Any) -> Any:
    return found


async def _each(found: Any) -> Any:
    try:
        for item in found:
            yield item
    finally:
        found.close()


#: Ways to use the client; each calls an asynchronous function with one.
WAYS = ("sync", "async")


def use(way: str, act: Callable[[Any], Awaitable[Any]], url: str, key: str, **options: Any) -> Any:
    """Do something with a client of either kind; returns the `Awaited` for "sync"."""

    async def run() -> Any:
        if way == "async":
            async with AsyncClient(url, key, **options) as client:
                return await act(client)
        with Client(url, key, **options) as client:
            return await act(Awaited(client))

    return asyncio.run(run())
