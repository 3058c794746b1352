"""Requests and answers as values: what is sent, what is made of what comes back. No I/O here."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from urllib.parse import quote
from uuid import uuid4

import msgspec

from stenograph.client.errors import Error, MalformedResponse, of_status
from stenograph.client.records import OlderPage, Page, Record

T = TypeVar("T")
PREFIX = "/agent_api/v1"
_DOTS = re.compile(r"\.*")
#: Seconds, up to some months: nobody means more, or can sleep for that.
_SECONDS = re.compile(r"[0-9]{1,7}")


@dataclass(frozen=True, slots=True)
class Answer:
    """A response, whole. Names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def document(self) -> dict[str, Any]:
        """The body, a JSON object. Raises `MalformedResponse`."""
        try:
            return msgspec.json.decode(self.content, type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise malformed(self, str(error)) from None

    @property
    def replayed(self) -> bool:
        """Whether it was answered before, and nothing was done this time."""
        return self.headers.get("idempotency-replayed") == "true"


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One request and how its answer is read. Parameters that are None are not sent.

    `status` is the one that is expected. `idempotency_key` makes it safe to send twice. With
    `none_if_missing` a 404 reads as None.
    """

    method: str
    path: str
    read: Callable[[Answer], T]
    status: int = 200
    query: Mapping[str, object] = field(default_factory=dict)
    body: Any = None
    idempotency_key: str | None = None
    none_if_missing: bool = False

    @property
    def is_safe(self) -> bool:
        """Whether it may be sent twice."""
        return self.method == "GET" or self.idempotency_key is not None

    def options(self) -> dict[str, Any]:
        """Return it as httpx takes it: method, url, params, headers, content."""
        params = {name: _text(it) for name, it in self.query.items() if it is not None}
        headers = {}
        if self.idempotency_key is not None:
            headers["Idempotency-Key"] = self.idempotency_key.encode()
        if self.body is not None:
            headers["Content-Type"] = b"application/json"
        return {
            "method": self.method,
            "url": PREFIX + self.path,
            "params": params,
            "headers": headers,
            "content": None if self.body is None else msgspec.json.encode(self.body),
        }

    def result(self, answer: Answer) -> T:
        """Read the answer. Raises an `Error`."""
        if answer.status == self.status:
            return self.read(answer)
        if answer.status == 404 and self.none_if_missing:
            return None  # type: ignore[return-value]
        raise failure(answer)


def _text(value: object) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def path(*parts: str) -> str:
    """Join a path, each part one segment. Raises `ValueError` for a part that could be none."""
    for part in parts:
        if _DOTS.fullmatch(part):
            raise ValueError(f"{part!r} is no id")
    return "".join("/" + quote(part, safe="") for part in parts)


def given(**members: object) -> dict[str, object]:
    """Return the members that are not None."""
    return {name: value for name, value in members.items() if value is not None}


def new_key(key: str | None) -> str:
    """Return an idempotency key: the one given, or a new one."""
    return uuid4().hex if key is None else key


# --- reading answers ---------------------------------------------------------------------------


def failure(answer: Answer) -> Error:
    """Make an error of an answer that was not the expected one."""
    if 200 <= answer.status < 400:
        kind = answer.headers.get("content-type", "unknown")
        return malformed(answer, f"{answer.status} with the type {kind} was not expected")
    try:
        found = msgspec.json.decode(answer.content, type=dict[str, dict[str, Any]])["error"]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, KeyError):
        found = {}
    return told(answer.status, found, answer.headers)


def told(status: int, body: Mapping[str, Any], headers: Mapping[str, str]) -> Error:
    """Make an error of what a body says in `error`."""
    code, message = body.get("code"), body.get("message")
    return of_status(status)(
        message if isinstance(message, str) else f"The server answered {status}",
        code=code if isinstance(code, str) else None,
        details={name: it for name, it in body.items() if name not in ("code", "message")},
        status=status,
        retry_after=_seconds(headers.get("retry-after")),
        request_id=headers.get("x-request-id"),
    )


def _seconds(text: str | None) -> float | None:
    # The other form that HTTP has, a date, is told by no server of ours.
    return float(text) if text is not None and _SECONDS.fullmatch(text) else None


def malformed(answer: Answer, why: str) -> MalformedResponse:
    """Make the error that an answer is not the contract's."""
    request_id = answer.headers.get("x-request-id")
    return MalformedResponse(f"Malformed: {why}", status=answer.status, request_id=request_id)


def convert(answer: Answer, value: Any, shape: type[T]) -> T:
    """Read a value of an answer. Raises `MalformedResponse`."""
    try:
        return msgspec.convert(value, shape)
    except msgspec.ValidationError as error:
        raise malformed(answer, str(error)) from None


def member(answer: Answer, *names: str) -> Any:
    """Return a member of an answer, by its path. Raises `MalformedResponse`."""
    found: Any = answer.document
    for name in names:
        if not isinstance(found, dict) or name not in found:
            raise malformed(answer, f"there is no {'.'.join(names)}")
        found = found[name]
    return found


def whole(shape: type[T]) -> Callable[[Answer], T]:
    """Read all of an answer."""
    return lambda answer: convert(answer, answer.document, shape)


def one(name: str, shape: type[T]) -> Callable[[Answer], T]:
    """Read one member of an answer."""
    return lambda answer: convert(answer, member(answer, name), shape)


def several(name: str, shape: type[T]) -> Callable[[Answer], tuple[T, ...]]:
    """Read a list that is never paged."""
    return lambda answer: convert(answer, member(answer, name), tuple[shape, ...])  # type: ignore[valid-type]


def nothing(answer: Answer) -> None:
    """Read an answer without a body."""


class _Next(Record, frozen=True):
    next_after: str | None


def page(name: str, shape: type[T]) -> Callable[[Answer], Page[T]]:
    """Read a page of a list."""

    def read(answer: Answer) -> Page[T]:
        end = convert(answer, member(answer, "pagination"), _Next)
        return Page(several(name, shape)(answer), end.next_after)

    return read


class _Older(Record, frozen=True):
    next_before: str | None
    has_older: bool


def older(name: str, shape: type[T]) -> Callable[[Answer], OlderPage[T]]:
    """Read a page behind which there are older ones."""

    def read(answer: Answer) -> OlderPage[T]:
        end = convert(answer, member(answer, "pagination"), _Older)
        if end.has_older and end.next_before is None:
            raise malformed(answer, "there is more, and no cursor to it")
        return OlderPage(several(name, shape)(answer), end.next_before, end.has_older)

    return read
