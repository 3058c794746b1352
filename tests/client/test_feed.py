"""Feeds and what is told live, over a real socket; see `test_flaky` for servers that fail."""

import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import aclosing
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from cli.test_serve import STENO
from cli.test_serve import Server as Process
from client.awaited import WAYS, use
from feeds import Turn, ask, new_session
from live import Followed, Server, conversation, listening, until
from serving import Api
from stenograph.client import Client, ConnectionFailed, FeedExpired, NotFound, Retries, Unauthorized
from stenograph.events import expiry, live
from stenograph.events.journal import Event
from stenograph.http.paging import event_cursor

#: A client that comes back at once.
SOON = Retries(first=0.01, longest=0.1)


@pytest.fixture
def api(database: Any, org: Any, settings: Any, sealer: Any) -> Iterator[Api]:
    opened = Api(database, org, replace(settings, stream_seconds=3_600), sealer)
    yield opened
    opened.close()


@pytest.fixture
def server(api: Api) -> Iterator[Server]:
    with listening(api) as found:
        yield found
        until(found.is_idle)


@pytest.fixture
def talk(api: Api) -> Followed:
    return conversation(api, new_session(api.database, api.org.owner))


@pytest.fixture
def turn(api: Api, talk: Followed) -> Turn:
    return api.database.write(lambda tx: ask(tx, api.org.owner, talk.id, "q"))


@pytest.fixture(params=WAYS)
def follow(request: pytest.FixtureRequest, server: Server, talk: Followed) -> Callable[..., Any]:
    """Do something with the conversation, through a client of either kind."""

    def act(doing: Any, key: str = "member") -> None:
        async def run(client: Any) -> None:
            await doing(client.workspace(talk.workspace).conversation(talk.public_id))

        use(request.param, run, server.url, server.api.org.keys.get(key, key), retries=SOON)

    return act


async def take(feed: Any, wanted: int) -> list[int]:
    """Take so many events, and leave the stream behind."""
    found: list[int] = []
    async with aclosing(aiter(feed)) as events:
        async for event in events:
            found.append(event.sequence)
            if len(found) == wanted:
                break
    return found


def expire(talk: Followed) -> None:
    """Let everything that has happened be too old."""
    talk.api.database.write(lambda tx: tx.run("UPDATE events SET public_id = '0000' || sequence"))
    expiry.sweep(talk.api.database)


# --- feeds -------------------------------------------------------------------------------------


@pytest.mark.parametrize("poll", [None, 0.01])
def test_what_was_is_replayed_and_what_comes_follows(
    follow: Callable[..., Any], talk: Followed, poll: float | None
) -> None:
    talk.happen(450)

    async def act(talking: Any) -> None:
        feed = talking.feed(poll=poll)
        assert await take(feed, 450) == list(range(1, 451))
        assert feed.cursor == event_cursor(450)
        threading.Timer(0.1, talk.happen, (3,)).start()
        assert await take(feed, 3) == [451, 452, 453]
        saved = talking.feed(event_cursor(452), poll=poll)
        assert await take(saved, 1) == [453]

    follow(act)


def test_one_who_leaves_leaves_nothing_behind(
    follow: Callable[..., Any], talk: Followed, server: Server
) -> None:
    talk.happen(2)

    async def act(talking: Any) -> None:
        async with aclosing(aiter(talking.feed(event_cursor(1)))) as events:
            assert (await anext(events)).sequence == 2
            threading.Timer(0.1, talk.happen).start()
            assert (await anext(events)).sequence == 3
        until(server.is_idle)

    follow(act)


def test_what_has_expired_is_never_left_out_in_silence(
    follow: Callable[..., Any], talk: Followed
) -> None:
    talk.happen(5)

    async def act(talking: Any) -> None:
        expire(talk)
        with pytest.raises(FeedExpired, match="3 to 5"):
            await take(talking.feed(event_cursor(2)), 1)
        talk.happen()
        with pytest.raises(FeedExpired, match="1 to 5"):
            await take(talking.feed(), 1)
        assert await take(talking.feed(event_cursor(5)), 1) == [6]
        newest = (await talking.fetch()).latest_event_cursor
        threading.Timer(0.1, talk.happen).start()
        assert await take(talking.feed(newest), 1) == [7]

    follow(act)


@pytest.mark.parametrize("poll", [None, 0.01])
@pytest.mark.parametrize("reason", ["archived", "tombstoned"])
def test_it_ends_with_the_conversation(
    follow: Callable[..., Any], talk: Followed, reason: str, poll: float | None
) -> None:
    ended = Event("conversation_ended", payload={"reason": reason})
    talk.append(Event("usage"), ended)

    async def act(talking: Any) -> None:
        found = [event.type async for event in talking.feed(poll=poll)]
        assert found == ["usage", "conversation_ended"]
        threading.Timer(0.1, talk.append, (Event("usage"), ended)).start()
        feed = talking.feed(event_cursor(2), poll=poll)
        assert [event.type async for event in feed] == ["usage", "conversation_ended"]

    follow(act)


