"""The server over real sockets: what clients may send it, and how it stops."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from stenograph import app as process
from stenograph.http import listener
from stenograph.http.listener import Listener

REQUEST = b"POST /x HTTP/1.1\r\nHost: x\r\n"


async def echo(scope, receive, send) -> None:
    """Answer with the length of the body, or after `/slow` a little later."""
    size, more = 0, True
    while more:
        message = await receive()
        size += len(message.get("body", b""))
        more = message.get("more_body", False)
    if scope["path"] == "/slow":
        await asyncio.sleep(0.5)
    body = str(size).encode()
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@contextmanager
def listening() -> Iterator[tuple[Listener, int, threading.Thread]]:
    place = process._listen("127.0.0.1", 0)
    ready = threading.Event()
    server = Listener(echo, 5, ready.set)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([place])))
    port = place.getsockname()[1]
    thread.start()
    assert ready.wait(10)
    yield server, port, thread
    server.stop()
    thread.join(10)
    assert not thread.is_alive()


@pytest.fixture
def port() -> Iterator[int]:
    with listening() as (_, number, _):
        yield number


def talk(port: int, *parts: bytes) -> bytes:
    """Send the parts and return what comes until the server has answered or closed."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
        try:
            for part in parts:
                client.sendall(part)
        except OSError:
            return b"closed"
        answer = b""
        while b"\r\n\r\n" not in answer and (data := client.recv(65536)):
            answer += data
        return answer


def test_a_body_may_be_much_longer_than_a_head(port):
    size = 4 * listener.MAX_HEAD
    head = REQUEST + b"Content-Length: %d\r\n\r\n" % size
    assert talk(port, head, b"a" * size).startswith(b"HTTP/1.1 200")
    assert talk(port, head + b"a" * size).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("endless", [b"X-%d: a\r\n", b"%d"], ids=["many headers", "one header"])
def test_a_head_without_end_is_not_listened_to(port, endless):
    lead = REQUEST if b"\r\n" in endless else REQUEST + b"X-Long: "
    parts = [b"".join(endless % n for n in range(k, k + 4_000)) for k in range(0, 400_000, 4_000)]
    answer = talk(port, lead, *parts)
    assert answer == b"closed" or b" 400 " in answer.partition(b"\r\n")[0]


def test_what_is_no_http_gets_400(port):
    assert talk(port, b"\x16\x03\x01 hello\r\n\r\n").startswith(b"HTTP/1.1 400")


def test_many_requests_over_one_connection_each_with_a_fresh_bound(port):
    filler = b"X-Filler: " + b"a" * (listener.MAX_HEAD // 4) + b"\r\n"
    with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
        for _ in range(8):
            client.sendall(REQUEST + filler + b"Content-Length: 3\r\n\r\nabc")
            answer = b""
            while not answer.endswith(b"\r\n\r\n3"):
                answer += client.recv(65536)
            assert answer.startswith(b"HTTP/1.1 200")


def test_who_says_nothing_is_let_go(monkeypatch):
    monkeypatch.setattr(listener, "IDLE", 0.2)
    with listening() as (_, number, _), socket.create_connection(("127.0.0.1", number)) as client:
        client.settimeout(10)
        assert client.recv(1) == b""


def test_stopping_answers_what_was_asked():
    with listening() as (server, number, thread):
        answers: list[bytes] = []
        asked = b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n"
        client = threading.Thread(target=lambda: answers.append(talk(number, asked)))
        client.start()
        while not server.server_state.tasks:
            pass
        server.stop()
        client.join(10)
        thread.join(10)
    assert answers[0].startswith(b"HTTP/1.1 200")


def test_answers_are_not_held_back():
    """asyncio turns Nagle's algorithm off only where the socket says that it speaks TCP."""
    with process._listen("127.0.0.1", 0) as place:
        assert place.proto == socket.IPPROTO_TCP


class Transport:
    """Keeps what is sent."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []

    def write(self, data: bytes) -> None:
        self.sent.append(data)

    def close(self) -> None:
        self.sent.append(b"closed")


async def gathered(*writes: bytes | None) -> list[bytes]:
    """What is sent of writes; None lets the loop turn, b"" closes."""
    transport = Transport()
    gathering = listener._Gathering(transport, asyncio.get_running_loop())
    for data in writes:
        if data is None:
            await asyncio.sleep(0)
        elif data:
            gathering.write(data)
        else:
            gathering.close()
    await asyncio.sleep(0)
    return transport.sent


@pytest.mark.parametrize(
    ("writes", "sent"),
    [
        ([b"head", b"body"], [b"headbody"]),
        ([b"head"], [b"head"]),
        ([b"head", None, b"body"], [b"head", b"body"]),
        ([b"head", b"a", b"b", b"c"], [b"heada", b"bc"]),
        ([b"head", b""], [b"head", b"closed"]),
        ([b"head", b"body", b""], [b"headbody", b"closed"]),
    ],
)
def test_a_head_goes_with_its_body_and_nothing_is_kept(writes, sent):
    assert asyncio.run(gathered(*writes)) == sent
