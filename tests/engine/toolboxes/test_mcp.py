"""Tools of MCP servers: real servers, over standard input and output and over HTTP."""

import asyncio
import io
import os
import re
import sys
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import structlog
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from engine.driving import Driven, scene
from engine.toolboxes.sample_server import on_loopback, sample, served
from people import Org, make_org
from stenograph import logs
from stenograph.accounts import mcp_server
from stenograph.accounts.mcp_place import Transport, Wanted
from stenograph.accounts.mcp_server import McpServer
from stenograph.engine import start, store
from stenograph.engine.engine import Place
from stenograph.engine.toolbox import ToolContext, ToolOutcome
from stenograph.engine.toolboxes import mcp_connection
from stenograph.engine.toolboxes.mcp import McpTools, check
from stenograph.engine.work import Work, load
from stenograph.errors import ConflictError
from stenograph.settings import Settings
from stenograph.storage.sealing import Sealer

HERE = Path(__file__).parent
TOKEN = "hunter2-tok/en+value"


@dataclass
class Room:
    """An organization's servers, and the toolbox over them while `use` runs."""

    driven: Driven
    org: Org
    sealer: Sealer
    tools: McpTools = field(init=False)

    def add(self, name: str, **wanted: Any) -> McpServer:
        """Set up a server of the owner's (or of `caller`)."""
        caller = wanted.pop("caller", self.org.owner)
        transport: Transport = "streamable_http" if "url" in wanted else "stdio"
        return self.driven.write(
            lambda tx: mcp_server.create(
                tx, caller, self.sealer, transport, Wanted(name, **wanted), stdio=True
            )
        )

    def run(self, name: str, script: str, *args: str, **env: str) -> McpServer:
        """Set up a server that is one of the scripts here."""
        return self.add(name, command=sys.executable, args=[str(HERE / script), *args], env=env)

    def change(self, server: McpServer, **wanted: Any) -> McpServer:
        return self.driven.write(
            lambda tx: mcp_server.change(
                tx, self.org.owner, self.sealer, server.public_id, Wanted(**wanted), stdio=True
            )
        )

    def work(self) -> Work:
        """Something that is answered in the owner's organization."""
        self.driven.open("hello")
        (candidate, *_) = self.driven.read(store.unsettled)
        found = self.driven.read(lambda tx: load(tx, candidate))
        assert found is not None
        return found

    def use(self, act: Callable[[], Awaitable[Any]], **settings: Any) -> None:
        """Run `act` while the toolbox is open."""

        async def run() -> None:
            self.tools = McpTools(self.driven.database, self.sealer, **{"stdio": True} | settings)
            try:
                async with asyncio.timeout(30):
                    await act()
            finally:
                await self.tools.close()

        asyncio.run(run())

    async def names(self, work: Work) -> list[str]:
        return [spec.name for spec in await self.tools.specs(work)]

    async def call(
        self, work: Work, name: str, /, *, resumed: bool = False, **arguments: Any
    ) -> ToolOutcome:
        return await self.tools.call(
            name, arguments, ToolContext(work, "r1.1", 1, "call", resumed=resumed)
        )


@pytest.fixture
def room(sqlite_database, tmp_path, sealer) -> Room:
    org = make_org(sqlite_database)
    place = Place(f"sqlite:///{tmp_path / 'engine.db'}")
    return Room(Driven(sqlite_database, org.owner, place), org, sealer)


@pytest.fixture
def logged(tmp_path, monkeypatch) -> Iterator[io.StringIO]:
    """Everything that is logged, as the server is set up to log."""
    lines = io.StringIO()
    monkeypatch.setattr(sys, "stderr", lines)
    before = structlog.get_config()
    logs.configure(Settings(data=tmp_path, log_level="debug"))
    structlog.configure(cache_logger_on_first_use=False)
    yield lines
    structlog.configure(**before)


# What is offered


