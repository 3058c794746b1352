"""History that a fork brought along: a copy of another thread's lines, before its own.

The copies carry the time of the fork, but the ids of their turns are older than the thread
(UUIDv7 begins with the time), and so are the starts of their tasks. The first turn that is not
older is the thread's own.
"""

import re

from stenograph.clock import SECOND, parse_iso
from stenograph.trajectories.importers.codex.lines import Line

_UUID7 = re.compile(r"([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
_NONE = range(0)


def copied(lines: list[Line]) -> tuple[range, str | None]:
    """Return the numbers of the copied lines, and a sentence where that was a guess."""
    first = next((line for line in lines if line.type == "session_meta"), None)
    if first is None or not _is_fork(first, lines):
        return _NONE, None
    after = [line for line in lines if line.number > first.number]
    created = _created(first)
    ages = [(line.number, age) for line in after if (age := _begun(line)) is not None]
    if created is None or not after:
        return _NONE, None
    end = after[-1].number + 1
    if ages:
        own = (n for n, at in ages if at >= created)
        return range(after[0].number, next(own, end)), None
    own = (n.number for n in after if (_written(n) or 0) > created + SECOND)
    found = range(after[0].number, next(own, end))
    return found, "What was copied from another thread is told by the time of writing alone"


def _is_fork(meta: Line, lines: list[Line]) -> bool:
    others = {n.text("id") for n in lines if n.type == "session_meta"} - {meta.text("id"), None}
    return bool(others) or meta.text("forked_from_id") is not None


def _created(meta: Line) -> int | None:
    """Return when a thread was made, in whole milliseconds given as microseconds."""
    own = _time_of(meta.text("id"))
    return own if own is not None else parse_iso(meta.text("timestamp") or "")


def _begun(line: Line) -> int | None:
    """Return when the turn that a line begins was begun; None for lines that begin none."""
    if line.kind not in ("task_started", "turn_started") and line.type != "turn_context":
        return None
    if (at := _time_of(line.turn_id)) is not None:
        return at
    started = line.payload.get("started_at")
    # Whole seconds: a turn of the same second may be either; forks are made by hand or by a call.
    return (started + 1) * SECOND - 1 if type(started) is int else None


def _written(line: Line) -> int | None:
    return None if line.timestamp is None else parse_iso(line.timestamp)


def _time_of(uuid: str | None) -> int | None:
    found = _UUID7.fullmatch((uuid or "").lower())
    return None if found is None else int(found[1] + found[2], 16) * 1_000
