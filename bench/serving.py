"""A server of its own for each benchmark, and a client that costs little."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from stenograph.accounts import access, first_start
from stenograph.accounts.access import Caller
from stenograph.storage import location, prepare
from stenograph.storage.database import Database

V3 = "/v3/organizations/default"
AGENT = "/agent_api/v1"


@contextmanager
def folder() -> Iterator[Path]:
    """A data folder that is deleted afterwards."""
    with tempfile.TemporaryDirectory(prefix="steno-bench-") as name:
        yield Path(name)


@contextmanager
def record(data: Path) -> Iterator[tuple[Database, Caller]]:
    """The database of a data folder, with the owner of its organization."""
    database = prepare.ready(location.locate(data, None))
    first_start.ensure(database, data)
    with database.read() as tx:
        owner = access.local(tx)
    yield database, owner
    database.close()


class Server:
    """`steno serve` on a free port, with no limit on the rate of requests."""

    def __init__(self, data: Path) -> None:
        program = "from stenograph.app import main; main()"
        command = [sys.executable, "-c", program, "serve", "--port", "0", "--data", str(data)]
        limits = {
            "STENO_V3_REQUESTS_PER_MINUTE": "100000000",
            "STENO_AGENT_REQUESTS_PER_MINUTE": "100000000",
        }
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, env=os.environ | limits
        )
        assert self.process.stdout is not None
        self.url = json.loads(self.process.stdout.readline())["url"]
        self.keys: dict[str, str] = json.loads((data / "keys.json").read_text())

    def memory(self, name: str = "VmRSS") -> float:
        """Return the resident memory in MB; `VmHWM` is its peak."""
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(text.split(f"{name}:")[1].split()[0]) / 1024

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)


@contextmanager
def serving(data: Path) -> Iterator[Server]:
    server = Server(data)
    try:
        yield server
    finally:
        server.stop()


class Client:
    """One connection that stays open. A library's client would be most of what is measured."""

    def __init__(self, server: Server, plane: str = "api") -> None:
        self._connect(server.url, server.keys[plane])

    @classmethod
    def to(cls, url: str, key: str) -> "Client":
        """Connect from another process than the one that holds the server."""
        client = cls.__new__(cls)
        client._connect(url, key)
        return client

    def _connect(self, url: str, key: str) -> None:
        place = urlsplit(url)
        assert place.hostname is not None
        self.socket = socket.create_connection((place.hostname, place.port or 80))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.head = f"Host: steno\r\nAuthorization: Bearer {key}\r\n"
        self.left = b""

    def close(self) -> None:
        self.socket.close()

    def get(self, path: str) -> bytes:
        return self._send(f"GET {path} HTTP/1.1\r\n{self.head}\r\n".encode())

    def post(self, path: str, body: Any, **headers: str) -> Any:
        data = json.dumps(body).encode()
        more = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        head = (
            f"POST {path} HTTP/1.1\r\n{self.head}{more}Content-Type: application/json\r\n"
            f"Content-Length: {len(data)}\r\n\r\n"
        )
        return json.loads(self._send(head.encode() + data))

    def _send(self, request: bytes) -> bytes:
        self.socket.sendall(request)
        head = self._until(b"\r\n\r\n").lower()
        if not head.startswith(b"http/1.1 2"):
            raise RuntimeError(head.decode())
        if b"content-length:" in head:
            return self._exactly(int(head.split(b"content-length:")[1].split(b"\r\n")[0]))
        parts = []
        while size := int(self._until(b"\r\n"), 16):
            parts.append(self._exactly(size))
            self._exactly(2)
        self._exactly(2)
        return b"".join(parts)

    def _until(self, end: bytes) -> bytes:
        while end not in self.left:
            self._more()
        found, _, self.left = self.left.partition(end)
        return found

    def _exactly(self, size: int) -> bytes:
        parts, found = [self.left], len(self.left)
        while found < size:
            parts.append(self.socket.recv(1 << 18))
            if not parts[-1]:
                raise RuntimeError("the server closed the connection")
            found += len(parts[-1])
        whole = b"".join(parts)
        self.left = whole[size:]
        return whole[:size]

    def _more(self) -> None:
        data = self.socket.recv(1 << 18)
        if not data:
            raise RuntimeError("the server closed the connection")
        self.left += data
