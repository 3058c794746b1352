"""Following a server that cuts, skips, repeats and falls silent: nothing is missed, none twice."""

import random
from collections.abc import Iterator
from typing import Any

import httpx
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from client.awaited import WAYS, use
from stenograph.client import (
    FeedExpired,
    InvalidRequest,
    MalformedResponse,
    NotFound,
    Retries,
    ServerError,
)
from stenograph.http.paging import event_cursor, parse_event_cursor

AT_ONCE = Retries(attempts=0, first=0)


def event(sequence: int, last: int) -> dict[str, Any]:
    ended = sequence == last
    return {
        "public_id": f"e{sequence}",
        "sequence": sequence,
        "cursor": event_cursor(sequence),
        "type": "conversation_ended" if ended else "usage",
        "resource": {"type": "conversation", "public_id": "c"},
        "occurred_at": "2026-10-01T09:00:05Z",
        "payload": {"reason": "archived"} if ended else {},
    }


def sse(kind: str, data: Any, id: str | None = None) -> bytes:
    head = b"" if id is None else f"id: {id}\n".encode()
    return head + f"event: {kind}\r\n".encode() + b"data: " + msgspec.json.encode(data) + b"\n\n"


EVENT_STREAM = {"content-type": "text/event-stream"}


class Body(httpx.SyncByteStream, httpx.AsyncByteStream):
    """Bytes as they come, and what happens then."""

    def __init__(self, parts: list[bytes], error: Exception | None) -> None:
        self.parts, self.error = parts, error

    def __iter__(self) -> Iterator[bytes]:
        yield from self.parts
        if self.error is not None:
            raise self.error

    async def __aiter__(self) -> Any:
        for part in self:
            yield part


class Journal:
    """A server whose journal has `last` events in the end, and which errs by chance."""

    def __init__(self, last: int, chance: random.Random) -> None:
        self.last, self.chance, self.written = last, chance, chance.randint(0, last)
        self.given_by_page = self.given_by_stream = 0

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.written = min(self.last, self.written + self.chance.randint(0, 3))
        if (trouble := self._trouble()) is not None:
            if isinstance(trouble, Exception):
                raise trouble
            return trouble
        after = parse_event_cursor(request.url.params.get("after", event_cursor(0)))
        assert after is not None
        if request.url.path.endswith("/stream"):
            return self._stream(after)
        upto = min(self.written, after + self.chance.randint(1, 5))
        page = [event(n, self.last) for n in range(after + 1, upto + 1)]
        self.given_by_page += len(page)
        next_after = page[-1]["cursor"] if page else None
        pagination = {"next_after": next_after, "watermark": self.written}
        return httpx.Response(200, json={"events": page, "pagination": pagination})

    def _trouble(self) -> httpx.Response | Exception | None:
        return self.chance.choice([
            httpx.Response(503), httpx.Response(429), httpx.ReadTimeout("x"),
            httpx.ConnectError("x"), *[None] * 8,
        ])  # fmt: skip

    def _stream(self, after: int) -> httpx.Response:
        told = [b"retry: 1000\n\n"]
        for n in range(after + 1, self.written + 1):
            match self.chance.choice(["skip", "repeat", "silence", *["tell"] * 8]):
                case "skip":
                    continue
                case "repeat":
                    told += [sse("usage", event(n - 1, self.last))] if n > 1 else []
                case "silence":
                    told.append(b":\n\n")
            told.append(sse("usage", event(n, self.last), event_cursor(n)))
            self.given_by_stream += 1
        if self.chance.random() < 0.5:
            told.append(sse("watermark", {"watermark": self.written}))
        if self.chance.random() < 0.2:
            told.append(sse("error", {"error": {"code": "slow_reader", "message": "Slow."}}))
        whole = b"".join(told)
        cut = self.chance.randint(0, len(whole)) if self.chance.random() < 0.3 else len(whole)
        size = self.chance.randint(1, 50)
        parts = [whole[at : at + size] for at in range(0, cut, size)]
        error = httpx.RemoteProtocolError("cut") if cut < len(whole) else None
        return httpx.Response(200, stream=Body(parts, error), headers=EVENT_STREAM)


