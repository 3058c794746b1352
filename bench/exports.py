"""Exports over HTTP, redacted as a standard session is, and the memory they take."""

import json

from bench.figures import Figure, median
from bench.histories import one_long_turn
from bench.serving import V3, Client, folder, record, serving


def run() -> list[Figure]:
    """Measure the time for 10,000 steps and the growth of memory at 100,000."""
    with folder() as data:
        with record(data) as (database, owner):
            short = one_long_turn(database, owner, 9_999)
            long = one_long_turn(database, owner, 99_999)
        with serving(data) as server:
            client = Client(server)
            path = f"{V3}/sessions/{short.session_id}/trajectory"
            assert len(json.loads(client.get(path))["steps"]) == 10_000
            size = len(client.get(path)) / 1e6
            time = median(lambda: client.get(path), 10)
        with serving(data) as server:
            client = Client(server)
            client.get(f"{V3}/sessions/{short.session_id}/conversation")
            before = server.memory()
            client.get(f"{V3}/sessions/{long.session_id}/trajectory")
            growth = server.memory("VmHWM") - before
    return [
        Figure(f"export of 10,000 steps ({size:.0f} MB), redacted", time, "ms", "under 120"),
        Figure("memory growth while 100,000 steps are exported", growth, "MB", "under 32"),
    ]
