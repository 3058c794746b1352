"""The cable, as an ActionCable client meets it, over a real socket."""

import json
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from feeds import ask, new_session
from live import PATIENCE, Followed, Server, conversation, listening, until
from serving import Api
from stenograph.events import journal, live, waiting
from stenograph.events.journal import Event
from stenograph.http import cable


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


class Client:
    """One socket. Pings of the protocol are left out of what comes."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket

    def say(self, **command: Any) -> None:
        self.socket.send(json.dumps(command))

    def next(self) -> Any:
        while (message := json.loads(self.socket.recv(PATIENCE))).get("type") == "ping":
            pass
        return message

    def subscribe(self, talk: Followed, items: str | None = None, **more: Any) -> tuple[str, str]:
        """Subscribe; returns the identifier, and what became of it."""
        params = {
            "channel": cable.CHANNEL,
            "workspace_id": talk.workspace,
            "conversation_id": talk.public_id,
            **({} if items is None else {"items": items}),
            **more,
        }
        identifier = json.dumps(params)
        self.say(command="subscribe", identifier=identifier)
        answer = self.next()
        assert answer["identifier"] == identifier
        return identifier, answer["type"]

    def ending(self) -> tuple[Any, int]:
        """The last message, and the code that the socket was closed with."""
        last = None
        with suppress(ConnectionClosed):
            while True:
                last = self.next()
        code = self.socket.close_code
        assert code is not None
        return last, code


@contextmanager
def opened(server: Server, key: str = "member", path: str = cable.PATH) -> Iterator[Client]:
    url = server.url.replace("http", "ws") + path
    with connect(
        url,
        additional_headers=server.headers(key),
        subprotocols=[cable.PROTOCOL, "actioncable-unsupported"],  # type: ignore[list-item]
        compression=None,
    ) as found:
        yield Client(found)


# --- the handshake -----------------------------------------------------------------------------


def test_a_client_is_welcomed_in_its_protocol(server):
    with opened(server) as client:
        assert client.socket.subprotocol == cable.PROTOCOL
        assert client.next() == {"type": "welcome"}


def test_pings_come(server, monkeypatch):
    monkeypatch.setattr(cable, "PING", 0.05)
    with opened(server) as client:
        assert client.next() == {"type": "welcome"}
        ping = json.loads(client.socket.recv(PATIENCE))
        assert ping["type"] == "ping"
        assert abs(ping["message"] - time.time()) < 60


@pytest.mark.parametrize("key", ["", "executor", "api", "sk-steno-v1-nobody"])
def test_a_key_that_is_none_here_is_turned_away_before_the_handshake(server, key):
    with pytest.raises(InvalidStatus) as refused, opened(server, key):
        pass
    answer = refused.value.response
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"] == 'Bearer realm="stenograph"'
    assert json.loads(answer.body)["error"]["code"] == "unauthorized"


def test_there_is_no_other_socket(server):
    with pytest.raises(InvalidStatus) as refused, opened(server, path="/v3/cable"):
        pass
    assert refused.value.response.status_code == 404


def test_the_rate_is_that_of_requests(database, org, settings, sealer):
    api = Api(database, org, replace(settings, agent_requests_per_minute=2), sealer)
    try:
        with listening(api) as server:
            with opened(server) as client:
                client.say(command="subscribe", identifier="{}")
                client.say(command="subscribe", identifier="{}")
                last, code = client.ending()
                assert last == {"type": "disconnect", "reason": "rate_limited", "reconnect": True}
                assert code == 1013
            with pytest.raises(InvalidStatus) as refused, opened(server):
                pass
            assert refused.value.response.status_code == 429
            assert refused.value.response.headers["Retry-After"] == "60"
            until(server.is_idle)
    finally:
        api.close()


# --- subscriptions -----------------------------------------------------------------------------


def test_what_comes_after_the_confirmation_is_told(server, talk):
    talk.happen(3)
    with opened(server) as client:
        assert client.next() == {"type": "welcome"}
        identifier, answer = client.subscribe(talk)
        assert answer == "confirm_subscription"
        talk.happen(2)
        told = [client.next() for _ in range(2)]
    assert [it["identifier"] for it in told] == [identifier] * 2
    listed = server.api.get(talk.path + "/events").json()["events"]
    assert [it["message"] for it in told] == listed[3:]


def test_each_kind_of_items(server, talk, turn):
    with opened(server) as client:
        client.next()
        names = {}
        for items in ("lifecycle", "transcript", "progress"):
            identifier, answer = client.subscribe(talk, items)
            assert answer == "confirm_subscription"
            names[identifier] = items
        until(lambda: live.is_watched(talk.id, "transcript"))
        until(lambda: live.is_watched(talk.id, "progress"))
        talk.tell(turn, "Hello")
        talk.tell(turn, "half", "progress")
        got = {}
        for _ in range(2):
            message = client.next()
            got[names[message["identifier"]]] = message["message"]
        assert got["transcript"] == {
            "type": "text_delta", "turn_public_id": "t", "task_key": "r1", "text": "Hello",
        }  # fmt: skip
        assert got["progress"]["frame"]["text"] == "half"
        talk.append(
            Event("usage"),
            Event("turn_status", turn.id, turn.variant_id, payload={"variant_status": "failed"}),
        )
        for _ in range(3):
            message = client.next()
            got[names[message["identifier"]]] = message["message"]
        assert got["lifecycle"]["type"] == "turn_status"
        assert got["transcript"]["type"] == "turn"
        assert got["progress"]["frame"]["type"] == "turn"


def test_a_followers_rules_lose_nothing_and_see_nothing_twice(server, talk):
    """Replay to the watermark, subscribe, drain again, then live, by sequence (agent-api.md 7)."""
    talk.happen(3)
    seen = [it["sequence"] for it in server.api.get(talk.path + "/events").json()["events"]]
    with opened(server) as client:
        client.next()
        talk.happen(2)
        client.subscribe(talk)
        talk.happen(2)
        after = server.api.get(talk.path + "/events?limit=200").json()["events"]
        seen += [it["sequence"] for it in after if it["sequence"] > seen[-1]]
        talk.happen()
        while seen[-1] < 8:
            number = client.next()["message"]["sequence"]
            seen += [number] if number > seen[-1] else []
    assert seen == list(range(1, 9))


@pytest.mark.parametrize(
    "params",
    [
        {"items": "nonsense"},
        {"items": 7},
        {"channel": "ChatChannel"},
        {"conversation_id": "00000000-0000-7000-8000-000000000000"},
        {"workspace_id": "00000000-0000-7000-8000-000000000000"},
        {"conversation_id": "\x00"},
        {"conversation_id": 7},
    ],
)
def test_what_is_not_there_is_rejected(server, talk, params):
    with opened(server) as client:
        client.next()
        assert client.subscribe(talk, **params)[1] == "reject_subscription"
        # And the socket goes on.
        assert client.subscribe(talk)[1] == "confirm_subscription"


@pytest.mark.parametrize("identifier", ["", "{", "[]", "7", '{"channel": "x"}', "[" * 5_000])
def test_an_identifier_that_is_none_is_rejected(server, identifier):
    with opened(server) as client:
        client.next()
        client.say(command="subscribe", identifier=identifier)
        assert client.next() == {"identifier": identifier, "type": "reject_subscription"}


def test_who_is_shut_out_is_rejected_and_hears_nothing_of_what_comes_after(server, talk, database):
    with opened(server, "member:member") as client:
        client.next()
        identifier, answer = client.subscribe(talk)
        assert answer == "confirm_subscription"

        def shut(tx: Any) -> None:
            tx.run("UPDATE conversations SET access_default = 'none'")
            journal.append(tx, talk.id, Event("usage"))

        database.write(shut)
        assert client.next() == {"identifier": identifier, "type": "reject_subscription"}


def test_a_revoked_key_closes_the_socket(server, talk, database):
    with opened(server) as client:
        client.next()
        client.subscribe(talk)
        database.write(lambda tx: tx.run("UPDATE credentials SET revoked_at = 1"))
        last, code = client.ending()
    assert last == {"type": "disconnect", "reason": "unauthorized", "reconnect": False}
    assert code == 1008


def test_unsubscribing_ends_it_and_twice_is_once(server, talk):
    with opened(server) as client:
        client.next()
        identifier, _ = client.subscribe(talk)
        assert client.subscribe(talk) == (identifier, "confirm_subscription")
        assert len(waiting._listening[talk.id]) == 1
        client.say(command="unsubscribe", identifier=identifier)
        client.say(command="unsubscribe", identifier="unknown")
        client.say(command="message", identifier=identifier, data="{}")
        until(lambda: talk.id not in waiting._listening)
        talk.happen()
        assert client.subscribe(talk) == (identifier, "confirm_subscription")
        talk.happen()
        assert client.next()["message"]["sequence"] == 2


def test_a_conversation_that_ends_is_told_as_the_last_thing(server, talk):
    with opened(server) as client:
        client.next()
        client.subscribe(talk)
        talk.append(Event("conversation_ended", payload={"reason": "archived"}))
        assert client.next()["message"]["payload"] == {"reason": "archived"}
        until(lambda: talk.id not in waiting._listening)


def test_a_socket_follows_so_many_conversations(server, talk, monkeypatch):
    monkeypatch.setattr(cable, "SUBSCRIPTIONS", 2)
    with opened(server) as client:
        client.next()
        assert client.subscribe(talk)[1] == "confirm_subscription"
        first, answer = client.subscribe(talk, "progress")
        assert answer == "confirm_subscription"
        assert client.subscribe(talk, "transcript")[1] == "reject_subscription"
        client.say(command="unsubscribe", identifier=first)
        assert client.subscribe(talk, "transcript")[1] == "confirm_subscription"


# --- what goes wrong ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sent",
    [
        "",
        "hello",
        "[]",
        "{}",
        '{"command": "dance", "identifier": "{}"}',
        b"\x00\xff",
        "[" * 50_000,
    ],
)
def test_what_is_no_command_closes_the_socket(server, talk, sent):
    with opened(server) as client:
        client.next()
        client.subscribe(talk)
        client.socket.send(sent)
        last, code = client.ending()
    assert last == {"type": "disconnect", "reason": "invalid_request", "reconnect": False}
    assert code == 1003


def test_a_message_has_a_longest_length(server, talk):
    with opened(server) as client:
        client.next()
        client.subscribe(talk)
        client.socket.send("x" * (cable.MAX_MESSAGE + 1))
        assert client.ending()[1] == 1009


def test_clients_that_vanish_leave_nothing_behind(server, talk, turn):
    for items in ("events", "transcript", "progress"):
        with opened(server) as client:
            client.next()
            client.subscribe(talk, items)
            if items == "events":
                # As when a cable is pulled: no closing words.
                client.socket.socket.shutdown(socket.SHUT_RDWR)
        until(server.is_idle)


def test_a_reader_that_falls_behind_is_cut_with_a_last_word(server, talk, turn):
    with opened(server) as client:
        client.next()
        client.subscribe(talk, "transcript")
        until(lambda: live.is_watched(talk.id, "transcript"))
        while live.is_watched(talk.id, "transcript") and not any(
            it._cut for it in live._subscriptions[talk.id]
        ):
            talk.tell(turn, "y" * 100_000)
        last, code = client.ending()
    assert last == {"type": "disconnect", "reason": "slow_reader", "reconnect": True}
    assert code == 1013


def test_a_stopping_server_says_so(api, talk):
    with listening(api, patience=PATIENCE) as server, opened(server) as client:
        client.next()
        client.subscribe(talk)
        server.listener.stop()
        last, code = client.ending()
        assert last == {"type": "disconnect", "reason": "server_restart", "reconnect": True}
        assert code == 1012
        server.thread.join(PATIENCE / 2)
        assert not server.thread.is_alive()


HEAD = (
    "Host: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
)


@pytest.mark.parametrize(
    ("line", "head", "status"),
    [
        ("GET {path}\xff HTTP/1.1", HEAD, 400),
        ("GET {path}%00 HTTP/1.1", HEAD, 404),
        ("GET {path} HTTP/1.1", HEAD.replace("Key", "Lock"), 400),
        ("GET {path} HTTP/1.1", HEAD.replace("13", "8"), 400),
        ("POST {path} HTTP/1.1", HEAD + "Content-Length: 3\r\n", 404),
        ("GET {path} HTTP/1.1", "Host: x\r\n", 404),
    ],
)
def test_a_handshake_that_is_none_is_answered(server, line, head, status):
    request = f"{line.format(path=cable.PATH)}\r\n{head}\r\n".encode("latin-1")
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as client:
        client.sendall(request + (b"abc" if b"Length" in request else b""))
        assert client.recv(65_536).startswith(b"HTTP/1.1 %d " % status)


def test_text_that_is_none_is_closed_with_its_code(server):
    with opened(server) as client:
        client.next()
        client.socket.send(b"\xff\xfe", text=True)
        assert client.ending()[1] == 1007
