"""Following a conversation by server-sent events, over a real socket."""

import socket
import threading
import time
from dataclasses import replace

import pytest

from feeds import ask, new_session
from live import PATIENCE, conversation, listening, until
from serving import Api
from stenograph.events import expiry, journal, live
from stenograph.events.journal import Event
from stenograph.http import sse
from stenograph.http.paging import event_cursor


@pytest.fixture
def api(database, org, settings, sealer):
    opened = Api(database, org, replace(settings, stream_seconds=3_600), sealer)
    yield opened
    opened.close()


@pytest.fixture
def server(api):
    with listening(api) as found:
        yield found
        until(found.is_idle)


@pytest.fixture
def talk(api, database, org):
    return conversation(api, new_session(database, org.owner))


@pytest.fixture
def turn(database, org, talk):
    return database.write(lambda tx: ask(tx, org.owner, talk.id, "q"))


def sequences(told):
    return [it.data["sequence"] for it in told]


# --- the journal -------------------------------------------------------------------------------


def test_the_journal_is_replayed_then_followed(server, talk):
    talk.happen(250)
    with server.stream(talk.path + "/events/stream") as stream:
        assert stream.answer.headers["content-type"].startswith("text/event-stream")
        assert stream.answer.headers["cache-control"] == "no-store"
        first = stream.take(250)
        watermark = next(stream)
        assert (watermark.type, watermark.data, watermark.id) == (
            "watermark",
            {"watermark": 250},
            None,
        )
        talk.happen(2)
        talk.happen()
        rest = stream.take(3)
    assert sequences(first + rest) == list(range(1, 254))
    listed = server.api.get(talk.path + "/events?limit=200").json()["events"]
    assert [it.data for it in first[:200]] == listed
    assert all(it.id == it.data["cursor"] and it.type == it.data["type"] for it in first + rest)


def test_a_client_that_comes_back_gets_what_it_missed_and_nothing_twice(server, talk):
    talk.happen(3)
    path = talk.path + "/events/stream?after=" + event_cursor(1)
    with server.stream(path) as stream:
        got = stream.take(2)
    talk.happen(3)
    with server.stream(path, **{"Last-Event-ID": got[-1].id}) as stream:
        got += stream.take(3)
        assert next(stream).type == "watermark"
    assert sequences(got) == [2, 3, 4, 5, 6]


def test_a_client_is_told_how_far_there_was_something(server, talk):
    """What has expired leaves a gap, or a watermark ahead of an empty stream."""
    talk.happen(4)
    server.api.database.write(lambda tx: tx.run("UPDATE events SET public_id = '0000' || sequence"))
    assert expiry.sweep(server.api.database) == 4
    with server.stream(talk.path + "/events/stream") as stream:
        assert next(stream).data == {"watermark": 4}
        talk.happen()
        assert next(stream).data["sequence"] == 5
    page = server.api.get(talk.path + "/events").json()
    assert (sequences_of(page), page["pagination"]["watermark"]) == ([5], 5)


def sequences_of(page):
    return [it["sequence"] for it in page["events"]]


def test_a_lifecycle_leaves_out_the_rest(server, talk):
    talk.append(
        Event("usage"),
        Event("turn_status", payload={"status": "completed"}),
        Event("round_result"),
        Event("attention_required", payload={"reason": "approval"}),
    )
    with server.stream(talk.path + "/events/stream?items=lifecycle") as stream:
        told = stream.take(3)
        assert [it.type for it in told] == ["turn_status", "attention_required", "watermark"]
        talk.append(Event("usage"), Event("turn_status", payload={"status": "failed"}))
        assert next(stream).data["payload"]["status"] == "failed"


def test_it_ends_with_the_conversation(server, talk):
    with server.stream(talk.path + "/events/stream") as stream:
        assert next(stream).type == "watermark"
        talk.append(Event("usage"), Event("conversation_ended", payload={"reason": "archived"}))
        assert [it.type for it in stream] == ["usage", "conversation_ended"]


