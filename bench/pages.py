"""Pages of 50 over HTTP: messages and stored reasoning, with much and with little behind them."""

import json
import os

from bench.figures import Figure, median
from bench.histories import many_turns, one_long_turn
from bench.serving import AGENT, V3, Client, folder, record, serving

LENGTHS = [100, 100_000]
ROUNDS = 600


def run() -> list[Figure]:
    """Measure both pages; `STENO_BENCH_MILLION=1` adds a million messages."""
    lengths = [*LENGTHS, 1_000_000] if os.environ.get("STENO_BENCH_MILLION") else LENGTHS
    with folder() as data:
        with record(data) as (database, owner):
            talks = {n: many_turns(database, owner, n // 2) for n in lengths}
            works = {n: one_long_turn(database, owner, n) for n in LENGTHS}
        with serving(data) as server:
            figures = []
            feed, reader = Client(server), Client(server, "member")
            for n, talk in talks.items():
                path = f"{V3}/sessions/{talk.session_id}/conversation?first=50&after={n // 2}"
                figures.append(_page(f"messages, page of 50 in the middle of {n:,}", feed, path))
            for n, work in works.items():
                figures += _reasoning(n, reader, work.workspace_id, work.conversation_id)
            return figures


def _reasoning(n: int, client: Client, workspace: str, conversation: str) -> list[Figure]:
    base = f"{AGENT}/workspaces/{workspace}/conversations/{conversation}/turns"
    turn = json.loads(client.get(base))["turns"][0]
    path = f"{base}/{turn['public_id']}/variants/{turn['active_variant']['public_id']}/reasoning"
    page = json.loads(client.get(f"{path}?limit=50"))
    before = page["pagination"]["next_before"]
    newest = _page(f"reasoning, newest page of 50 of {n:,} calls", client, f"{path}?limit=50")
    older = _page(
        f"reasoning, next page of 50 of {n:,} calls", client, f"{path}?limit=50&before={before}"
    )
    return [newest, older]


def _page(name: str, client: Client, path: str) -> Figure:
    page = json.loads(client.get(path))
    assert len(page["items"]) == 50, len(page["items"])
    return Figure(name, median(lambda: client.get(path), ROUNDS), "ms", "under 0.7 at the median")
