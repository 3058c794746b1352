"""Strict JSON, as logs, documents and request bodies bring it (RFC 8259).

Everything read is UTF-8; a byte order mark at the start is passed over. `NaN` and `Infinity` are
refused, integers of any size stay integers, the last of two equal keys wins. Lone surrogates
(`"\\ud800"`), which are legal JSON and no legal text, become U+FFFD and are counted.
"""

import gc
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Generic, NoReturn, TypeVar

import msgspec

from stenograph.errors import InvalidInputError
from stenograph.trajectories.atif.format import Json

#: Arrays and objects inside one another. Far above what anything writes, far below what would
#: exhaust the stack of whoever walks the value.
MAX_NESTING = 200

#: Bytes from which pausing the collector pays.
_LARGE = 1_000_000

_BOM = b"\xef\xbb\xbf"
_REPLACEMENT = b"\xef\xbf\xbd"

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class ReadJson(Generic[Value]):
    """A value, and how many characters of it had to be replaced by U+FFFD."""

    value: Value
    replaced_characters: int = 0


def read_json(data: bytes, *, replace_invalid: bool = False) -> ReadJson[Json]:
    """Read one JSON value.

    `replace_invalid`: bytes that are no UTF-8 become U+FFFD and are counted (logs of programs that
    were cut off mid-character); otherwise they are an error.
    Raises InvalidInputError, with `line`, `column` and `offset` where there is a place to name.
    """
    if is_deep(data):
        raise _too_deep()
    try:
        return read_as(data, _decode, replace_invalid=replace_invalid)
    except msgspec.ValidationError as error:
        raise InvalidInputError(f"This JSON cannot be read: {error}") from None


def read_as(
    data: bytes, decode: Callable[[bytes], Value], *, replace_invalid: bool = False
) -> ReadJson[Value]:
    """Read one JSON value with a msgspec decoder of its own, which may know its type.

    As `read_json`, except that nesting is bounded by the decoder alone, and that
    `msgspec.ValidationError` is left to the caller: it says that the value has another type.
    """
    data = data.removeprefix(_BOM)
    try:
        with collector_paused(len(data)):
            return ReadJson(decode(data))
    except RecursionError:
        raise _too_deep() from None
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError as error:
        mended, replaced = _mend(data, replace_invalid)
        if not replaced:
            _refuse(data, error)
        return ReadJson(read_as(mended, decode).value, replaced)


def read_lines(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Return the lines of a JSON Lines file with their numbers from 1, without blank ones.

    Only `\\n` ends a line (`\\r\\n` too): U+2028 and its like are text. The last line may lack its
    end; whether it is whole is for the reader of the line to see.
    """
    start = len(_BOM) if data.startswith(_BOM) else 0
    number = 0
    while start < len(data):
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end
        number += 1
        line = data[start:end].removesuffix(b"\r")
        if line.strip():
            yield number, line
        start = end + 1


_decode = msgspec.json.Decoder().decode


@contextmanager
def collector_paused(size: int) -> Iterator[None]:
    """Keep the garbage collector from walking a large value again and again while it grows.

    `size` in bytes of JSON. It finds nothing in it, and takes longer than the decoding itself.
    """
    paused = size > _LARGE and gc.isenabled()
    if paused:
        gc.disable()
    try:
        yield
    finally:
        if paused:
            gc.enable()


_NOT_STRUCTURE = bytes(byte for byte in range(256) if byte not in b'"[]{}')
_STEP = bytes({91: 1, 123: 1, 93: 255, 125: 255}.get(byte, 0) for byte in range(256))


def is_deep(data: bytes, levels: int = MAX_NESTING) -> bool:
    """Tell whether arrays and objects lie more than so many levels inside one another.

    Linear, and in C but for the last step: escapes go, then all but quotes and brackets, then what
    is between quotes.
    """
    if data.count(b"[") + data.count(b"{") <= levels:
        return False
    unescaped = data.replace(b"\\\\", b"").replace(b'\\"', b"") if b"\\" in data else data
    outside = b"".join(unescaped.translate(None, _NOT_STRUCTURE).split(b'"')[::2])
    return max(accumulate(memoryview(outside.translate(_STEP)).cast("b")), default=0) > levels


#: A surrogate pair, a lone surrogate (the group), or any other escape.
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    rb"|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def _mend(data: bytes, replace_invalid: bool) -> tuple[bytes, int]:
    replaced = 0
    if replace_invalid:
        text = data.decode("utf-8", "replace")
        replaced = text.count("\ufffd") - data.count(_REPLACEMENT)
        data = text.encode() if replaced else data
    if _SURROGATE.search(data) is None:
        return data, replaced

    def mended(escape: re.Match[bytes]) -> bytes:
        nonlocal replaced
        if escape[1] is None:
            return escape[0]
        replaced += 1
        return rb"\ufffd"

    return _ESCAPE.sub(mended, data), replaced


def _too_deep() -> InvalidInputError:
    return InvalidInputError(f"This JSON is nested more than {MAX_NESTING} levels deep")


def _refuse(data: bytes, error: msgspec.DecodeError) -> NoReturn:
    """Say where and why this is no JSON. The decoder names no line; the slower one does."""
    if not data.strip():
        raise InvalidInputError("There is no JSON here: it is empty", line=1, column=1, offset=0)
    try:
        json.loads(data.decode(), parse_constant=_no_number)
    except UnicodeDecodeError as fault:
        line = data.count(b"\n", 0, fault.start) + 1
        column = fault.start - data.rfind(b"\n", 0, fault.start)
        message = f"This is not UTF-8: {fault.reason}"
        place: dict[str, Any] = {"line": line, "column": column, "offset": fault.start}
    except json.JSONDecodeError as fault:
        ended = fault.pos >= len(fault.doc.rstrip()) or fault.msg.startswith("Unterminated")
        message = "This JSON ends too early" if ended else f"This is no JSON: {fault.msg}"
        place = {"line": fault.lineno, "column": fault.colno, "offset": fault.pos}
    except ValueError as fault:
        raise InvalidInputError(f"This is no JSON: {fault}") from None
    else:
        raise InvalidInputError(f"This JSON cannot be read: {error}") from None
    where = f"line {place['line']}, column {place['column']}"
    raise InvalidInputError(f"{message} ({where})", **place) from None


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")
