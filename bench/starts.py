"""How soon a server answers, and what it holds in memory."""

import statistics
import time
from pathlib import Path

from bench.figures import Figure
from bench.serving import V3, Client, Server, folder


def run() -> list[Figure]:
    """Measure the first start of all, then starts of a server that has a record."""
    with folder() as data:
        first, _ = _start(data)
        later = [_start(data) for _ in range(5)]
    return [
        Figure("first start to first answer, schema and keys made", first, "s", "under 1.5"),
        Figure("start to first answer", statistics.median(s for s, _ in later), "s", "under 1.5"),
        Figure(
            "resident memory after it", statistics.median(m for _, m in later), "MB", "under 150"
        ),
    ]


def _start(data: Path) -> tuple[float, float]:
    start = time.perf_counter()
    server = Server(data)
    try:
        client = Client(server)
        client.get(f"{V3}/sessions")
        elapsed = time.perf_counter() - start
        client.close()
        return elapsed, server.memory()
    finally:
        server.stop()