def test_every_server_offers_its_tools_by_names_that_models_take(room):
    work = room.work()
    room.run("local", "sample_server.py")

    async def act():
        async with on_loopback(sample()) as url:
            room.add("over-http", url=url)
            specs = {spec.name: spec for spec in await room.tools.specs(work)}
            for server in ("local", "over-http"):
                assert f"mcp__{server}__echo" in specs
                strange = [it for it in specs if it.startswith(f"mcp__{server}__a_tool_with_a")]
                assert len(strange) == 1
                assert (await room.call(work, *strange)).output == "strange"
                said = await room.call(work, f"mcp__{server}__echo", text="hi")
                assert said == ToolOutcome("completed", "hi")
            assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) for name in specs)
            echo = specs["mcp__local__echo"]
            assert echo.description == "Say it again."
            assert echo.parameters["type"] == "object"
            assert list(echo.parameters["properties"]) == ["text"]

    room.use(act)


def test_names_that_could_be_one_are_told_apart(room):
    """`a` and `b__c`, `a__b` and `c`: both would be mcp__a__b__c."""
    work = room.work()

    async def act():
        one, other = sample(), sample()
        one.add_tool(lambda: "of a", name="b__c")
        other.add_tool(lambda: "of a__b", name="c")
        async with on_loopback(one) as first, on_loopback(other) as second:
            room.add("a", url=first)
            room.add("a__b", url=second)
            names = await room.names(work)
            assert len(names) == len(set(names)) == 28
            assert (await room.call(work, "mcp__a__b__c")).output == "of a"
            (digested,) = [it for it in names if it.startswith("mcp__a__b__c_")]
            assert (await room.call(work, digested)).output == "of a__b"

    room.use(act)


def test_nothing_is_offered_to_others_or_of_what_is_switched_off(room):
    work = room.work()
    room.add("theirs", caller=room.org.stranger, command=sys.executable, args=["-c", "1"])
    off = room.run("off", "legacy_server.py")
    room.change(off, enabled=False)

    async def act():
        assert await room.names(work) == []
        room.run("command", "legacy_server.py")
        assert await room.names(work) == ["mcp__command__grow", "mcp__command__token"]

    async def without_commands():
        assert await room.names(work) == []
        outcome = await room.call(work, "mcp__command__token")
        assert (outcome.status, "not on offer" in outcome.output) == ("failed", True)

    room.use(act)
    room.use(without_commands, stdio=False)


def test_tools_that_change_are_offered_anew(room):
    work = room.work()
    server = room.run("x", "legacy_server.py", TOKEN=TOKEN)

    async def act():
        assert await room.names(work) == ["mcp__x__grow", "mcp__x__token"]
        await room.call(work, "mcp__x__grow")
        assert "mcp__x__grown" in await room.names(work)
        room.change(server, name="y")
        # A new version of its row is a new process, which has not grown.
        assert await room.names(work) == ["mcp__y__grow", "mcp__y__token"]
        room.driven.write(lambda tx: mcp_server.delete(tx, room.org.owner, server.public_id))
        assert await room.names(work) == []

    room.use(act)


def test_a_server_that_says_nothing_of_its_changes_is_asked_again(room):
    work = room.work()

    async def act():
        async with on_loopback(sample()) as url:
            room.add("x", url=url)
            assert "mcp__x__new" not in await room.names(work)
            await room.call(work, "mcp__x__grow", name="new")
            assert "mcp__x__new" in await room.names(work)

    room.use(act, fresh=0)


@pytest.mark.parametrize("how", ["silent", "nobody", "no program", "broken"])
def test_a_server_that_is_down_is_left_out_and_the_others_are_there(room, logged, how):
    work = room.work()
    match how:
        case "silent":
            room.run("down", "legacy_server.py", "silent", TOKEN=TOKEN)
        case "nobody":
            room.add("down", url=f"http://127.0.0.1:9/mcp?token={TOKEN}")
        case "no program":
            room.add("down", command="no-such-program", env={"TOKEN": TOKEN})
        case "broken":
            leak = "import os; raise SystemExit('no: ' + os.environ['TOKEN'])"
            room.add("down", command=sys.executable, args=["-c", leak], env={"TOKEN": TOKEN})

    async def act():
        room.run("up", "legacy_server.py")
        assert await room.names(work) == ["mcp__up__grow", "mcp__up__token"]
        assert await room.names(work) == ["mcp__up__grow", "mcp__up__token"]

    room.use(act, patience=1)
    told = logged.getvalue()
    assert told.count("mcp_server_left_out") == 1
    assert TOKEN not in told
    assert "[redacted-secret]" in told or how != "broken"


