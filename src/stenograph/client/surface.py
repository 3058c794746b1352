"""How one source serves callers that wait and callers that await (docs/decisions/0044).

A method that asks once is a function that returns a `Call`, under `@operation`; one that gives many
things is a generator of steps, under `@iteration`. Through a `Client` the first returns the call's
result and the second a generator of what is given; through an `AsyncClient`, a coroutine and an
asynchronous generator.
"""

import functools
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from types import MethodType
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from stenograph.client.calls import Call, path
from stenograph.client.sending import Async, Sync
from stenograph.client.steps import Script

P = ParamSpec("P")
T = TypeVar("T")
#: Who sends.
Via = TypeVar("Via", bound=Sync | Async)


class Resource(Generic[Via]):
    """Something on the server, by its path."""

    def __init__(self, via: Via, *at: str) -> None:
        self._via: Via = via
        self._at = at
        self._path()  # an id that is none is refused here

    def _path(self, *more: str) -> str:
        return path(*self._at, *more)


class operation(Generic[P, T]):  # noqa: N801
    """Makes a method of a function that returns a `Call`; `call` is that function."""

    def __init__(self, call: Callable[Concatenate[Any, P], Call[T]]) -> None:
        @functools.wraps(call)
        def method(on: Any, *args: P.args, **kwargs: P.kwargs) -> Any:
            return on._via.send(call(on, *args, **kwargs))

        self.call, self._method = call, method
        self.__doc__ = call.__doc__

    @overload
    def __get__(self, on: None, owner: type) -> "operation[P, T]": ...
    @overload
    def __get__(self, on: Resource[Sync], owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, on: Resource[Async], owner: type) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, on: Any, owner: type) -> Any:
        return self if on is None else MethodType(self._method, on)


class iteration(Generic[P, T]):  # noqa: N801
    """Makes a method of a generator of steps."""

    def __init__(self, script: Callable[Concatenate[Any, P], Script[T]]) -> None:
        @functools.wraps(script)
        def method(on: Any, *args: P.args, **kwargs: P.kwargs) -> Any:
            return on._via.play(script(on, *args, **kwargs))

        self.script, self._method = script, method
        self.__doc__ = script.__doc__

    @overload
    def __get__(self, on: None, owner: type) -> "iteration[P, T]": ...
    @overload
    def __get__(self, on: Resource[Sync], owner: type) -> Callable[P, Generator[T, None, None]]: ...
    @overload
    def __get__(self, on: Resource[Async], owner: type) -> Callable[P, AsyncGenerator[T, None]]: ...
    def __get__(self, on: Any, owner: type) -> Any:
        return self if on is None else MethodType(self._method, on)
