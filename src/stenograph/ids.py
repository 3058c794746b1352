"""Public identifiers: UUIDv7 (RFC 9562 section 5.7), so that they sort by the time of making."""

import os
import re
import time

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def new_id() -> str:
    """Return a fresh UUIDv7 as 36 lower-case characters (under the 40 that exports mask)."""
    value = (time.time_ns() // 1_000_000) << 80 | int.from_bytes(os.urandom(10))
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def first_id(at: int) -> str:
    """Return the smallest UUIDv7 of a moment, in microseconds: no earlier one sorts behind it."""
    text = f"{at // 1_000:012x}"
    return f"{text[:8]}-{text[8:]}-7000-8000-000000000000"


def is_uuid(text: str) -> bool:
    """Tell whether `text` is a UUID in its canonical lower-case form."""
    return _UUID.fullmatch(text) is not None
