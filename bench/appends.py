"""Durable appends over HTTP: steps of agents that run elsewhere, each fsynced before its answer."""

import threading
import time

from bench.figures import Figure
from bench.serving import V3, Client, Server, folder, serving

SECONDS = 4


def run() -> list[Figure]:
    """Measure one client and eight, each recording a session of its own."""
    with folder() as data, serving(data) as server:
        return [
            Figure("durable appends, 1 client", _rate(server, 1), "/s", "over 1,200"),
            Figure("durable appends, 8 clients", _rate(server, 8), "/s", "over 3,000"),
        ]


def _rate(server: Server, clients: int) -> float:
    counts = [0] * clients
    paths = [_session(server) for _ in range(clients)]
    barrier = threading.Barrier(clients + 1)

    def work(number: int) -> None:
        client = Client(server)
        barrier.wait()
        end = time.perf_counter() + SECONDS
        while time.perf_counter() < end:
            counts[number] += 1
            client.post(paths[number], _step(counts[number]))
        client.close()

    threads = [threading.Thread(target=work, args=[n]) for n in range(clients)]
    for thread in threads:
        thread.start()
    barrier.wait()
    start = time.perf_counter()
    for thread in threads:
        thread.join()
    return sum(counts) / (time.perf_counter() - start)


def _session(server: Server) -> str:
    client = Client(server)
    agent = {"name": "bench", "version": "1"}
    made = client.post(f"{V3}/sessions", {"recorded": True, "agent": agent})
    client.close()
    return f"{V3}/sessions/{made['session_id']}/steps"


def _step(number: int) -> dict[str, object]:
    source = "user" if number == 1 else "agent"
    return {"step_id": number, "source": source, "message": f"Step {number} of the work."}
