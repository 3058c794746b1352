"""Following a conversation for a client that stays: the journal from a number on, then what comes.

What a client gets is read anew each time, by who its key says it is at that moment: a key that was
revoked, or a conversation that was closed to it, ends the following.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

from stenograph.accounts import access
from stenograph.accounts.access import Caller
from stenograph.errors import UnauthorizedError
from stenograph.events import feed
from stenograph.events.live import Committed, Frame, Subscription, Topic
from stenograph.events.waiting import POLL
from stenograph.storage.database import Database, Tx

T = TypeVar("T")

#: Seconds after which key and access are looked at again, whatever happened meanwhile.
RECHECK = 1.0


class Open:
    """What a server has open without an end of its own, so that it can be ended."""

    def __init__(self) -> None:
        self.ending = False
        self._ends: set[tuple[asyncio.AbstractEventLoop, Callable[[], None]]] = set()

    def add(self, end: Callable[[], None]) -> Callable[[], None]:
        """Have `end` called, on this loop, when the server stops; returns how to take it back."""
        entry = (asyncio.get_running_loop(), end)
        self._ends.add(entry)
        return lambda: self._ends.discard(entry)

    def end(self) -> None:
        """End everything; on any thread."""
        self.ending = True
        for loop, end in tuple(self._ends):
            loop.call_soon_threadsafe(end)


@dataclass(frozen=True, slots=True)
class Sent:
    """One thing that a client gets. `id` is what it resumes from; None: it is not kept."""

    type: str
    data: Any
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Looked:
    """What one look at the journal gave. `after` is the number up to which it was read.

    `more`: there is more to be read at once. `over`: nothing comes any more.
    """

    sent: Sequence[Sent]
    after: int
    more: bool = False
    over: bool = False


#: Reads the journal behind a number, for a caller, up to another number (None: to its end).
Look: TypeAlias = Callable[[Tx, Caller, int, int | None], Looked]


@dataclass(frozen=True, slots=True)
class Door:
    """How a client that stays looks at the record: by its key, each time anew.

    `scope` is what a v3 key must hold.
    """

    database: Database
    secret: str
    plane: access.Plane
    scope: str | None = None

    async def read(self, look: Callable[[Tx, Caller], T]) -> T:
        """Run `look` over a snapshot. Raises `UnauthorizedError` once the key lets nobody in."""

        def act() -> T:
            with self.database.read() as tx:
                return look(tx, self._caller(tx))

        return await asyncio.to_thread(act) if self.database.reads_wait else act()

    def _caller(self, tx: Tx) -> Caller:
        caller = access.resolve(tx, self.secret)
        if caller.plane != self.plane or not (self.scope is None or self.scope in caller.scopes):
            raise UnauthorizedError("Unauthorized")
        return caller

    async def question(self, ask: Callable[[Tx], T]) -> T:
        """Ask the record one thing about a conversation that a look has shown."""

        def act() -> T:
            with self.database.once() as tx:
                return ask(tx)

        return await asyncio.to_thread(act) if self.database.reads_wait else act()


@dataclass(slots=True)
class _Shown:
    """Which candidates may be told of, as the record stood at the last look."""

    door: Door
    known: dict[tuple[int, int], bool] = field(default_factory=dict)

    async def tells(self, frame: Frame) -> bool:
        about = (frame.turn_id, frame.variant_id)
        if about not in self.known:
            self.known[about] = await self.door.question(lambda tx: feed.is_shown(tx, *about))
        return self.known[about]


async def follow(
    door: Door,
    conversation_id: int,
    look: Look,
    after: int,
    topics: Collection[Topic] = (),
    told: Callable[[Frame], Sent] | None = None,
) -> AsyncIterator[Sent | None]:
    """Give what is behind the number `after`, then what comes, each once and in order.

    None every now and then, and whenever all there is was given: time to look at the clock.
    `told` makes of a frame what the client gets. Ends when a look says so; raises what the door
    does, and `CutError` for a client that does not keep up with what is told live.
    """
    loop = asyncio.get_running_loop()
    with Subscription(conversation_id) as heard:
        upto: int | None = None
        while True:
            looked = await door.read(lambda tx, caller: look(tx, caller, after, upto))  # noqa: B023
            shown, next_check, after = _Shown(door), loop.time() + RECHECK, looked.after
            for one in looked.sent:
                yield one
            if looked.over:
                return
            if looked.more:
                continue
            # Not before: a frame told while the first look was taken would come behind its own end.
            heard.attend(topics)
            yield None
            while True:
                item = await heard.next(POLL)
                match item:
                    case Frame() if told is not None:
                        if await shown.tells(item):
                            yield told(item)
                    case Committed(sequence) if sequence is None or sequence > after:
                        # No further: what comes behind it may have to wait for frames before it.
                        upto = sequence
                        break
                    case None:
                        yield None
                        if await _moved(door, conversation_id, after):
                            upto = None
                            break
                if loop.time() >= next_check:
                    upto = after if topics else None
                    break


async def _moved(door: Door, conversation_id: int, after: int) -> bool:
    """Tell whether another process has committed something."""
    return await door.question(lambda tx: feed.watermark(tx, conversation_id)) > after


def edge(tx: Tx, conversation_id: int, upto: int | None) -> tuple[int, bool]:
    """Return the number up to which a look reads, and whether that is all there is."""
    newest = feed.watermark(tx, conversation_id)
    end = newest if upto is None else min(upto, newest)
    return end, end == newest
