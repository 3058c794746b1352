"""Pruning: how fast details go, and what erasing their bytes costs."""

import time

from bench.figures import Figure
from bench.histories import many_turns, one_long_turn
from bench.serving import folder, record
from stenograph.retention.integrity import check
from stenograph.retention.prune import prune


def run() -> list[Figure]:
    """Measure 5,000 short runs, one of 20,000 calls, the erasing, and the check of what is left."""
    with folder() as data, record(data) as (database, owner):
        many_turns(database, owner, 5_000)
        start = time.perf_counter()
        assert prune(database, 0, rewrite=False).reports[0].runs == 5_000
        short = time.perf_counter() - start
        one_long_turn(database, owner, 20_000)
        many_turns(database, owner, 20_000)
        size = (data / "steno.db").stat().st_size / 1e9
        start = time.perf_counter()
        assert check(database) == []
        checked = time.perf_counter() - start
        start = time.perf_counter()
        assert database.scrub(["tasks"])
        erased = time.perf_counter() - start
    return [
        Figure("runs pruned, each in its own transaction", 5_000 / short, "/s"),
        Figure("erasing what was deleted (VACUUM)", erased / size, "s/GB"),
        Figure(f"check of a record of {size * 1e3:.0f} MB", checked, "s"),
    ]