@pytest.mark.parametrize("way", WAYS)
@given(st.integers(1, 25), st.integers(0, 2**32), st.booleans())
@settings(max_examples=60, deadline=None, database=None, derandomize=True)
def test_a_feed_gives_each_event_once_and_in_order(
    way: str, last: int, seed: int, polls: bool
) -> None:
    journal, found = Journal(last, random.Random(seed)), []

    async def act(client: Any) -> None:
        talk = client.workspace("w").conversation("c")
        feed = talk.feed(poll=0 if polls else None)
        async for one in feed:
            found.append(one.sequence)
            assert feed.cursor == one.cursor

    transport = httpx.MockTransport(journal)
    use(way, act, "http://steno.test", "k", transport=transport, retries=AT_ONCE)
    assert found == list(range(1, last + 1))


class Streams:
    """A server that gives these streams, or statuses, in turn, and an empty journal."""

    def __init__(self, *streams: bytes | int) -> None:
        self.streams, self.asked = list(streams), []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if not request.url.path.endswith("/stream"):
            pagination = {"next_after": None, "watermark": 0}
            return httpx.Response(200, json={"events": [], "pagination": pagination})
        self.asked.append(request.url.params.get("after"))
        found = self.streams.pop(0)
        if isinstance(found, int):
            return httpx.Response(found, json={"error": {"code": "x"}})
        return httpx.Response(200, content=found, headers=EVENT_STREAM)

    def follow(self, way: str, doing: Any) -> list[Any]:
        found: list[Any] = []

        async def act(client: Any) -> None:
            talk = client.workspace("w").conversation("c")
            found.extend([one async for one in doing(talk)])

        transport = httpx.MockTransport(self)
        use(way, act, "http://steno.test", "k", transport=transport, retries=AT_ONCE)
        return found


def delta(text: str) -> bytes:
    return sse("text_delta", {"type": "text_delta", "text": text})


ENDED = sse("conversation_ended", {"type": "conversation_ended", "reason": "archived"}, "e9")


@pytest.mark.parametrize("way", WAYS)
def test_a_transcript_that_was_cut_says_so_and_resumes_behind_what_is_settled(way: str) -> None:
    slow = sse("error", {"error": {"code": "slow_reader", "message": "Slow."}})
    streams = Streams(
        delta("Hel") + sse("round", {"type": "round", "text": "Hello"}, "e4") + delta("Wor"),
        502,
        delta("World") + slow,
        ENDED,
    )
    heard = streams.follow(way, lambda talk: talk.transcript(after="e1"))
    assert [(it.type, it.text, it.data.get("reason")) for it in heard] == [
        ("text_delta", "Hel", None),
        ("round", "Hello", None),
        ("text_delta", "Wor", None),
        ("stream_reset", "", "reconnected"),
        ("stream_reset", "", "reconnected"),
        ("text_delta", "World", None),
        ("stream_reset", "", "reconnected"),
        ("conversation_ended", "", "archived"),
    ]
    assert streams.asked == ["e1", "e4", "e4", "e4"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("last", "kind"),
    [
        (sse("error", {"error": {"code": "not_found", "message": "Not found"}}), NotFound),
        (sse("error", {"error": {"code": "internal_error", "message": "Oh"}}), ServerError),
        (sse("error", {}), ServerError),
        (400, InvalidRequest),
        (200, MalformedResponse),  # some page, and no stream
    ],
)
def test_what_does_not_pass_ends_what_is_followed(way: str, last: Any, kind: type) -> None:
    for doing in (lambda talk: talk.feed(), lambda talk: talk.transcript()):
        with pytest.raises(kind):
            Streams(last).follow(way, doing)


def test_a_watermark_that_nothing_leads_up_to_means_that_events_expired() -> None:
    streams = Streams(sse("watermark", {"watermark": 3}))
    journal = streams.__call__

    def behind(request: httpx.Request) -> httpx.Response:
        found = journal(request)
        if streams.streams or request.url.path.endswith("/stream"):
            return found
        pagination = {"next_after": None, "watermark": 3}
        return httpx.Response(200, json={"events": [], "pagination": pagination})

    async def act(client: Any) -> None:
        async for _ in client.workspace("w").conversation("c").feed():
            raise AssertionError

    with pytest.raises(FeedExpired):
        use("sync", act, "http://steno.test", "k", transport=httpx.MockTransport(behind))
