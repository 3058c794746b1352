"""The engine: what it adds to each step of 50 sessions at once, beside the model's own time."""

import asyncio
import statistics
import time
from pathlib import Path
from typing import Any

from bench.figures import Figure
from bench.serving import folder, record
from stenograph.accounts.access import Caller
from stenograph.engine import start, store
from stenograph.engine.desk import Desk
from stenograph.engine.engine import Engine, Place
from stenograph.engine.models.credentials import Credentials
from stenograph.engine.toolbox import ToolContext, ToolOutcome, ToolSpec
from stenograph.engine.work import Work
from stenograph.sessions.creation import NewSession
from stenograph.storage.database import Database

SESSIONS = 50
#: Three calls of the model, two of them with a call of a tool, which a model speaks in some 90 ms.
SCENE = """```dev-scene
[[round]]
say = "First I look at what there is, and then I read it."
call = [{ tool = "look", arguments = {} }]
pause_ms = %(pause)d
[[round]]
say = "Now I read the first of them, as it was said to me."
call = [{ tool = "look", arguments = {} }]
pause_ms = %(pause)d
[[round]]
say = "Two steps were done, and this is what they gave me."
pause_ms = %(pause)d
```"""
ROUNDS = 3


class _Look:
    """A tool that answers at once."""

    async def specs(self, work: Work) -> tuple[ToolSpec, ...]:
        return (ToolSpec("look", "Looks."),)

    async def call(self, name: str, arguments: dict[str, Any], context: ToolContext) -> ToolOutcome:
        return ToolOutcome("completed", "nothing new")


def run() -> list[Figure]:
    """Measure a round with its call: from its beginning to the next, without the model's time."""
    figures = []
    for pause, how, target in ((20, "a model of 90 ms", "under 20"), (0, "a model of 0 ms", "")):
        with folder() as data, record(data) as (database, owner):
            overhead, each = asyncio.run(_drive(database, owner, data, pause))
        name = f"{SESSIONS} sessions at once, {how}:"
        figures.append(Figure(f"{name} added to a step", overhead, "ms", target))
        if not pause:
            figures.append(Figure(f"{name} one step of all each", each, "ms"))
    return figures


async def _drive(database: Database, owner: Caller, data: Path, pause: int) -> tuple[float, float]:
    desk = Desk(database, lambda organization, model: Credentials(), _Look())
    engine = Engine(desk, Place(f"sqlite:///{data / 'engine.db'}"))
    await engine.start()
    await _all(database, owner, 1, 0)
    begun = time.perf_counter()
    await _all(database, owner, SESSIONS, pause)
    took = time.perf_counter() - begun
    await engine.stop()
    with database.read() as tx:
        rows = tx.rows(
            "SELECT r.completed_at - r.created_at - sum(i.terminal_at - i.started_at) FROM runs r"
            " JOIN tasks t ON t.run_id = r.id JOIN invocations i ON i.task_id = t.id"
            f" GROUP BY r.id ORDER BY r.id DESC LIMIT {SESSIONS}"
        )
    return statistics.median(row[0] / 1000 / ROUNDS for row in rows), took * 1000 / (
        SESSIONS * ROUNDS
    )


async def _all(database: Database, owner: Caller, sessions: int, pause: int) -> None:
    """Begin sessions one after the other, as fast as their model speaks, and await their ends."""
    new, prompt = NewSession(model="dev/small"), SCENE % {"pause": pause}
    for _ in range(sessions):
        database.write(lambda tx: start.open_session(tx, owner, new, prompt))
        await asyncio.sleep(pause / 1000)
    while True:
        with database.read() as tx:
            if not store.unsettled(tx):
                return
        await asyncio.sleep(0.005)