@pytest.mark.parametrize("items", ["events", "lifecycle", "transcript", "progress"])
def test_who_follows_a_conversation_that_is_deleted_hears_that_and_no_more(server, talk, items):
    with server.stream(talk.path + f"/events/stream?items={items}") as stream:
        if items in ("events", "lifecycle"):
            assert next(stream).type == "watermark"
        else:
            until(lambda: live._subscriptions)

        def delete(tx):
            talk_events = (
                Event("usage"),
                Event("conversation_ended", payload={"reason": "tombstoned"}),
            )
            journal.append(tx, talk.id, *talk_events)
            tx.run("UPDATE conversations SET deleted_at = 1 WHERE id = :id", id=talk.id)

        server.api.database.write(delete)
        assert [it.type for it in stream] == ["conversation_ended"]
    with server.stream(talk.path + "/events/stream") as stream:
        assert stream.answer.status_code == 404


# --- who may -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "status", "code"),
    [
        ("", 401, "unauthorized"),
        ("executor", 401, "unauthorized"),
        ("api", 401, "unauthorized"),
        ("member:stranger", 404, "not_found"),
    ],
)
def test_who_may_not_gets_what_every_route_answers(server, talk, key, status, code):
    with server.stream(talk.path + "/events/stream?items=nonsense", key=key) as stream:
        stream.answer.read()
        assert stream.answer.status_code == status
        assert stream.answer.json()["error"]["code"] == code


@pytest.mark.parametrize(
    ("query", "header", "name"),
    [
        ("items=nonsense", None, "items"),
        ("after=forged", None, "after"),
        ("after=Y3ZlaTotMQ", None, "after"),  # cvei:-1
        ("after=YWx0cjox", None, "after"),  # altr:1
        ("", "3", "after"),
        ("items=x&after=y", None, "items"),
    ],
)
def test_a_forged_cursor_and_unknown_items_are_refused(server, talk, query, header, name):
    more = {} if header is None else {"Last-Event-ID": header}
    with server.stream(f"{talk.path}/events/stream?{query}", **more) as stream:
        stream.answer.read()
        assert stream.answer.status_code == 400
        assert stream.answer.json()["error"]["message"] == f"Invalid parameter: {name}"


def test_a_revoked_key_ends_the_stream(server, talk, org):
    key = server.api.key("member")
    with server.stream(talk.path + "/events/stream", key=key) as stream:
        assert next(stream).type == "watermark"
        server.api.database.write(
            lambda tx: tx.run("UPDATE credentials SET revoked_at = 1 WHERE plane = 'member'")
        )
        (last,) = list(stream)
    assert (last.type, last.data["error"]["code"]) == ("error", "unauthorized")


def test_who_is_shut_out_hears_nothing_of_what_comes_after(server, talk):
    with server.stream(talk.path + "/events/stream", key="member:member") as stream:
        assert next(stream).type == "watermark"

        def shut(tx):
            tx.run("UPDATE conversations SET access_default = 'none'")
            journal.append(tx, talk.id, Event("usage"))

        server.api.database.write(shut)
        (last,) = list(stream)
    assert (last.type, last.data["error"]["code"]) == ("error", "not_found")


# --- what is told live -------------------------------------------------------------------------


def test_a_transcript_tells_deltas_and_then_what_is_settled(server, talk, turn):
    with server.stream(talk.path + "/events/stream?items=transcript") as stream:
        until(lambda: live.is_watched(talk.id, "transcript"))
        talk.tell(turn, "Hel")
        talk.tell(turn, "lo")
        talk.append(
            Event("turn_status", turn.id, turn.variant_id, payload={"variant_status": "completed"})
        )
        talk.tell(turn, "next")
        told = stream.take(4)
    assert [(it.type, it.data.get("text")) for it in told] == [
        ("text_delta", "Hel"), ("text_delta", "lo"), ("turn", None), ("text_delta", "next"),
    ]  # fmt: skip
    assert told[2].data["variant_status"] == "completed"
    assert [it.id is None for it in told] == [True, True, False, True]


@pytest.mark.parametrize(
    "hide",
    [
        "UPDATE turns SET visibility = 'hidden'",
        "UPDATE turns SET deleted_at = 1",
        "UPDATE variants SET deleted_at = 1",
    ],
)
def test_what_is_hidden_or_concealed_is_not_told(server, talk, turn, hide):
    server.api.database.write(lambda tx: tx.run(hide))
    other = None

    def act(tx):
        nonlocal other
        other = ask(tx, server.api.org.owner, talk.id, "another")

    server.api.database.write(act)
    with server.stream(talk.path + "/events/stream?items=transcript") as stream:
        until(lambda: live.is_watched(talk.id, "transcript"))
        talk.tell(turn, "secretly")
        talk.append(
            Event("turn_status", turn.id, turn.variant_id, payload={"variant_status": "failed"})
        )
        talk.tell(other, "openly")
        assert next(stream).data["text"] == "openly"


