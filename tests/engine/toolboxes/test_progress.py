"""How far calls are that the server makes: told while they are made to who watches, never kept."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from mcp.server.mcpserver import Context

from engine.driving import Driven, scene
from engine.toolboxes.sample_server import on_loopback, sample
from engine.toolboxes.test_script import running
from people import make_org
from stenograph.accounts import mcp_server
from stenograph.accounts.mcp_server import Wanted
from stenograph.engine.engine import Place
from stenograph.engine.toolbox import Together, ToolContext, ToolOutcome, ToolSpec
from stenograph.engine.toolboxes import progress
from stenograph.engine.toolboxes.mcp import McpTools
from stenograph.engine.toolboxes.script import Script
from stenograph.engine.work import Work
from stenograph.events.live import Frame, Subscription
from stenograph.sessions import session
from stenograph.storage.database import Database
from stenograph.storage.sealing import Sealer

SECRET = "hunter2-of-the-session"
TOKEN = "hunter2-of-the-server"
STEPS = scene('[[round]]\ncall = [{ tool = "mcp__x__steps" }]\n[[round]]\nsay = "{results}"\n')


@dataclass
class Gate:
    """A tool that answers once it is let."""

    open: asyncio.Event = field(default_factory=asyncio.Event)

    async def specs(self, work: Work) -> tuple[ToolSpec, ...]:
        return (ToolSpec("gate", "Waits."),)

    async def call(self, name: str, arguments: dict[str, Any], context: ToolContext) -> ToolOutcome:
        await self.open.wait()
        return ToolOutcome("completed", "open")


@pytest.fixture
def driven(sqlite_database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Driven:
    monkeypatch.setattr(progress, "EVERY", 0.01)
    owner = make_org(sqlite_database).owner
    place = Place(f"sqlite:///{tmp_path / 'engine.db'}")
    return Driven(sqlite_database, owner, place, secrets=lambda tx, conversation_id: (SECRET,))


async def first(driven: Driven, session_id: str) -> Frame:
    """The first frame that a watcher of a session hears."""
    row = driven.read(lambda tx: session.find(tx, driven.owner, session_id)).id
    with Subscription(row, {"progress"}) as ear:
        while not isinstance(item := await ear.next(30), Frame):
            assert item is not None
        return item


def test_what_a_script_prints_is_told_before_it_ends(driven: Driven) -> None:
    gate = Gate()
    driven.tools = Together(gate, Script())  # type: ignore[assignment]
    session_id = driven.open(running(f"print('so far {SECRET}.')\ngate()\nprint('over')"))

    async def act() -> None:
        frame = await first(driven, session_id)
        assert driven.rows("SELECT 1 FROM task_details WHERE output IS NOT NULL") == []
        gate.open.set()
        await driven.settled()
        assert (frame.type, frame.data["name"]) == ("tool_output", "script")
        assert frame.data["text"] == "so far [redacted-secret].\n"
        assert driven.rows("SELECT name FROM tasks WHERE key = :key", key=frame.data["task_key"])

    driven.during(act)
    (output,) = driven.rows("SELECT output FROM task_details WHERE output LIKE '%over'")
    assert output == (f"so far {SECRET}.\nover",)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ((1, 4, f"by {TOKEN} and {SECRET}"),
         {"progress": 1.0, "total": 4.0, "message": "by [redacted-secret] and [redacted-secret]"}),
        ((2, float("inf"), "x" * 5_000), {"progress": 2.0}),
    ],
)  # fmt: skip
def test_what_a_server_says_of_its_steps_is_told(
    driven: Driven, sealer: Sealer, said: Any, told: dict[str, Any]
) -> None:
    servers = McpTools(driven.database, sealer)
    driven.tools = servers  # type: ignore[assignment]

    async def act() -> None:
        done, server = asyncio.Event(), sample()

        async def steps(ctx: Context) -> str:
            await ctx.report_progress(*said)
            await done.wait()
            return "arrived"

        server.add_tool(steps, name="steps")
        async with on_loopback(server) as url:
            wanted = Wanted("x", url=url, headers={"X-Token": TOKEN})
            driven.write(
                lambda tx: mcp_server.create(
                    tx, driven.owner, sealer, "streamable_http", wanted, stdio=False
                )
            )
            frame = await first(driven, driven.open(STEPS))
            done.set()
            await driven.settled()
            await servers.close()
        assert (frame.type, frame.data["name"]) == ("tool_progress", "mcp__x__steps")
        named = ("turn_public_id", "variant_public_id", "run_public_id", "task_key", "name")
        assert {name: it for name, it in frame.data.items() if name not in named} == told

    driven.during(act)
    (output,) = driven.rows("SELECT output FROM task_details WHERE output IS NOT NULL")
    assert output == ("arrived",)
