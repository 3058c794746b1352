"""PostgreSQL through psycopg 3 and its pool."""

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, TypeVar

import psycopg
from psycopg import errors, sql
from psycopg.abc import Buffer
from psycopg.types.string import StrDumperUnknown, TextLoader
from psycopg_pool import ConnectionPool

from stenograph.storage import postgres_scrub
from stenograph.storage.database import Dialect, Row, Tx, follow, insert_sql

T = TypeVar("T")

_PARAMETER = re.compile(r"(?<![:\w]):([a-z_][a-z0-9_]*)")
_ATTEMPTS = 8
_FETCH = 500

# PostgreSQL text cannot hold NUL, which genuine tool output does hold (RFC 8259 allows it in
# strings). It is written as two characters from the private use area, and read back.
_ESCAPE, _NUL, _ITSELF = "\uf8f0", "\uf8f00", "\uf8f01"


class _NulDumper(StrDumperUnknown):
    def dump(self, obj: str) -> Buffer | None:
        if "\0" in obj or _ESCAPE in obj:
            obj = obj.replace(_ESCAPE, _ITSELF).replace("\0", _NUL)
        return super().dump(obj)


class _NulLoader(TextLoader):
    def load(self, data: Buffer) -> str | bytes:
        text = super().load(data)
        if isinstance(text, str) and _ESCAPE in text:
            text = text.replace(_NUL, "\0").replace(_ITSELF, _ESCAPE)
        return text


def _configure(connection: psycopg.Connection[Any]) -> None:
    connection.adapters.register_dumper(str, _NulDumper)
    connection.adapters.register_loader("text", _NulLoader)


@lru_cache(maxsize=2048)
def _translate(text: str) -> bytes:
    return _PARAMETER.sub(r"%(\1)s", text.replace("%", "%%")).encode()


@lru_cache(maxsize=512)
def _insert(table: str, columns: tuple[str, ...]) -> str:
    return insert_sql(table, columns) + " RETURNING id"


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, bool) else value


class PostgresTx:
    """A transaction on one connection."""

    dialect: Dialect = "postgres"
    for_update = " FOR UPDATE"
    _names = itertools.count()

    def __init__(
        self, connection: psycopg.Connection[Row], observer: Callable[[str], None] | None
    ) -> None:
        self._connection = connection
        self._observer = observer
        self.acts: list[Callable[[], None]] = []

    def _execute(self, text: str, params: dict[str, Any]) -> psycopg.Cursor[Row]:
        if self._observer:
            self._observer(text)
        values = {name: _plain(value) for name, value in params.items()}
        return self._connection.execute(_translate(text), values)

    def rows(self, text: str, /, **params: Any) -> list[Row]:
        return self._execute(text, params).fetchall()

    def row(self, text: str, /, **params: Any) -> Row | None:
        return self._execute(text, params).fetchone()

    def value(self, text: str, /, **params: Any) -> Any:
        found = self.row(text, **params)
        return found[0] if found else None

    def each(self, text: str, /, **params: Any) -> Iterator[Row]:
        if self._observer:
            self._observer(text)
        with self._connection.cursor(f"each_{next(self._names)}") as cursor:
            cursor.itersize = _FETCH
            cursor.execute(_translate(text), params)
            yield from cursor

    def run(self, text: str, /, **params: Any) -> int:
        return self._execute(text, params).rowcount

    def insert(self, table: str, /, **columns: Any) -> int:
        found = self._execute(_insert(table, tuple(columns)), columns).fetchone()
        assert found is not None
        return int(found[0])

    def insert_many(self, table: str, columns: Sequence[str], rows: Iterable[Row]) -> None:
        names = ", ".join(columns)
        if self._observer:
            self._observer(f"COPY {table} ({names})")
        statement = sql.SQL("COPY {} ({}) FROM STDIN").format(
            sql.Identifier(table), sql.SQL(", ").join(map(sql.Identifier, columns))
        )
        with self._connection.cursor() as cursor, cursor.copy(statement) as copy:
            for row in rows:
                copy.write_row([_plain(value) for value in row])

    def allocate(self, table: str, count: int) -> list[int]:
        found = self.rows(
            "SELECT nextval(pg_get_serial_sequence(:table, 'id')) FROM generate_series(1, :count)",
            table=table,
            count=count,
        )
        return sorted(int(row[0]) for row in found)

    def after_commit(self, act: Callable[[], None]) -> None:
        self.acts.append(act)


class PostgresDatabase:
    """A PostgreSQL database by URL, for one process or many."""

    dialect: Dialect = "postgres"
    reads_wait = True

    def __init__(self, url: str, *, size: int = 10) -> None:
        self.observer: Callable[[str], None] | None = None
        self._pool: ConnectionPool[psycopg.Connection[Row]] = ConnectionPool(
            url, min_size=1, max_size=size, configure=_configure, open=False, timeout=30
        )
        self._pool.open(wait=True, timeout=30)
        self._threads = ThreadPoolExecutor(size, thread_name_prefix="postgres-writer")

    @contextmanager
    def read(self) -> Iterator[Tx]:
        with self._pool.connection() as connection:
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            connection.read_only = True
            try:
                yield PostgresTx(connection, self.observer)
            finally:
                connection.rollback()
                connection.isolation_level = None
                connection.read_only = None

    @contextmanager
    def once(self) -> Iterator[Tx]:
        with self._pool.connection() as connection:
            connection.autocommit = True
            try:
                yield PostgresTx(connection, self.observer)
            finally:
                connection.autocommit = False

    def write(self, act: Callable[[Tx], T], /) -> T:
        for attempt in itertools.count(1):
            try:
                with self._pool.connection() as connection:
                    tx = PostgresTx(connection, self.observer)
                    result = act(tx)
                follow(tx.acts)
                return result
            except (errors.SerializationFailure, errors.DeadlockDetected):
                if attempt == _ATTEMPTS:
                    raise
        raise AssertionError

    def submit(
        self, act: Callable[[Tx], T], answered: Callable[[], None] | None = None, /
    ) -> "Future[T]":
        if answered is None:
            return self._threads.submit(self.write, act)
        future: Future[T] = Future()
        self._threads.submit(self._answer, act, future, answered)
        return future

    def _answer(
        self, act: Callable[[Tx], T], future: "Future[T]", answered: Callable[[], None]
    ) -> None:
        if future.set_running_or_notify_cancel():
            try:
                future.set_result(self.write(act))
            except BaseException as error:
                future.set_exception(error)
        answered()

    def scrub(self, rewrite: Sequence[str] = ()) -> bool:
        with self._pool.connection() as connection:
            connection.autocommit = True
            try:
                return postgres_scrub.scrub(connection, rewrite)
            finally:
                connection.autocommit = False

    def close(self) -> None:
        self._threads.shutdown()
        self._pool.close()