def test_a_server_that_comes_up_late_is_found(room):
    work = room.work()

    async def act():
        async with on_loopback(sample()) as url:
            server = room.add("late", url=url)
        assert await room.names(work) == []
        async with on_loopback(sample()) as elsewhere:
            room.change(server, url=elsewhere)
            assert "mcp__late__echo" in await room.names(work)
        failed = await room.call(work, "mcp__late__echo", text="x")
        assert (failed.status, "could not be reached" in failed.output) == ("failed", True)

    room.use(act)


def test_tools_that_are_hard_to_tell_a_model_of_spoil_no_turn(room, logged):
    work = room.work()
    room.run("x", "legacy_server.py", "odd")

    async def act():
        numbers, long = await room.tools.specs(work)
        assert numbers.parameters["properties"] == {"a": {"default": None, "maximum": None}}
        assert (long.name, len(long.description)) == ("mcp__x__long", 10_000)
        assert "The schema of its tool large is too large" in logged.getvalue()

    room.use(act)


# What comes of a call


def test_an_error_of_a_server_is_no_end_of_its_connection(room):
    work = room.work()
    room.run("x", "legacy_server.py", "odd")

    async def act():
        for _ in range(2):
            failed = await room.call(work, "mcp__x__numbers")
            assert failed == ToolOutcome("failed", "It fell apart")

    room.use(act)


def test_what_is_not_text_is_described_and_structure_is_json(room):
    work = room.work()

    async def act():
        async with on_loopback(sample()) as url:
            room.add("x", url=url)
            outcome = await room.call(work, "mcp__x__mixed")
            assert outcome == ToolOutcome(
                "completed",
                "words\n[image: image/png, 1,000 bytes]\n[audio: audio/wav, 1,000 bytes]\n"
                "[resource: report, file:///report.txt]\n"
                '[resource: file:///x.bin, application/octet-stream, 1,000 bytes]\n{"a":[1]}',
            )
            assert len((await room.call(work, "mcp__x__huge")).output) == 3_000_000
            failed = await room.call(work, "mcp__x__fail", text="badly")
            assert (failed.status, "apart: badly" in failed.output) == ("failed", True)
            wrong = await room.call(work, "mcp__x__echo", wrong=1)
            assert (wrong.status, "text" in wrong.output) == ("failed", True)

    room.use(act)


def test_a_command_sees_what_was_configured_and_nothing_of_ours(room, monkeypatch):
    monkeypatch.setenv("STENO_KEY", "the sealing key")
    monkeypatch.setenv("USER", "ada")
    work = room.work()
    room.run("x", "sample_server.py", MODE="quiet")

    async def act():
        seen = (await room.call(work, "mcp__x__environment")).output
        assert '"MODE": "quiet"' in seen
        names = set(re.findall(r'"(\w+)":', seen))
        # LC_CTYPE is Python's own doing (PEP 538).
        assert names - {"LC_CTYPE"} == {"MODE", "PATH", "HOME"}

    room.use(act)


def test_values_go_where_they_belong_and_come_back_masked(room, logged):
    work = room.work()
    room.run("local", "legacy_server.py", "rubbish", TOKEN=TOKEN)

    async def act():
        async with on_loopback(sample()) as url:
            values = {"Authorization": f"Bearer {TOKEN}", "X-Mode": "abcdef-123456"}
            room.add("web", url=f"{url}?key=qwertzuiop", headers=values)
            for spec in await room.tools.specs(work):
                assert TOKEN not in spec.description
            sent = (await room.call(work, "mcp__web__headers")).output
            assert '"authorization": "[redacted-secret]"' in sent
            assert '"x-mode": "[redacted-secret]"' in sent
            for name in ("echo", "fail"):
                text = f"see {TOKEN} and qwertzuiop"
                outcome = await room.call(work, f"mcp__web__{name}", text=text)
                assert "see [redacted-secret] and [redacted-secret]" in outcome.output
            held = await room.call(work, "mcp__local__token")
            assert held.output == "[redacted-secret] is it"

    room.use(act)
    assert TOKEN not in logged.getvalue()


