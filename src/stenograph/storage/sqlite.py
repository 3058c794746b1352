"""SQLite: one writer thread that commits in groups, and as many readers as are wanted.

Each commit is fsynced (`synchronous=FULL`), but jobs that wait together share one: the writer
runs them in one transaction, each under its own savepoint, and answers all after the commit.
"""

import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from stenograph.storage.database import Dialect, Row, Tx, follow, insert_sql

T = TypeVar("T")

#: How many waiting jobs one commit may carry.
GROUP = 128
#: Pages in the log from which a commit carries them into the database file: 16 MB. Each time costs
#: two fsyncs and, at SQLite's own 1,000 pages, would come with every fiftieth step recorded.
_CHECKPOINT = 4_000
#: The tables whose ids never come again, even after the newest row was deleted.
AUTOINCREMENT = frozenset({"tasks"})
_FETCH = 500
#: FTS5 marks what is deleted and drops it when parts of the index are merged.
_MERGE_INDEX = "INSERT INTO search_index (search_index) VALUES ('optimize')"
#: Seconds to wait for another process's write, and for readers to let go of the log.
_BUSY = 30
_PATIENCE = 30


def _connect(path: Path, *, writer: bool) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path, isolation_level=None, check_same_thread=False, cached_statements=512, timeout=_BUSY
    )
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute("PRAGMA synchronous = FULL")
    # In KiB. A reader's pages are mostly read once, and every reader has a cache of its own.
    connection.execute(f"PRAGMA cache_size = -{16_000 if writer else 4_000}")
    connection.execute("PRAGMA temp_store = MEMORY")
    if writer:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT}")
    else:
        connection.execute("PRAGMA query_only = ON")
    return connection


@lru_cache(maxsize=512)
def _insert(table: str, columns: tuple[str, ...]) -> str:
    return insert_sql(table, columns)


@lru_cache(maxsize=512)
def _insert_many(table: str, columns: tuple[str, ...]) -> str:
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"


class SqliteTx:
    """A transaction on one connection."""

    dialect: Dialect = "sqlite"
    for_update = ""

    def __init__(self, connection: sqlite3.Connection, observer: Callable[[str], None] | None):
        self._connection = connection
        self._observer = observer
        self.acts: list[Callable[[], None]] = []

    def _execute(self, sql: str, params: Any) -> sqlite3.Cursor:
        if self._observer:
            self._observer(sql)
        return self._connection.execute(sql, params)

    def rows(self, sql: str, /, **params: Any) -> list[Row]:
        return self._execute(sql, params).fetchall()

    def row(self, sql: str, /, **params: Any) -> Row | None:
        found: Row | None = self._execute(sql, params).fetchone()
        return found

    def value(self, sql: str, /, **params: Any) -> Any:
        found = self.row(sql, **params)
        return found[0] if found else None

    def each(self, sql: str, /, **params: Any) -> Iterator[Row]:
        cursor = self._execute(sql, params)
        while batch := cursor.fetchmany(_FETCH):
            yield from batch

    def run(self, sql: str, /, **params: Any) -> int:
        return self._execute(sql, params).rowcount

    def insert(self, table: str, /, **columns: Any) -> int:
        rowid = self._execute(_insert(table, tuple(columns)), columns).lastrowid
        assert rowid is not None
        return rowid

    def insert_many(self, table: str, columns: Sequence[str], rows: Iterable[Row]) -> None:
        sql = _insert_many(table, tuple(columns))
        if self._observer:
            self._observer(sql)
        self._connection.executemany(sql, rows)

    def allocate(self, table: str, count: int) -> list[int]:
        if table in AUTOINCREMENT:  # SQLite keeps the largest id that the table ever had
            last = self.value("SELECT seq FROM sqlite_sequence WHERE name = :table", table=table)
        else:
            last = self.value(f"SELECT max(id) FROM {table}")
        first = (last or 0) + 1
        return list(range(first, first + count))

    def after_commit(self, act: Callable[[], None]) -> None:
        self.acts.append(act)


@dataclass(slots=True)
class _Job:
    """Something to be written, and what became of it before its commit."""

    act: Callable[[Tx], Any]
    answered: Callable[[], None] | None
    future: "Future[Any]" = field(default_factory=Future)
    result: Any = None
    acts: list[Callable[[], None]] = field(default_factory=list)