def test_what_is_hidden_while_it_is_told_is_told_no_more(server, talk, turn):
    with server.stream(talk.path + "/events/stream?items=transcript") as stream:
        until(lambda: live.is_watched(talk.id, "transcript"))
        talk.tell(turn, "seen")
        assert next(stream).data["text"] == "seen"

        def hide(tx):
            tx.run("UPDATE turns SET visibility = 'hidden'")
            journal.append(tx, talk.id, Event("visibility", turn.id))

        server.api.database.write(hide)
        talk.tell(turn, "unseen")
        talk.append(Event("conversation_ended", payload={"reason": "archived"}))
        assert [it.type for it in stream] == ["conversation_ended"]


def test_progress_comes_in_frames(server, talk, turn):
    with server.stream(talk.path + "/events/stream?items=progress") as stream:
        until(lambda: live.is_watched(talk.id, "progress"))
        talk.tell(turn, "deltas are not progress")
        talk.tell(turn, "half way", "progress")
        talk.append(
            Event("turn_status", turn.id, turn.variant_id, payload={"run_status": "paused"})
        )
        # Which is first depends on whether the first look found what was committed.
        second, first = sorted(stream.take(2), key=lambda it: it.data["frame"]["type"])
    assert first.data == {
        "frame": {"type": "text_delta", "turn_public_id": "t", "task_key": "r1", "text": "half way"}
    }
    assert (second.data["frame"]["type"], second.data["frame"]["run_status"]) == ("run", "paused")


# --- how it goes -------------------------------------------------------------------------------


def test_silence_is_broken_by_comments(server, talk, monkeypatch):
    monkeypatch.setattr(sse, "HEARTBEAT", 0.2)
    with server.stream(talk.path + "/events/stream") as stream:
        assert next(stream).type == "watermark"
        threading.Timer(0.8, talk.happen).start()
        assert next(stream).type == "usage"
        assert stream.comments >= 1


def test_a_client_that_leaves_leaves_nothing_behind(server, talk, turn):
    for items in ("events", "transcript"):
        with server.stream(f"{talk.path}/events/stream?items={items}"):
            until(lambda: not server.is_idle())
        until(server.is_idle)


def test_a_reader_that_falls_behind_is_cut_with_a_last_word(server, talk, turn):
    path = f"{talk.path}/events/stream?items=transcript"
    with server.stream(path) as stream:
        until(lambda: live.is_watched(talk.id, "transcript"))
        # More than every buffer between here and there, and nobody reads.
        while live.is_watched(talk.id, "transcript") and not any(
            it._cut for it in live._subscriptions[talk.id]
        ):
            talk.tell(turn, "y" * 100_000)
        last = list(stream)[-1]
    assert (last.type, last.data["error"]["code"]) == ("error", "slow_reader")


def test_a_reader_that_reads_nothing_at_all_is_dropped(server, talk, turn, monkeypatch):
    monkeypatch.setattr("stenograph.http.listener.STALL", 0.3)
    head = "".join(f"{k}: {v}\r\n" for k, v in server.headers("member").items())
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        path = f"{talk.path}/events/stream?items=transcript"
        client.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n{head}\r\n".encode())
        until(lambda: live.is_watched(talk.id, "transcript"))
        while live.is_watched(talk.id, "transcript"):
            talk.tell(turn, "y" * 100_000)
            time.sleep(0.002)
        until(server.is_idle)


def test_a_stopping_server_ends_its_streams_in_good_order(api, talk):
    with listening(api, patience=PATIENCE) as server:
        with server.stream(talk.path + "/events/stream") as stream:
            assert next(stream).type == "watermark"
            server.listener.stop()
            assert list(stream) == []
        server.thread.join(PATIENCE / 2)
        assert not server.thread.is_alive()


def test_a_stream_has_an_end_after_which_it_is_taken_up_again(
    database, org, settings, sealer, talk
):
    talk.happen(150)
    api = Api(database, org, settings, sealer)
    try:
        told = api.get(talk.path + "/events/stream").text
        assert told.count("event: usage") == 150
        assert told.endswith('event: watermark\ndata: {"watermark":150}\n\n')
        head = api.request("HEAD", talk.path + "/events/stream")
        assert (head.status_code, head.content) == (200, b"")
    finally:
        api.close()
