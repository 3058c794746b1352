"""The nightly prune of a server (agent-api.md 6): each organization by its own policy.

Several servers on one database may all do it; a candidate goes once, whoever is first.
"""

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import structlog

from stenograph.errors import InvalidInputError
from stenograph.events import expiry
from stenograph.retention.prune import prune
from stenograph.storage.database import Database, Tx

_log = structlog.get_logger()


def read_time(text: str) -> tuple[int, int] | None:
    """Read `HH:MM`; None for the empty text, which means never. Raises `InvalidInputError`."""
    if not text:
        return None
    found = re.fullmatch(r"([01]\d|2[0-3]):([0-5]\d)", text, re.ASCII)
    if found is None:
        raise InvalidInputError(
            f"The time to prune at must be HH:MM in UTC, or empty, and not {text!r}",
            code="invalid_setting",
        )
    return int(found[1]), int(found[2])


def seconds_until(time: tuple[int, int], moment: datetime) -> float:
    """Return how long it takes from `moment` (in UTC) to the next `time` of a day, above 0."""
    then = moment.replace(hour=time[0], minute=time[1], second=0, microsecond=0)
    if then <= moment:
        then += timedelta(days=1)
    return (then - moment).total_seconds()


@contextmanager
def pruning(database: Database, at: str, *also: Callable[[Tx], object]) -> Iterator[None]:
    """Prune every night at `at` (`HH:MM` in UTC; empty: never), as long as this is entered.

    `also`: what else is to be swept then, each in a transaction of its own.
    """
    time = read_time(at)
    stop = threading.Event()

    def work(time: tuple[int, int]) -> None:
        while not stop.wait(seconds_until(time, datetime.now(UTC))):
            once(database, stop, *also)

    thread = threading.Thread(target=work, args=[time], name="nightly-prune", daemon=True)
    if time is not None:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        if time is not None:
            thread.join()


class _Stopped(Exception):
    pass


def once(database: Database, stop: threading.Event, *also: Callable[[Tx], object]) -> None:
    """Prune and say what went; a failure is said too, and the next night tries again."""

    def go_on(_: int) -> None:
        if stop.is_set():
            raise _Stopped

    try:
        done = prune(database, rewrite=None, progress=go_on)
        for sweep in also:
            database.write(sweep)
        expired = expiry.sweep(database, go_on)
    except _Stopped:
        return
    except Exception:
        _log.exception("prune_failed")
        return
    if expired:
        _log.info("events_expired", events=expired)
    if done.reaped:
        _log.info("reaped", conversations=done.reaped, erased=done.erased)
    for report in done.reports:
        if report.days is not None:
            _log.info(
                "pruned",
                organization=report.organization,
                older_than_days=report.days,
                runs=report.runs,
                direct_replies=report.direct_replies,
                still_in_use=report.skipped,
                erased=done.erased,
            )
