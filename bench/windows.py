"""What the Agent API reads of a conversation, over HTTP, with much and with little behind it."""

import json
import os
from functools import partial

from bench.figures import Figure, median
from bench.histories import many_turns
from bench.serving import AGENT, Client, folder, record, serving

LENGTHS = [100, 100_000]
ROUNDS = 400
#: Of more turns the index takes many minutes, before the first search is answered.
SEARCHED = 100_000
TARGET = "under 1 at the median"


def run() -> list[Figure]:
    """Measure pages of 50 turns; `STENO_BENCH_MILLION=1` adds a million turns."""
    lengths = [*LENGTHS, 1_000_000] if os.environ.get("STENO_BENCH_MILLION") else LENGTHS
    figures = []
    for n in lengths:
        with folder() as data:
            with record(data) as (database, owner):
                talk = many_turns(database, owner, n)
            with serving(data) as server:
                client = Client(server, "member")
                workspace = f"{AGENT}/workspaces/{talk.workspace_id}"
                middle = n // 2
                base = f"{workspace}/conversations/{talk.conversation_id}"
                places = {
                    "turns, 50 in the middle": f"{base}/turns?limit=50&after_position={middle}",
                    "turns, the newest 50": f"{base}/turns?limit=50&before_position={n}",
                    "history, 50 in the middle": f"{base}/history?limit=50&before_position={middle}",  # noqa: E501
                    "conversation": base,
                    "conversations": f"{workspace}/conversations?limit=50",
                }
                if n <= SEARCHED:
                    places |= {
                        "search, 20 of a word that all answers hold": (
                            f"{workspace}/conversation_search?query=clamped"
                        ),
                        "search, a word that one question holds": (
                            f"{workspace}/conversation_search?query={middle}"
                        ),
                    }
                for name, path in places.items():
                    json.loads(client.get(path))  # the index catches up with the record first
                    took = median(partial(client.get, path), ROUNDS)
                    target = "" if name.startswith("search") else TARGET
                    figures.append(Figure(f"{name}, of {n:,} turns", took, "ms", target))
    return figures