@pytest.mark.parametrize(("tool", "status"), [("die", "uncertain"), ("die_reading", "failed")])
def test_a_server_that_dies_in_mid_call_leaves_the_rest_alive(room, tmp_path, tool, status):
    work = room.work()
    touched = tmp_path / "touched"
    room.run("x", "sample_server.py", TOUCHED=str(touched))

    async def act():
        died = await room.call(work, f"mcp__x__{tool}")
        assert (died.status, "connection ended" in died.output) == (status, True)
        assert (await room.call(work, "mcp__x__echo", text="again")).output == "again"
        if tool == "die":
            # It was called once, whatever became of it.
            assert touched.read_text() == "die\n"

    room.use(act)


def test_a_call_whose_end_was_not_seen_is_made_again_only_where_that_does_no_harm(room, tmp_path):
    work = room.work()
    touched = tmp_path / "touched"

    async def act():
        async with on_loopback(sample(touched)) as url:
            room.add("x", url=url)
            again = await room.call(work, "mcp__x__count", resumed=True)
            assert again == ToolOutcome("completed", "counted")
            unknown = await room.call(work, "mcp__x__hang", resumed=True)
            assert (unknown.status, "begun before" in unknown.output) == ("uncertain", True)
            assert touched.read_text() == "count\n"

    room.use(act)


def test_a_call_that_takes_too_long_is_given_up(room, monkeypatch):
    monkeypatch.setattr(mcp_connection, "CALLING", 0.2)
    work = room.work()

    async def act():
        async with on_loopback(sample()) as url:
            room.add("x", url=url)
            assert (await room.call(work, "mcp__x__hang")).status == "timed_out"
            assert (await room.call(work, "mcp__x__echo", text="still")).output == "still"

    room.use(act)


# Connections


def is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_calls_share_a_process_which_ends_when_it_is_idle_and_when_all_ends(room, monkeypatch):
    work = room.work()
    room.run("x", "sample_server.py")
    processes: list[int] = []

    async def process() -> int:
        return int((await room.call(work, "mcp__x__process")).output)

    async def act():
        first = await process()
        assert await asyncio.gather(process(), process()) == [first, first]
        monkeypatch.setattr(mcp_connection, "IDLE", 0)
        assert await process() == first
        while is_running(first):
            await asyncio.sleep(0.01)
        monkeypatch.setattr(mcp_connection, "IDLE", 300)
        processes.append(await process())

    room.use(act)
    assert not is_running(processes[0])


class Forgetful:
    """A server of 2025-06-18 over HTTP, by hand: it knows the session it was last asked for, and
    forgets it when told to."""

    def __init__(self) -> None:
        self.sessions = 0
        self.known: str | None = None
        self.called: list[str] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await receive()
            return
        asked = Request(scope, receive)
        message = await asked.json() if asked.method == "POST" else {}
        await self.answer(asked, message)(scope, receive, send)

    def answer(self, asked: Request, message: dict[str, Any]) -> Response:
        method = message.get("method")
        if asked.method != "POST":
            return Response(status_code=405)
        if method == "initialize":
            self.sessions += 1
            self.known = f"s{self.sessions}"
            result = {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "forgetful", "version": "1"},
            }
        elif asked.headers.get("mcp-session-id") != self.known or method == "server/discover":
            return Response(status_code=404)
        elif "id" not in message:
            return Response(status_code=202)
        elif method == "tools/list":
            result = {"tools": [{"name": "call", "inputSchema": {"type": "object"}}]}
        else:
            self.called.append(f"{method} by {self.known}")
            result = {"content": [{"type": "text", "text": f"by {self.known}"}]}
        headers = {"mcp-session-id": self.known or ""}
        body = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        return JSONResponse(body, headers=headers)


def test_a_server_that_was_started_again_is_called_in_a_new_session(room):
    work = room.work()
    server = Forgetful()

    async def act():
        async with served(server) as url:
            room.add("x", url=url)
            assert (await room.call(work, "mcp__x__call")).output == "by s1"
            server.known = None
            assert await room.call(work, "mcp__x__call") == ToolOutcome("completed", "by s2")
            assert server.called == ["tools/call by s1", "tools/call by s2"]

    room.use(act)


