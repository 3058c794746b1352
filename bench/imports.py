"""Imports: how soon a log of 10,000 steps is in the record, and in it again with nothing new."""

import time
from collections.abc import Callable

from bench.figures import Figure
from bench.histories import one_long_turn
from bench.serving import folder, record
from stenograph.accounts.access import Caller
from stenograph.storage.database import Database, Tx
from stenograph.trajectories.export.document import trajectory
from stenograph.trajectories.importers.discovery import read_bytes
from stenograph.trajectories.recording import record as recording
from stenograph.trajectories.redaction.redactor import Redactor

STEPS = 10_000
ROUNDS = 3


def run() -> list[Figure]:
    """Measure an ATIF document with a tool call a step; each first import into a fresh database."""
    with folder() as data, record(data) as (database, owner):
        document = _document(database, owner)
    times = [_imported_twice(document) for _ in range(ROUNDS)]
    size = len(document) / 1e6
    first, again = (min(column) for column in zip(*times, strict=True))
    return [
        Figure(f"import of {STEPS:,} steps ({size:.0f} MB)", first, "ms"),
        Figure("steps imported", STEPS / first * 1e3, "/s"),
        Figure("the same log again, nothing new", again, "ms"),
    ]


def _document(database: Database, owner: Caller) -> bytes:
    session = one_long_turn(database, owner, STEPS - 1)
    with database.read() as tx:
        row = tx.value(
            "SELECT id FROM conversations WHERE public_id = :id", id=session.conversation_id
        )
        return b"".join(trajectory(tx, row, Redactor((), "ephemeral")))


def _imported_twice(document: bytes) -> tuple[float, float]:
    with folder() as data, record(data) as (database, owner):

        def take_in() -> None:
            (draft,) = read_bytes(document, "atif")

            def keep(tx: Tx) -> None:
                recording.record(tx, owner, draft)

            database.write(keep)

        return _milliseconds(take_in), _milliseconds(take_in)


def _milliseconds(work: Callable[[], None]) -> float:
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1e3
