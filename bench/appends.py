"""Durable appends over HTTP: steps of agents that run elsewhere, each fsynced before its answer."""

import multiprocessing
import time
from multiprocessing.synchronize import Barrier
from typing import Any

from bench.figures import Figure
from bench.serving import V3, Client, Server, folder, serving

SECONDS = 4
ROUNDS = 3
#: A step's message: 1,000 characters.
TEXT = ("The agent reads src/app/models.py and finds that an import is missing. " * 20)[:1_000]


def run() -> list[Figure]:
    """Measure one client and eight, each a process that records a session of its own."""
    with folder() as data, serving(data) as server:
        alone, together = (max(_rate(server, n) for _ in range(ROUNDS)) for n in (1, 8))
    return [
        Figure("durable appends, 1 client", alone, "/s", "over 1,200"),
        Figure("durable appends, 8 clients", together, "/s", "over 3,000"),
    ]


def _rate(server: Server, clients: int) -> float:
    context = multiprocessing.get_context("spawn")
    barrier, counts = context.Barrier(clients), context.SimpleQueue()
    processes = [
        context.Process(
            target=_record,
            args=(server.url, server.keys["api"], _session(server), barrier, counts),
        )
        for _ in range(clients)
    ]
    for process in processes:
        process.start()
    total = sum(counts.get() for _ in processes)
    for process in processes:
        process.join()
    return total / SECONDS


def _record(url: str, key: str, path: str, barrier: Barrier, counts: Any) -> None:
    client, number = Client.to(url, key), 0
    barrier.wait()
    end = time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        number += 1
        source = "user" if number == 1 else "agent"
        client.post(path, {"step_id": number, "source": source, "message": TEXT})
    counts.put(number)
    client.close()


def _session(server: Server) -> str:
    client = Client(server)
    agent = {"name": "bench", "version": "1"}
    made = client.post(f"{V3}/sessions", {"recorded": True, "agent": agent})
    client.close()
    return f"{V3}/sessions/{made['session_id']}/steps"