def test_an_archive_that_was_left_is_not_the_end(
    follow: Callable[..., Any], talk: Followed
) -> None:
    talk.append(Event("conversation_ended", payload={"reason": "archived"}), Event("usage"))

    async def act(talking: Any) -> None:
        assert await take(talking.feed(), 2) == [1, 2]

    follow(act)


def test_who_may_not_read_on_is_told_so(
    follow: Callable[..., Any], talk: Followed, server: Server
) -> None:
    talk.happen()
    key = server.api.key("member")
    revoke = "UPDATE credentials SET revoked_at = 1 WHERE plane = 'member'"

    async def act(talking: Any) -> None:
        async with aclosing(aiter(talking.feed())) as events:
            await anext(events)
            server.api.database.write(lambda tx: tx.run(revoke))
            with pytest.raises(Unauthorized) as refused:
                await anext(events)
        assert (refused.value.code, refused.value.status) == ("unauthorized", 401)

    follow(act, key)


def test_who_comes_back_to_a_deleted_conversation_finds_none(
    follow: Callable[..., Any], talk: Followed
) -> None:
    talk.happen()

    async def act(talking: Any) -> None:
        feed = talking.feed()
        await take(feed, 1)
        bury = "UPDATE conversations SET deleted_at = 1"
        talk.api.database.write(lambda tx: tx.run(bury))
        with pytest.raises(NotFound):
            await take(feed, 1)

    follow(act)


@pytest.mark.parametrize("way", WAYS)
def test_a_server_that_ends_its_streams_is_asked_again(
    database: Any, org: Any, settings: Any, sealer: Any, way: str
) -> None:
    api = Api(database, org, settings, sealer)  # its streams end when all is told
    talk = conversation(api, new_session(database, org.owner))
    talk.happen()
    number = count(2)

    async def act(client: Any) -> None:
        feed = client.workspace(talk.workspace).conversation(talk.public_id).feed()
        async for event in feed:
            if event.sequence == 6:
                break
            threading.Timer(0.05, talk.happen).start()
            assert event.sequence == next(number) - 1

    with listening(api) as server:
        use(way, act, server.url, org.keys["member"], retries=SOON)
    api.close()


def test_it_outlives_its_server(tmp_path: Path) -> None:
    first = Process(tmp_path / "data")
    port = first.url.rpartition(":")[2]
    command = [*STENO, "serve", "--port", port, "--data", str(tmp_path / "data")]
    second = None
    seen = []
    with Client(first.url, first.keys["member"], retries=SOON) as client:
        home = client.workspace(client.workspaces.create("Home").workspace.public_id)
        talk = home.conversation(home.conversations.create().conversation.public_id)
        talk.inputs.create("before", kind="message")
        for event in talk.feed():
            seen.append(event.sequence)
            if second is None and event.type == "turn_status":
                first.process.send_signal(signal.SIGKILL)
                first.process.communicate()
                second = subprocess.Popen(command, stdout=subprocess.DEVNULL)
                until(lambda: is_up(client))
                talk.inputs.create("after", kind="message")
            elif event.type == "turn_status":
                break
    assert seen == list(range(1, len(seen) + 1))
    assert second is not None
    second.send_signal(signal.SIGTERM)
    assert second.wait(30) == 0


def is_up(client: Client) -> bool:
    try:
        return bool(client.workspaces.list().items)
    except ConnectionFailed:
        return False


# --- what is told live -------------------------------------------------------------------------


def test_a_transcript_is_what_was_said_to_the_letter(
    follow: Callable[..., Any], talk: Followed, turn: Turn
) -> None:
    """U+2028 and its like end a line for Python, and none in a stream."""
    said = ["one\n", "two\u2028three\x85\x1c\r", "日本 🐦"]
    settled = Event(
        "turn_status", turn.id, turn.variant_id, payload={"variant_status": "completed"}
    )

    def tell() -> None:
        until(lambda: live.is_watched(talk.id, "transcript"))
        for text in said:
            talk.tell(turn, text)
        talk.append(settled, Event("conversation_ended", payload={"reason": "archived"}))

    async def act(talking: Any) -> None:
        thread = threading.Thread(target=tell)
        thread.start()
        heard = [frame async for frame in talking.transcript()]
        thread.join()
        assert [frame.text for frame in heard[:3]] == said
        assert [frame.type for frame in heard[3:]] == ["turn", "conversation_ended"]
        assert [frame.cursor is None for frame in heard] == [True] * 3 + [False] * 2

    follow(act)


def test_progress_is_told_as_it_comes(
    follow: Callable[..., Any], talk: Followed, turn: Turn
) -> None:
    def tell() -> None:
        until(lambda: live.is_watched(talk.id, "progress"))
        talk.tell(turn, "half way", "progress")

    async def act(talking: Any) -> None:
        thread = threading.Thread(target=tell)
        thread.start()
        async with aclosing(aiter(talking.progress())) as frames:
            frame = await anext(frames)
        thread.join()
        assert (frame.type, frame.text, frame.cursor) == ("text_delta", "half way", None)

    follow(act)
