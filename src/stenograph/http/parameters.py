"""Query parameters: declared once, read strictly, documented from the same declaration.

A handler reads them after it has found the resource, for that is the order of both contracts:

    FIRST = Integer("first", default=50, low=1, high=200, about="How many items a page holds.")
    ...
    first = FIRST.read(ctx.query)

What cannot be read is an `InvalidInputError`; the Agent API says `parameter_invalid` with the
message `Invalid parameter: first`, the v3 family `invalid_first`.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from stenograph.errors import InvalidInputError

T = TypeVar("T")
#: A literal, or None for a parameter that may be absent.
Word = TypeVar("Word", bound=str | None)
_STRICT = re.compile(r"-?[0-9]+")
#: Surrounding spaces, a sign and underscores between digits are allowed (agent-api.md 1.5).
_LENIENT = re.compile(r"\s*[+-]?[0-9]+(?:_[0-9]+)*\s*", re.ASCII)
#: Longer numbers are beyond every range, and slow to read.
_DIGITS = 40
MAX_INTEGER = 2**63 - 1


class Parameter(Protocol):
    """What the documentation needs to know of a parameter."""

    @property
    def name(self) -> str: ...
    @property
    def about(self) -> str: ...
    @property
    def required(self) -> bool: ...
    @property
    def schema(self) -> dict[str, Any]: ...


def invalid(name: str) -> InvalidInputError:
    """The error for a parameter that is there and bad."""
    return InvalidInputError(f"Invalid parameter: {name}", parameter=name)


def missing(name: str) -> InvalidInputError:
    """The error for a parameter that must be there."""
    return InvalidInputError(f"Missing parameter: {name}", code="parameter_missing", parameter=name)


def parse_integer(text: str, *, lenient: bool = False) -> int | None:
    """Read a whole number in base 10; None if it is none."""
    pattern = _LENIENT if lenient else _STRICT
    if len(text) > _DIGITS or pattern.fullmatch(text) is None:
        return None
    return int(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Integer:
    """A whole number from `low` to `high`; above `high` it is refused, or clamped if `clamp`.

    `default` None: the parameter may be absent, and reads as None. `lenient`: the Agent API's
    rules for numbers.
    """

    name: str
    about: str = ""
    default: int | None = None
    low: int = 0
    high: int = MAX_INTEGER
    clamp: bool = False
    lenient: bool = False
    required: bool = False

    def read(self, query: Mapping[str, str]) -> int:
        """Return the number, or the default, which must not be None."""
        number = self.find(query)
        if number is None:
            raise missing(self.name)
        return number

    def find(self, query: Mapping[str, str]) -> int | None:
        """Return the number, or the default."""
        text = query.get(self.name)
        if text is None:
            return self.default
        number = parse_integer(text, lenient=self.lenient)
        if number is not None and self.clamp:
            number = min(number, self.high)
        if number is None or not self.low <= number <= self.high:
            raise invalid(self.name)
        return number

    @property
    def schema(self) -> dict[str, Any]:
        found: dict[str, Any] = {"type": "integer", "minimum": self.low}
        if not self.clamp and self.high < MAX_INTEGER:
            found["maximum"] = self.high
        if self.default is not None:
            found["default"] = self.default
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice(Generic[Word]):
    """One of a few words; absent: `default`."""

    name: str
    options: Sequence[Word]
    default: Word
    about: str = ""
    required: bool = False

    def read(self, query: Mapping[str, str]) -> Word:
        text = query.get(self.name)
        if text is None:
            return self.default
        for option in self.options:
            if option == text:
                return option
        raise invalid(self.name)

    @property
    def schema(self) -> dict[str, Any]:
        found: dict[str, Any] = {"type": "string", "enum": list(self.options)}
        if self.default is not None:
            found["default"] = self.default
        return found


_FLAGS = {"1": True, "true": True, "0": False, "false": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """`1` or `true`, `0` or `false`; absent: False."""

    name: str
    about: str = ""
    required: bool = False

    def read(self, query: Mapping[str, str]) -> bool:
        text = query.get(self.name)
        if text is None:
            return False
        if text not in _FLAGS:
            raise invalid(self.name)
        return _FLAGS[text]

    @property
    def schema(self) -> dict[str, Any]:
        return {"type": "string", "enum": list(_FLAGS), "default": "0"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """Any text of at most `max_bytes` in UTF-8; absent: None, or an error if `required`."""

    name: str
    about: str = ""
    max_bytes: int = 4096
    required: bool = False

    def read(self, query: Mapping[str, str]) -> str | None:
        text = query.get(self.name)
        if text is None:
            if self.required:
                raise missing(self.name)
            return None
        if len(text.encode()) > self.max_bytes:
            raise invalid(self.name)
        return text

    @property
    def schema(self) -> dict[str, Any]:
        return {"type": "string"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor(Generic[T]):
    """A cursor that `decode` reads; `decode` returns None for what it never issued.

    Absent, or blank where `blank` allows it: None. `code` is the v3 code, `invalid_cursor`.
    """

    name: str
    decode: Callable[[str], T | None]
    about: str = ""
    code: str | None = None
    blank: bool = False
    required: bool = False

    def read(self, query: Mapping[str, str]) -> T | None:
        text = query.get(self.name)
        if text is None or (self.blank and not text.strip()):
            return None
        found = self.decode(text)
        if found is None:
            if self.code is None:
                raise invalid(self.name)
            raise InvalidInputError(f"Invalid parameter: {self.name}", code=self.code)
        return found

    @property
    def schema(self) -> dict[str, Any]:
        return {"type": "string"}
