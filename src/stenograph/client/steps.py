"""What a method that gives many things does, step by step, whoever carries the steps out."""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

from stenograph.client.calls import Call
from stenograph.client.errors import MalformedResponse
from stenograph.client.records import OlderPage, Page

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Give(Generic[T]):
    """Give this to the caller."""

    item: T


@dataclass(frozen=True, slots=True)
class Listen:
    """Open a stream of server-sent events, in place of the one that is open."""

    call: Call[Any]


@dataclass(frozen=True, slots=True)
class Hear:
    """Wait for the next event of the stream: a `Told`, or None when the stream is over."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait, in seconds."""

    seconds: float


#: A step's outcome, the result of a `Call` for one, is sent into the generator; an `Error` is
#: thrown into it.
Script: TypeAlias = Generator[Call[Any] | Give[T] | Listen | Hear | Wait, Any, None]


def pages(read: Callable[[str | None], Call[Page[T]]]) -> Script[T]:
    """Give all of a list; `read` makes the call for the page behind a cursor."""
    after: str | None = None
    while True:
        page: Page[T] = yield read(after)
        for item in page.items:
            yield Give(item)
        if page.next_after is None:
            return
        after = _further(after, page.next_after)


def older_pages(
    read: Callable[[str | None], Call[OlderPage[T]]], *, newest_first: bool
) -> Script[T]:
    """Give all that there is; oldest first, it is all read before the first is given."""
    before: str | None = None
    read_so_far: list[OlderPage[T]] = []
    while True:
        page: OlderPage[T] = yield read(before)
        if newest_first:
            for item in reversed(page.items):
                yield Give(item)
        else:
            read_so_far.append(page)
        if page.next_before is None:
            break
        before = _further(before, page.next_before)
    for page in reversed(read_so_far):
        for item in page.items:
            yield Give(item)


def _further(last: str | None, cursor: str) -> str:
    if cursor == last:
        raise MalformedResponse("Malformed: a page's cursor leads to the same page")
    return cursor
