"""Following a conversation: a feed that misses nothing, and what is told live."""

import base64
import logging
import re
from collections.abc import AsyncGenerator, Generator
from typing import Any

from stenograph.client.calls import Answer, Call, convert, member, nothing, several, told
from stenograph.client.errors import Error, FeedExpired, is_passing
from stenograph.client.records import Event, EventPage, Frame
from stenograph.client.sending import Async, Retries, Sync
from stenograph.client.steps import Give, Hear, Listen, Script, Wait
from stenograph.client.surface import Resource, Via

_log = logging.getLogger("stenograph.client")
#: Events that a page holds at most.
_MOST = 200
_CURSOR = re.compile(rb"cvei:(0|[1-9][0-9]{0,18})")
#: The statuses of what a stream says before it ends; of any other word, 500.
_STATUSES = {"unauthorized": 401, "not_found": 404, "slow_reader": 409, "unavailable": 503}


def read_events(answer: Answer) -> EventPage:
    """Read a page of events."""
    found = member(answer, "pagination")
    page = {"items": several("events", Event)(answer), **found} if isinstance(found, dict) else None
    return convert(answer, page, EventPage)


def events(path: str, after: str | None, limit: int | None) -> Call[EventPage]:
    """Ask for events behind a cursor."""
    return Call("GET", path + "/events", read_events, query={"after": after, "limit": limit})


def all_events(path: str, after: str | None) -> Script[Event]:
    """Give the events behind a cursor that are there."""
    while True:
        page: EventPage = yield events(path, after, _MOST)
        for event in page.items:
            yield Give(event)
        if page.next_after is None:
            return
        after = page.next_after


def frames(path: str, items: str, after: str | None, retries: Retries) -> Script[Frame]:
    """Give what is told live, across reconnects, until the conversation has ended."""
    failures = 0
    while True:
        error: Error | None = None
        try:
            yield _stream(path, items, after)
            while (frame := (yield from _hear())) is not None:
                failures = 0
                after = frame.cursor or after
                inner = frame.data.get("frame")
                if isinstance(inner, dict):
                    frame = Frame(type=str(inner.get("type")), data=inner, cursor=frame.cursor)
                yield Give(frame)
                if frame.type == "conversation_ended":
                    return
        except Error as failed:
            error = _passing(failed)
        yield _pause(retries, failures, error)
        failures += 1
        lost = {"type": "stream_reset", "reason": "reconnected"}
        yield Give(Frame(type="stream_reset", data=lost))


def _stream(path: str, items: str, after: str | None) -> Listen:
    query = {"items": items, "after": after}
    return Listen(Call("GET", path + "/events/stream", nothing, query=query))


def _hear() -> Generator[Hear, Any, Frame | None]:
    """Hear one event. Raises what the server says in the last one."""
    frame: Frame | None = yield Hear()
    if frame is not None and frame.type == "error":
        body = frame.data.get("error")
        body = body if isinstance(body, dict) else {}
        raise told(_STATUSES.get(str(body.get("code")), 500), body, {})
    return frame


def _passing(error: Error) -> Error:
    """Return an error after which to come back; raise any other."""
    if is_passing(error) or error.code == "slow_reader":
        return error
    raise error


def _pause(retries: Retries, failures: int, error: Error | None) -> Wait:
    wait = retries.pause(failures, error)
    _log.info("Reconnecting in %.1f s: %s", wait, error or "the server ended the stream")
    return Wait(wait)


class Feed(Resource[Via]):
    """The events of a conversation behind a cursor, each once and in order, then those that come.

        for event in conversation.feed(saved):
            handle(event)
            save(event.cursor)

    It reconnects for as long as it must. It ends behind a `conversation_ended` that is the newest
    event, and raises `FeedExpired` rather than leave out an event, and any other error that does
    not pass by itself. Iterated again, it goes on behind `cursor`.
    """

    def __init__(self, via: Via, at: tuple[str, ...], cursor: str | None, poll: float | None):
        super().__init__(via, *at)
        self._poll = poll
        #: The cursor of the last event that was given: save it when you have handled that.
        self.cursor = cursor
        self._number = _number(cursor)
        self._last: Event | None = None

    def __iter__(self: "Feed[Sync]") -> Generator[Event, None, None]:
        return self._via.play(self._script())

    def __aiter__(self: "Feed[Async]") -> AsyncGenerator[Event, None]:
        return self._via.play(self._script())

    def _script(self) -> Script[Event]:
        retries, failures = self._via.retries, 0
        while True:
            error: Error | None = None
            before = self._number
            try:
                yield from self._drain()
                if self._is_over():
                    return
                if self._poll is not None:
                    yield Wait(self._poll)
                    continue
                if (yield from self._listen()):
                    continue
            except Error as failed:
                error = _passing(failed)
            if self._is_over(gone=True):
                return
            failures = 0 if self._number > before else failures
            yield _pause(retries, failures, error)
            failures += 1

    def _drain(self) -> Script[Event]:
        """Give what there is, up to where the journal reached at the first look."""
        target: int | None = None
        while target is None or self._number < target:
            page: EventPage = yield events(self._path(), self.cursor, _MOST)
            target = page.watermark if target is None else target
            if not page.items and page.watermark > self._number:
                raise self._expired(page.watermark)
            for event in page.items:
                if event.sequence > self._number + 1:
                    raise self._expired(event.sequence - 1)
                yield from self._given(event)
            if not page.items:
                return

    def _listen(self) -> Generator[Any, Any, bool]:
        """Give what comes until the stream is over; True when it has left something out."""
        yield _stream(self._path(), "events", self.cursor)
        while (frame := (yield from _hear())) is not None:
            answer = Answer(200, {}, b"")
            if frame.type == "watermark":
                if convert(answer, frame.data.get("watermark"), int) > self._number:
                    return True
                continue
            event = convert(answer, frame.data, Event)
            if event.sequence > self._number + 1:
                return True
            yield from self._given(event)
        return False

    def _given(self, event: Event) -> Script[Event]:
        if event.sequence > self._number:
            self.cursor, self._number, self._last = event.cursor, event.sequence, event
            yield Give(event)

    def _is_over(self, *, gone: bool = False) -> bool:
        """Whether the last event given ended the conversation; `gone`: and nobody finds it now."""
        if self._last is None or self._last.type != "conversation_ended":
            return False
        return not gone or self._last.payload.get("reason") == "tombstoned"

    def _expired(self, upto: int) -> FeedExpired:
        return FeedExpired(
            f"Events {self._number + 1} to {upto} have expired: read the conversation anew, and"
            " begin a new feed at its latest_event_cursor"
        )


def _number(cursor: str | None) -> int:
    """Return the number of the event that a cursor names; 0 for one that the server will refuse."""
    if cursor is None:
        return 0
    try:
        data = base64.b64decode(cursor + "=" * (-len(cursor) % 4), b"-_", validate=True)
    except ValueError:
        return 0
    found = _CURSOR.fullmatch(data)
    return 0 if found is None else int(found[1])
