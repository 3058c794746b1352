"""What a worker keeps between starts: a folder for each server and root, for its owner only.

A command that a model runs is run by the same user, and can read it too; what it finds there can
claim this worker's calls, and nothing else. Who does not want that runs the worker as a user, or in
a container, that commands cannot leave anyway.
"""

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from stenograph.errors import ConflictError, StenographError
from stenograph.worker.wire import Device


class Kept(msgspec.Struct, frozen=True):
    """What this worker is here, or is about to be.

    `verifier` waits for the ticket that was made with it. `origin` names what it was enrolled by
    (a ticket's digest, or the request that its key made), so that a start with the same does not
    enrol again. `revoked`: the server did not know the secret any more.
    """

    url: str
    root: str
    install_id: str
    verifier: str | None = None
    origin: str | None = None
    device: Device | None = None
    secret: str | None = None
    revoked: bool = False

    def __repr__(self) -> str:
        return f"Kept({self.url}, {self.root})"


@dataclass(frozen=True, slots=True)
class Shelf:
    """The folder of one server and root."""

    folder: Path

    def read(self) -> Kept | None:
        """Return what is kept; raises `StenographError` if it cannot be read."""
        file = self.folder / "enrolment.json"
        try:
            return msgspec.json.decode(file.read_bytes(), type=Kept)
        except FileNotFoundError:
            return None
        except msgspec.DecodeError:
            raise StenographError(f"{file} is damaged: delete it, and enrol again") from None

    def write(self, kept: Kept) -> None:
        """Keep it, whole or not at all, and still after the power fails: a secret is said once."""
        replace(self.folder / "enrolment.json", msgspec.json.encode(kept), durable=True)

    @property
    def calls(self) -> Path:
        """Where the journal lies."""
        return self.folder / "calls"


@contextmanager
def opened(state: Path, url: str, root: str) -> Iterator[Shelf]:
    """Open the folder of a server and a root, which nobody else may use at the same time.

    Raises `ConflictError` if somebody does.
    """
    name = hashlib.sha256(f"{url}\n{root}".encode(errors="surrogateescape")).hexdigest()[:32]
    folder = state.expanduser() / name
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with os.fdopen(os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConflictError(
                f"A worker for {root} is running already; to have another, give it a --state",
                code="worker_running",
            ) from None
        yield Shelf(folder)


def replace(file: Path, data: bytes, durable: bool = False) -> None:
    """Put a file of the owner's in place, whole or not at all."""
    fresh = file.with_name(f".{file.name}")
    with suppress(FileNotFoundError):
        fresh.unlink()
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
        out.write(data)
        if durable:
            out.flush()
            os.fsync(out.fileno())
    fresh.replace(file)
