"""Cursors: opaque to clients, strict to read. What was never issued reads as None.

Forms (agent-api.md 1.5): keyset, task (`altr:<row id>`), event (`cvei:<sequence>`); v3 lists use
positions, plain numbers in text. All but positions are unpadded base64url (RFC 4648 section 5),
and only the spelling that was issued is taken back.
"""

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import msgspec

from stenograph.http.parameters import MAX_INTEGER

Direction: TypeAlias = Literal["asc", "desc"]
_NUMBER = re.compile(r"0|[1-9][0-9]{0,18}")
_LONGEST = 1024


def encode(data: bytes) -> str:
    """Write bytes as unpadded base64url."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode(text: str) -> bytes | None:
    """Read what `encode` wrote; None for any other text."""
    if len(text) > _LONGEST or not text.isascii():
        return None
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None
    return data if encode(data) == text else None


def position(text: str) -> int | None:
    """Read a whole number from 0 to 2^63-1, written without sign or leading zeros."""
    if _NUMBER.fullmatch(text) is None or int(text) > MAX_INTEGER:
        return None
    return int(text)


def task_cursor(row_id: int) -> str:
    """The cursor before a task: older ones have smaller row ids."""
    return encode(b"altr:%d" % row_id)


def parse_task_cursor(text: str) -> int | None:
    """Return the row id; 0 is the start."""
    return _tagged(text, b"altr:")


def event_cursor(sequence: int) -> str:
    """The cursor after an event."""
    return encode(b"cvei:%d" % sequence)


def parse_event_cursor(text: str) -> int | None:
    """Return the sequence after which to read."""
    return _tagged(text, b"cvei:")


def _tagged(text: str, tag: bytes) -> int | None:
    data = decode(text)
    if data is None or not data.startswith(tag):
        return None
    return position(data.removeprefix(tag).decode("latin-1"))


def keyset_cursor(direction: Direction, **columns: int | str | None) -> str:
    """The cursor after a row, by the columns that order the list."""
    return encode(msgspec.json.encode({**columns, "dir": direction}))


def parse_keyset_cursor(
    text: str, direction: Direction, columns: Mapping[str, type]
) -> dict[str, Any] | None:
    """Return the columns of a cursor of this list and direction; `columns` says their types."""
    data = decode(text)
    try:
        found = msgspec.json.decode(data or b"", type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if found.pop("dir", None) != direction or found.keys() != columns.keys():
        return None
    for name, kind in columns.items():
        value = found[name]
        if type(value) is not kind:
            return None
        if isinstance(value, int) and not -MAX_INTEGER <= value <= MAX_INTEGER:
            return None
    return found