def test_a_redirect_to_another_host_is_not_followed(room):
    reached: list[str] = []

    async def elsewhere(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            reached.append(scope["path"])
            await Response(status_code=500)(scope, receive, send)
        else:
            await receive()

    async def act():
        async with served(elsewhere) as target:

            async def away(scope: Any, receive: Any, send: Any) -> None:
                if scope["type"] == "http":
                    await RedirectResponse(target)(scope, receive, send)
                else:
                    await receive()

            async with served(away) as url:
                added = room.add("x", url=url, headers={"Authorization": f"Bearer {TOKEN}"})
                with pytest.raises(ConflictError, match="not followed"):
                    await check(added, room.sealer)

    room.use(act)
    assert reached == []


def test_a_check_names_the_tools_or_says_why_it_cannot(room):
    good = room.run("good", "legacy_server.py", TOKEN=TOKEN)
    leak = "import os; raise SystemExit('no config: ' + os.environ['TOKEN'])"
    bad = room.add("bad", command=sys.executable, args=["-c", leak], env={"TOKEN": TOKEN})
    tools = asyncio.run(check(good, room.sealer))
    assert [tool.name for tool in tools] == ["mcp__good__grow", "mcp__good__token"]
    with pytest.raises(ConflictError, match=r"no config: \[redacted-secret\]"):
        asyncio.run(check(bad, room.sealer))


def test_a_check_says_what_http_answered(room):
    async def act():
        async with on_loopback(sample()) as url:
            wrong = room.add("x", url=url.replace("/mcp", "/elsewhere"))
            with pytest.raises(ConflictError, match="404"):
                await check(wrong, room.sealer)

    room.use(act)


# In a run

RUN = """
[[round]]
call = [
  { tool = "mcp__x__headers", arguments = {} },
  { tool = "mcp__x__huge", arguments = {} },
]
[[round]]
say = "It said: {results}"
"""


def test_a_run_keeps_what_came_of_its_calls_and_no_value(driven, org, sealer):
    room = Room(driven, org, sealer)
    driven.open(scene(RUN))

    async def act():
        async with on_loopback(sample()) as url:
            room.add("x", url=url, headers={"Authorization": f"Bearer {TOKEN}"})
            await driven.settled()
            await driven.tools.close()

    driven.tools = McpTools(driven.database, sealer)
    driven.during(act)
    assert driven.rows("SELECT status FROM sessions") == [("exit",)]
    calls = driven.rows(
        "SELECT t.name, t.status, d.output FROM tasks t JOIN task_details d ON d.task_id = t.id"
        " WHERE t.name LIKE 'mcp%'"
    )
    outputs = {name: (status, output) for name, status, output in calls}
    assert outputs["mcp__x__headers"][0] == "completed"
    assert '"authorization": "[redacted-secret]"' in outputs["mcp__x__headers"][1]
    assert outputs["mcp__x__huge"][0] == "completed"
    assert len(outputs["mcp__x__huge"][1]) == 1_000_000
    for table in ("variants", "task_details", "invocation_details", "mcp_servers", "events"):
        assert TOKEN not in repr(driven.rows(f"SELECT * FROM {table}"))


HANG = """
[[round]]
call = [{ tool = "mcp__x__hang", arguments = {} }]
[[round]]
say = "done"
"""


def test_a_call_that_hangs_ends_with_its_turn(driven, org, sealer, tmp_path):
    room = Room(driven, org, sealer)
    touched = tmp_path / "touched"
    session_id = driven.open(scene(HANG))

    async def act():
        async with on_loopback(sample(touched)) as url:
            room.add("x", url=url)
            while not touched.exists():
                await asyncio.sleep(0.01)
            driven.write(lambda tx: start.cancel_session(tx, org.owner, session_id))
            await driven.settled()
            await driven.tools.close()

    driven.tools = McpTools(driven.database, sealer)
    driven.during(act)
    assert driven.rows("SELECT status FROM sessions") == [("cancelled",)]
    assert touched.read_text() == "hang\n"
