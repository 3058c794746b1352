"""What is told and not kept: frames, from who works in this process to who watches here.

A frame is heard by those who watch its conversation at that moment, in the order in which it was
told, and with what is committed about the conversation in between. Telling neither waits nor
writes. Each reader has a bounded queue: one who does not keep up is cut.

Frames do not leave the process. Where several serve one database, deltas are heard from the one
whose engine drives the turn; what is settled comes from the journal, and so from everywhere.
"""

import asyncio
import threading
from collections import defaultdict, deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from stenograph.events import waiting

Topic: TypeAlias = Literal["transcript", "progress"]

#: What a reader may be behind: frames, and characters of text in them.
FRAMES = 1_000
CHARACTERS = 1_000_000

_lock = threading.Lock()
_subscriptions: dict[int, set["Subscription"]] = defaultdict(set)


class CutError(Exception):
    """The reader did not keep up, and hears nothing more."""


@dataclass(frozen=True, slots=True)
class Frame:
    """Something told. `data` leaves the house as it is: its secrets are masked already.

    The ids are row ids of the turn and candidate that it is about: a reader who may not see them
    gets nothing.
    """

    topic: Topic
    type: str
    data: Mapping[str, Any]
    turn_id: int
    variant_id: int

    @property
    def size(self) -> int:
        """How many characters of text it holds."""
        return sum(len(value) for value in self.data.values() if isinstance(value, str))


@dataclass(frozen=True, slots=True)
class Committed:
    """The journal has moved on to this number; None: something else about the conversation has."""

    sequence: int | None


def publish(conversation_id: int, frame: Frame) -> None:
    """Tell a frame to who watches. On any thread; costs nothing where nobody does."""
    with _lock:
        for subscription in _subscriptions.get(conversation_id, ()):
            subscription.put(frame)


def is_watched(conversation_id: int, topic: Topic) -> bool:
    """Tell whether anybody would hear."""
    with _lock:
        found = _subscriptions.get(conversation_id, ())
        return any(topic in subscription.topics for subscription in found)


class Subscription:
    """One reader's ear for one conversation, on the loop on which it is made.

        with Subscription(conversation_id, {"transcript"}) as heard:
            item = await heard.next(seconds)

    Without topics it hears only of commits, until it attends to some.
    """

    def __init__(self, conversation_id: int, topics: Collection[Topic] = ()) -> None:
        self.topics = frozenset(topics)
        self._conversation_id = conversation_id
        self._loop, self._event = asyncio.get_running_loop(), asyncio.Event()
        self._queue: deque[Frame | Committed] = deque()
        self._size = 0
        self._cut = False
        self._listening = waiting.listening(conversation_id, self._commit)

    def __enter__(self) -> "Subscription":
        self._listening.__enter__()
        self.attend(self.topics)
        return self

    def attend(self, topics: Collection[Topic]) -> None:
        """Hear frames of these topics from now on."""
        self.topics = frozenset(topics)
        if self.topics:
            with _lock:
                _subscriptions[self._conversation_id].add(self)

    def __exit__(self, *error: object) -> None:
        self._listening.__exit__(None, None, None)
        if self.topics:
            with _lock:
                _subscriptions[self._conversation_id].discard(self)
                if not _subscriptions[self._conversation_id]:
                    del _subscriptions[self._conversation_id]

    async def next(self, seconds: float) -> Frame | Committed | None:
        """Return what came next, None if nothing did in `seconds`. Raises `CutError`."""
        try:
            async with asyncio.timeout(seconds):
                await self._event.wait()
        except TimeoutError:
            return None
        with _lock:
            if self._cut:
                raise CutError
            item = self._queue.popleft()
            if not self._queue:
                self._event.clear()
            if isinstance(item, Frame):
                self._size -= item.size
            return item

    def put(self, frame: Frame) -> None:
        """Queue a frame; the caller holds the lock."""
        if frame.topic not in self.topics or self._cut:
            return
        self._size += frame.size
        if len(self._queue) >= FRAMES or self._size > CHARACTERS:
            self._cut = True
            self._queue.clear()
            waiting.wake(self._loop, self._event)
            return
        self._add(frame)

    def _commit(self, sequence: int | None) -> None:
        with _lock:
            if self._cut:
                return
            last = self._queue[-1] if self._queue else None
            if not isinstance(last, Committed):
                self._add(Committed(sequence))
            elif sequence is not None:
                self._queue[-1] = Committed(max(sequence, last.sequence or 0))

    def _add(self, item: Frame | Committed) -> None:
        self._queue.append(item)
        if len(self._queue) == 1:
            waiting.wake(self._loop, self._event)
