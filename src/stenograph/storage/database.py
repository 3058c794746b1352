"""The port to the database: what every room may ask of it, whichever driver lies behind.

A room's verbs take a `Tx` and never open one: the edge does, with `read()` for a snapshot that
takes no write lock, and `write(fn)` for one transaction that is durable when it returns.
SQL is portable, its parameters are named (`:name`), rows are plain tuples.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

import structlog

T = TypeVar("T")
_log = structlog.get_logger()
Row: TypeAlias = tuple[Any, ...]
Dialect: TypeAlias = Literal["sqlite", "postgres"]


class Tx(Protocol):
    """One transaction. Booleans go in as bool and come back as 0 or 1, times as microseconds."""

    dialect: Dialect
    #: Put behind a SELECT that must hold its row until the end of the transaction.
    for_update: str

    def rows(self, sql: str, /, **params: Any) -> list[Row]:
        """Return every row."""
        ...

    def row(self, sql: str, /, **params: Any) -> Row | None:
        """Return the first row, or None."""
        ...

    def value(self, sql: str, /, **params: Any) -> Any:
        """Return the first column of the first row, or None."""
        ...

    def each(self, sql: str, /, **params: Any) -> Iterator[Row]:
        """Return the rows one by one, holding a bounded number of them in memory."""
        ...

    def run(self, sql: str, /, **params: Any) -> int:
        """Write, and return how many rows were touched."""
        ...

    def insert(self, table: str, /, **columns: Any) -> int:
        """Insert one row and return its `id`."""
        ...

    def insert_many(self, table: str, columns: Sequence[str], rows: Iterable[Row]) -> None:
        """Insert many rows of the named columns, in order."""
        ...

    def allocate(self, table: str, count: int) -> list[int]:
        """Return `count` fresh ids of the table, ascending, for use with `insert_many`."""
        ...

    def after_commit(self, act: Callable[[], None]) -> None:
        """Call `act` once this transaction is durable; never if it is rolled back."""
        ...


class Database(Protocol):
    """An open database."""

    dialect: Dialect
    #: Whether a read may wait for a network or a pool, so that it belongs in a thread.
    reads_wait: bool
    #: Called with each SQL text that runs; tests count queries with it.
    observer: Callable[[str], None] | None

    def read(self) -> AbstractContextManager[Tx]:
        """Open a snapshot: what commits meanwhile is not seen, and nothing waits for it."""
        ...

    def once(self) -> AbstractContextManager[Tx]:
        """As `read`, for a single question: what begins and ends a snapshot is saved."""
        ...

    def write(self, act: Callable[[Tx], T], /) -> T:
        """Run `act` in one transaction; when this returns, what it did is on disk."""
        ...

    def submit(
        self, act: Callable[[Tx], T], answered: Callable[[], None] | None = None, /
    ) -> "Future[T]":
        """As `write`, without waiting.

        `answered` is called, on whatever thread, after the future was settled; once for all the
        futures that one commit settled.
        """
        ...

    def scrub(self, rewrite: Sequence[str] = ()) -> bool:
        """Make what was deleted unreadable in the files too: logs, free space.

        `rewrite` names tables to write anew (SQLite: the whole file), which takes the last scraps
        and makes others wait meanwhile (docs/decisions/0022). False: something held on to old
        pages, or the right to empty the server's log was lacking.
        """
        ...

    def close(self) -> None: ...


def follow(acts: Iterable[Callable[[], None]]) -> None:
    """Do what was to follow a commit. Nothing that fails in it can undo the commit, or say so."""
    for act in acts:
        try:
            act()
        except Exception:
            _log.exception("What follows a commit failed")


def among(column: str, ids: Iterable[int]) -> str:
    """Write `column IN (1, 2, 3)`; false for no ids. Only for integers, hence safe as text."""
    listed = ",".join(str(int(i)) for i in ids)
    return f"{column} IN ({listed})" if listed else "1 = 0"


def insert_sql(table: str, columns: Iterable[str]) -> str:
    """Write an INSERT with named parameters."""
    names = list(columns)
    return f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join(':' + n for n in names)})"
