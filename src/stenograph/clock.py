"""Time: stored as whole microseconds since 1970-01-01T00:00:00Z, written as RFC 3339 in UTC."""

import time
from datetime import UTC, datetime, timedelta
from functools import lru_cache

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECOND = 1_000_000
MINUTE = 60 * SECOND
DAY = 86_400 * SECOND
_FIRST = (datetime.min.replace(tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)
_LAST = (datetime.max.replace(tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)


def now() -> int:
    """Return the present moment in microseconds since the epoch."""
    return time.time_ns() // 1_000


def iso(at: int) -> str:
    """Write a moment with as many fraction digits as it has: `2026-12-01T09:00:05.25Z`."""
    minute, within = divmod(at, MINUTE)
    second, fraction = divmod(within, SECOND)
    text = f"{_minute(minute)}{second:02}"
    return f"{text}.{fraction:06}".rstrip("0") + "Z" if fraction else text + "Z"


@lru_cache(maxsize=1024)
def _minute(number: int) -> str:
    """Write a minute since the epoch as `2026-12-01T09:00:`; moments on one page share few."""
    return (EPOCH + timedelta(minutes=number)).isoformat()[:17]


def iso_seconds(at: int) -> str:
    """Write a moment in whole seconds, as the Agent API does: `2026-12-01T09:00:05Z`."""
    return iso(at - at % SECOND)


def parse_iso(text: str) -> int | None:
    """Read an RFC 3339 or ISO 8601 moment; a time without zone is UTC. None if it is not one.

    None also for the few hours at both ends of the calendar that no UTC date of the years 1 to
    9999 names. The accepted forms are those of `datetime.fromisoformat`, as ATIF requires
    (RFC 0001).
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    at = (moment - EPOCH) // timedelta(microseconds=1)
    return at if _FIRST <= at <= _LAST else None
