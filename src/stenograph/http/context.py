"""What a handler is given: who calls, what was sent, and the database."""

import asyncio
import re
from collections.abc import Callable, Mapping
from contextvars import copy_context
from typing import Any, TypeVar
from urllib.parse import parse_qsl

import msgspec
from litestar import Request

from stenograph.accounts.access import Caller
from stenograph.errors import InvalidInputError
from stenograph.http.handover import Handover
from stenograph.http.route import Route
from stenograph.settings import Settings
from stenograph.storage.database import Database, Tx
from stenograph.storage.sealing import Sealer
from stenograph.trajectories.atif.reading import MAX_NESTING, is_deep

T = TypeVar("T")
#: What msgspec repeats of the body: a word that is none of those allowed, an unknown member's name.
_WORD_SENT = re.compile(r"(?<=Invalid enum value) .*|(?<=contains unknown field) .*", re.DOTALL)
_PATH_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+|\.\.\.)\]")


class Ctx:
    """One request. `raw` is its body, empty where the route takes none."""

    __slots__ = (
        "_query", "caller", "database", "handover", "raw", "request", "route", "sealer", "settings",
    )  # fmt: skip

    def __init__(
        self,
        *,
        caller: Caller,
        database: Database,
        handover: Handover,
        settings: Settings,
        sealer: Sealer,
        request: Request[Any, Any, Any],
        route: Route,
        raw: bytes = b"",
    ) -> None:
        self.caller = caller
        self.database = database
        self.handover = handover
        self.settings = settings
        self.sealer = sealer
        self.request = request
        self.route = route
        self.raw = raw
        self._query: dict[str, str] | None = None

    @property
    def query(self) -> Mapping[str, str]:
        """The query's parameters as text; of one given twice, the last."""
        if self._query is None:
            text = self.request.scope["query_string"].decode("ascii", "replace")
            self._query = dict(parse_qsl(text, keep_blank_values=True)) if text else {}
        return self._query

    def header(self, name: str) -> str | None:
        """Return a header's value."""
        value: str | None = self.request.headers.get(name)
        return value

    def body(self, shape: type[T]) -> T:
        """Read the JSON body; call it once the resource is found. Raises `InvalidInputError`."""
        return decode(self.raw, shape)

    async def read(self, look: Callable[[Tx], T]) -> T:
        """Run `look` in a snapshot of the database, in a thread where that may wait."""
        if self.database.reads_wait:
            return await asyncio.to_thread(_read, self.database, look)
        with self.database.read() as tx:
            return look(tx)

    async def write(self, act: Callable[[Tx], T]) -> T:
        """Run `act` in a transaction; when this returns, what it did is on disk."""
        run = copy_context().run
        return await self.handover.write(lambda tx: run(act, tx))


def _read(database: Database, look: Callable[[Tx], T]) -> T:
    with database.read() as tx:
        return look(tx)


def decode(raw: bytes, shape: type[T]) -> T:
    """Read JSON of a shape; what is wrong is said with a JSON pointer (RFC 6901).

    Raises `InvalidInputError`: `bad_request` for what is no JSON or nested too deep,
    `parameter_missing` for a required member that is not there, `parameter_invalid` for a wrong
    type or value.
    """
    # The decoder's own limit is that of the stack, and what it just takes nobody can write again.
    if is_deep(raw):
        message = f"The body is nested more than {MAX_NESTING} levels deep"
        raise InvalidInputError(message, code="bad_request", pointer="")
    try:
        return msgspec.json.decode(raw, type=shape)
    except msgspec.ValidationError as error:
        message, _, where = str(error).partition(" - at `")
        message, pointer = _WORD_SENT.sub("", message), _pointer(where.rstrip("`"))
        code = "parameter_missing" if "missing required field" in message else "parameter_invalid"
        raise InvalidInputError(
            f"{message} at {pointer or 'the top'}", code=code, pointer=pointer
        ) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInputError(
            f"The body is not JSON: {error}", code="bad_request", pointer=""
        ) from None


def _pointer(path: str) -> str:
    """Write msgspec's `$.steps[0].message` as `/steps/0/message`."""
    steps = (name or index for name, index in _PATH_STEP.findall(path))
    return "".join("/" + step.replace("~", "~0").replace("/", "~1") for step in steps)