class SqliteDatabase:
    """A database file, opened once per process. Other processes may open it too."""

    dialect: Dialect = "sqlite"
    reads_wait = False

    def __init__(self, path: Path) -> None:
        self.path = path
        self.observer: Callable[[str], None] | None = None
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._readers: queue.SimpleQueue[sqlite3.Connection] = queue.SimpleQueue()
        self._writer = _connect(path, writer=True)
        self._thread = threading.Thread(target=self._work, name="sqlite-writer", daemon=True)
        self._thread.start()
        self._closed = False

    @contextmanager
    def read(self) -> Iterator[Tx]:
        with self._reader() as connection:
            connection.execute("BEGIN")
            try:
                yield SqliteTx(connection, self.observer)
            finally:
                connection.rollback()

    @contextmanager
    def once(self) -> Iterator[Tx]:
        with self._reader() as connection:
            yield SqliteTx(connection, self.observer)

    @contextmanager
    def _reader(self) -> Iterator[sqlite3.Connection]:
        try:
            connection = self._readers.get_nowait()
        except queue.Empty:
            connection = _connect(self.path, writer=False)
        try:
            yield connection
        finally:
            self._readers.put(connection)

    def write(self, act: Callable[[Tx], T], /) -> T:
        return self.submit(act).result()

    def submit(
        self, act: Callable[[Tx], T], answered: Callable[[], None] | None = None, /
    ) -> "Future[T]":
        if self._closed:
            raise RuntimeError("the database is closed")
        if threading.current_thread() is self._thread:
            raise RuntimeError("write() inside write() would wait for itself")
        job = _Job(act, answered)
        self._jobs.put(job)
        return job.future

    def scrub(self, rewrite: Sequence[str] = ()) -> bool:
        if "search_documents" in rewrite:
            self.write(lambda tx: tx.run(_MERGE_INDEX))
        if rewrite:
            self._between(self._vacuum)
        patience = time.monotonic() + _PATIENCE
        while not self._between(self._checkpoint):
            if time.monotonic() > patience:
                return False
            time.sleep(0.1)
        return True

    def _between(self, act: Callable[[], T]) -> T:
        """Run `act` on the writer thread, between transactions."""
        future: Future[T] = Future()

        def run() -> None:
            try:
                future.set_result(act())
            except BaseException as error:
                future.set_exception(error)

        self.write(lambda tx: tx.after_commit(run))
        return future.result()

    def _vacuum(self) -> None:
        # Erased cells leave images in pages that were balanced while they lived, which
        # `secure_delete` does not reach. The new file is put together on disk, not in memory.
        self._writer.execute("PRAGMA temp_store = FILE")
        try:
            self._writer.execute("VACUUM")
        finally:
            self._writer.execute("PRAGMA temp_store = MEMORY")

    def _checkpoint(self) -> bool:
        # The log's pages hold what was deleted. A reader of an old snapshot keeps them there;
        # it is asked again later, so that writers need not wait for it.
        self._writer.execute("PRAGMA busy_timeout = 250")
        try:
            busy = self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()[0][0]
        finally:
            self._writer.execute(f"PRAGMA busy_timeout = {_BUSY * 1000}")
        return not busy

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._jobs.put(None)
        self._thread.join()
        self._writer.close()
        while True:
            try:
                self._readers.get_nowait().close()
            except queue.Empty:
                return

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            if not self._group(job):
                return

    def _group(self, job: _Job) -> bool:
        """Run `job` and those waiting behind it in one transaction. False: the end was met."""
        try:
            self._writer.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            job.future.set_exception(error)
            _tell([job])
            return True
        group: list[_Job] = []
        done: list[_Job] = []
        pending: _Job | None = job
        while pending is not None:
            group.append(pending)
            if pending.future.set_running_or_notify_cancel():
                self._one(pending, done)
            if len(done) >= GROUP or not self._writer.in_transaction:
                break
            try:
                pending = self._jobs.get_nowait()
            except queue.Empty:
                break
        self._commit(done)
        _tell(group)
        return pending is not None

    def _one(self, job: _Job, done: list[_Job]) -> None:
        tx = SqliteTx(self._writer, self.observer)
        try:
            self._writer.execute("SAVEPOINT job")
            job.result = job.act(tx)
            self._writer.execute("RELEASE job")
        except BaseException as error:
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK TO job")
                self._writer.execute("RELEASE job")
            else:  # SQLite itself rolled everything back (disk full, I/O): nobody's work is there
                for other in done:
                    other.future.set_exception(error)
                done.clear()
            job.future.set_exception(error)
        else:
            job.acts = tx.acts
            done.append(job)

    def _commit(self, done: list[_Job]) -> None:
        try:
            if self._writer.in_transaction:
                self._writer.execute("COMMIT")
        except sqlite3.Error as error:
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")
            for job in done:
                job.future.set_exception(error)
            return
        for job in done:
            follow(job.acts)
            job.future.set_result(job.result)


def _tell(group: list[_Job]) -> None:
    """Tell those who submitted jobs of a group, each once, that they are answered."""
    for answered in {job.answered for job in group if job.answered is not None}:
        answered()
