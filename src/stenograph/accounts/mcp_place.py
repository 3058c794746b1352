"""Where an MCP server is and what it is given: read, checked, and changed in parts."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias
from urllib.parse import parse_qsl, urlsplit

import msgspec

from stenograph.errors import InvalidInputError

Transport: TypeAlias = Literal["streamable_http", "stdio"]

#: Headers, or variables, of one server; the longest value in characters.
MOST_VALUES = 50
LONGEST_VALUE = 16_384
LONGEST_URL = 2_048
MOST_ARGUMENTS = 100
#: From how many characters on a value is masked wherever it is met: `LOG_LEVEL=info` is no secret,
#: and would spoil what is read; one whose name says that it is one, from fewer on.
MASKED_FROM = 8
SECRET_FROM = 4

#: A field's name (RFC 9110 section 5.1), and a value without control characters.
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}")
_HEADER_VALUE = re.compile(r"[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_SECRET = re.compile(r"auth|cookie|credential|key|pass|pwd|secret|session|token", re.IGNORECASE)
_URL = re.compile(r"[\x21-\x7e]+")
#: What HTTP's own machinery says.
_RESERVED = frozenset({"host", "content-length", "transfer-encoding", "connection", "upgrade"})


class Private(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is sealed: values by name, and the URL's query as it was given."""

    headers: dict[str, str] = {}
    env: dict[str, str] = {}
    query: str = ""

    def __repr__(self) -> str:
        return "Private(…)"

    @property
    def query_names(self) -> list[str]:
        """The names of the query's parameters."""
        return list(dict(parse_qsl(self.query, keep_blank_values=True)))

    @property
    def values(self) -> tuple[str, ...]:
        """What must be seen nowhere; of `Bearer …` and its like also what follows the word."""
        named = [*self.headers.items(), *self.env.items(), *parse_qsl(self.query)]
        named += [(name, value.split()[-1]) for name, value in self.headers.items()]
        found = [
            value
            for name, value in named
            if len(value) >= (SECRET_FROM if _SECRET.search(name) else MASKED_FROM)
        ]
        return tuple(dict.fromkeys(found))


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a server is to be. None: as it is, or not at all. Of values by name, None takes one
    away."""

    name: str | None = None
    url: str | None = None
    headers: Mapping[str, str | None] = field(default_factory=dict, repr=False)
    command: str | None = None
    args: Sequence[str] | None = None
    env: Mapping[str, str | None] = field(default_factory=dict, repr=False)
    enabled: bool | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """`url` has no query; `command` is a program and its arguments."""

    url: str | None = None
    command: tuple[str, ...] = ()
    private: Private = field(default_factory=Private)


def change(transport: Transport, known: Place, wanted: Wanted) -> Place:
    """Return what is to be, from what is and what is wanted.

    Raises `InvalidInputError` (`invalid_mcp_server`).
    """
    url, command, private = known.url, known.command, known.private
    if transport == "streamable_http":
        if wanted.command is not None or wanted.args is not None or wanted.env:
            raise invalid("`command`, `args` and `env` are of a `stdio` server")
        query = private.query
        if wanted.url is not None:
            bare, query = _split(wanted.url)
            if bare != url:
                url, private = bare, Private()
        if url is None:
            raise invalid("A `streamable_http` server needs a `url`")
        headers = _merged(private.headers, wanted.headers, _check_header, str.lower)
        return Place(url, (), Private(headers=headers, query=query))
    if wanted.url is not None or wanted.headers:
        raise invalid("`url` and `headers` are of a `streamable_http` server")
    program = command[0] if wanted.command is None and command else wanted.command
    if not program:
        raise invalid("A `stdio` server needs a `command`")
    made = (program, *(command[1:] if wanted.args is None else wanted.args))
    if len(made) > MOST_ARGUMENTS or any("\0" in word or not _encodes(word) for word in made):
        raise invalid(f"A command has up to {MOST_ARGUMENTS} words, of text without NUL")
    env = _merged(private.env if made == command else {}, wanted.env, _check_variable, str)
    return Place(None, made, Private(env=env))


def _split(url: str) -> tuple[str, str]:
    """Return a URL without its query, and the query."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if not usable or len(url) > LONGEST_URL or _URL.fullmatch(url) is None:
        raise invalid("A `url` is http:// or https://, printable ASCII, up to 2,048 characters")
    if "@" in parts.netloc or parts.fragment:
        raise invalid("A `url` holds no password and no fragment: send keys in `headers`")
    return parts._replace(query="").geturl(), parts.query


def _merged(
    known: Mapping[str, str],
    wanted: Mapping[str, str | None],
    check: Callable[[str, str], None],
    fold: Callable[[str], str],
) -> dict[str, str]:
    """Return values by name (names that `fold` makes equal are one) after a change (RFC 7396)."""
    merged = dict(known)
    for name, value in wanted.items():
        for same in [it for it in merged if fold(it) == fold(name)]:
            del merged[same]
        if value is not None:
            check(name, value)
            merged[name] = value
    if len(merged) > MOST_VALUES or any(len(value) > LONGEST_VALUE for value in merged.values()):
        raise invalid(f"There are up to {MOST_VALUES} values, of {LONGEST_VALUE} characters each")
    return merged


def _check_header(name: str, value: str) -> None:
    if _HEADER.fullmatch(name) is None or name.lower() in _RESERVED:
        raise invalid("A header's name is a token of HTTP, and none that HTTP itself sets")
    if _HEADER_VALUE.fullmatch(value) is None:
        raise invalid("A header's value is printable ASCII, without spaces around it")


def _check_variable(name: str, value: str) -> None:
    if _VARIABLE.fullmatch(name) is None:
        raise invalid("A variable's name is letters, digits and '_', and starts with no digit")
    if "\0" in value or not _encodes(value):
        raise invalid("A variable's value is text without NUL")


def _encodes(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def invalid(why: str) -> InvalidInputError:
    """The error for what no server can be."""
    return InvalidInputError(why, code="invalid_mcp_server")
