"""Scripts of a model: what they may do, what their calls leave, and that they are made once."""

import json
from pathlib import Path
from typing import Any

import pytest

from engine.driving import Driven, Tools, scene
from engine.test_rounds import feed, tasks, valid
from people import Org, make_org
from stenograph.engine import start
from stenograph.engine.engine import Place
from stenograph.engine.toolbox import Together
from stenograph.engine.toolboxes import sandbox
from stenograph.engine.toolboxes import script as scripts
from stenograph.engine.toolboxes.sandbox import Limits
from stenograph.engine.toolboxes.script import Script
from stenograph.engine.toolboxes.spawn import Spawn
from stenograph.engine.work import load
from stenograph.retention.integrity import check
from stenograph.runs import transcript
from stenograph.storage.database import Database, Tx

LIMITS = Limits(seconds=0.5, asleep=1.0, memory=16 * 2**20, printed=10_000)


def running(code: str) -> str:
    """A scene that runs a script and says what it gave."""
    call = f"{{ tool = 'script', arguments = {{ code = {json.dumps(code)} }} }}"
    return scene(f'[[round]]\ncall = [{call}]\n[[round]]\nsay = "It gave: {{results}}"\n')


@pytest.fixture
def coder(database: Database, org: Org, tmp_path: Path) -> Driven:
    """An engine whose sessions can run scripts."""
    place = Place(f"sqlite:///{tmp_path / 'engine.db'}")
    return Driven(database, org.owner, place, Together(Tools(), Spawn(), Script(LIMITS)))


@pytest.fixture
def sole(sqlite_database: Database, tmp_path: Path) -> Driven:
    """As `coder`, on SQLite only: for what happens in the sandbox."""
    place = Place(f"sqlite:///{tmp_path / 'engine.db'}")
    owner = make_org(sqlite_database).owner
    return Driven(sqlite_database, owner, place, Together(Tools(), Spawn(), Script(LIMITS)))


def gave(driven: Driven, *codes: str) -> list[tuple[str, str]]:
    """Run scripts, each in a session of its own: how each call ended, and its output."""
    for code in codes:
        driven.open(running(code))
    driven.settle()
    return driven.rows(
        "SELECT k.status, d.output FROM tasks k JOIN task_details d ON d.task_id = k.id"
        " JOIN runs r ON r.id = k.run_id WHERE k.name = 'script' ORDER BY r.conversation_id"
    )


def made(driven: Driven) -> list[tuple[Any, ...]]:
    """The calls of scripts: key, name, arguments, status, whose call they are beneath."""
    return driven.rows(
        "SELECT k.key, k.name, d.input, k.status, p.key FROM tasks k"
        " JOIN tasks p ON p.id = k.parent_id AND p.kind = 'tool_task'"
        " JOIN task_details d ON d.task_id = k.id JOIN runs r ON r.id = k.run_id"
        " ORDER BY r.conversation_id, k.call_index"
    )


# --- what is left in the record ----------------------------------------------------------------


def test_the_calls_of_a_script_are_tasks_beneath_it(coder: Driven) -> None:
    session_id = coder.open("[dev:script]")
    coder.settle()
    assert [it[:3] for it in tasks(coder, session_id)] == [
        ("r1", "model_task", "completed"),
        ("r2t0", "tool_task", "completed"),
        ("r2t1", "tool_task", "completed"),
        ("r2t2", "tool_task", "completed"),
        ("r2", "model_task", "completed"),
    ]
    assert made(coder) == [
        ("r2t1", "read", '{"path":"README.md"}', "completed", "r2t0"),
        ("r2t2", "read", '{"path":"LICENSE"}', "completed", "r2t0"),
    ]
    said = "The script printed: the content of README.md\nthe content of LICENSE"
    assert feed(coder, session_id)[-1][1:] == (said, "exit", "success")
    assert check(coder.database) == []


def test_a_trajectory_links_them_to_the_call_of_the_script(coder: Driven) -> None:
    session_id = coder.open("[dev:script]")
    coder.settle()
    step = valid(coder, session_id)["steps"][1]
    script, *rest = step["tool_calls"]
    assert "extra" not in script
    assert [it["extra"] for it in rest] == [{"parent_tool_call_id": script["tool_call_id"]}] * 2
    assert len({it["tool_call_id"] for it in step["tool_calls"]}) == 3
    results = {it["source_call_id"]: it["content"] for it in step["observation"]["results"]}
    assert results[rest[1]["tool_call_id"]] == "the content of LICENSE"

    def lines(tx: Tx) -> list[tuple[str, str | None]]:
        work = load(tx, tx.value("SELECT public_id FROM variants"))
        assert work is not None
        assert work.run is not None
        rounds = transcript.page(tx, work.run, size=10).rounds
        return [(it.key, it.script) for it in rounds[0].calls]

    assert coder.read(lines) == [("r2t0", None), ("r2t1", "r2t0"), ("r2t2", "r2t0")]


def test_a_model_is_not_told_what_its_script_called(coder: Driven) -> None:
    session_id = coder.open("[dev:script]")
    coder.settle()
    coder.say(session_id, "And now?")
    coder.settle()
    (request,) = coder.rows("SELECT request FROM invocation_details ORDER BY invocation_id")[-1]
    assert "parent_tool_call_id" not in request
    assert request.count('"tool_call"') <= 1
    assert feed(coder, session_id)[-1][1] == "You said: And now?"


def test_a_script_beside_another_call_keeps_the_keys_apart(coder: Driven) -> None:
    session_id = coder.open(
        scene(
            """
[[round]]
call = [
  { tool = "script", arguments = { code = "read(path='a')" } },
  { tool = "glob" },
  { tool = "script", arguments = { code = "read(path='b')" } },
]
[[round]]
say = "{results}"
"""
        )
    )
    coder.settle()
    assert feed(coder, session_id)[-1][1] == "the content of a, README.md, the content of b"
    assert {(it[0], it[4]) for it in made(coder)} in (
        {("r2t3", "r2t0"), ("r2t4", "r2t2")},
        {("r2t4", "r2t0"), ("r2t3", "r2t2")},
    )
    valid(coder, session_id)
    assert check(coder.database) == []


def test_a_script_can_start_subagents(coder: Driven) -> None:
    session_id = coder.open(running('call("spawn", prompt="Hello there", label="one")'))
    coder.settle()
    assert feed(coder, session_id)[-1][1] == "It gave: You said: Hello there"
    document = valid(coder, session_id)
    (child,) = document["subagent_trajectories"]
    spawned = document["steps"][1]["observation"]["results"][1]
    assert spawned["subagent_trajectory_ref"][0]["trajectory_id"] == child["trajectory_id"]
    assert check(coder.database) == []


# --- what a script may do ----------------------------------------------------------------------


def test_output_is_what_was_printed_and_the_last_value(sole: Driven) -> None:
    assert gave(
        sole,
        "print('one')\nprint('two')\n[1, 'three']",
        "import json\njson.loads('{\"a\": [1]}')['a']",
        "x = 1",
        "'said'",
        "class A: pass\nA()",
        "x = ['lol']\nfor _ in range(9): x = [x] * 10\nx",
    ) == [
        ("completed", "one\ntwo\n[1, 'three']"),
        ("completed", "[1]"),
        ("completed", "(The script printed nothing.)"),
        ("completed", "said"),
        ("completed", "(a value of the type MontyClassProxy that cannot be shown)"),
        ("completed", "(a value of the type list that cannot be shown)"),
    ]


def test_calls_can_be_at_work_at_once(sole: Driven) -> None:
    code = """
import asyncio
async def one(path):
    return await read(path=path)
a = await read(path="a")
b = await asyncio.gather(start("read", path="b"), one("c"), one("d"))
last = read
[a, *b, last(path="e")]
"""
    assert gave(sole, code) == [
        ("completed", str([f"the content of {name}" for name in "abcde"])),
    ]
    assert [json.loads(it[2])["path"] for it in made(sole)] == list("abcde")


def test_what_nobody_waits_for_is_waited_for(sole: Driven) -> None:
    gave(sole, 'start("read", path="a")\n"done"', 'start("read", path="b")\n1 / 0')
    assert [it[1:4] for it in made(sole)] == [
        ("read", '{"path":"a"}', "completed"),
        ("read", '{"path":"b"}', "completed"),
    ]


def test_a_call_that_fails_is_an_exception(sole: Driven) -> None:
    caught, uncaught = gave(
        sole,
        "try:\n    broken()\nexcept RuntimeError as error:\n    print('caught', error)",
        "print('first')\n\nbroken()",
    )
    assert caught == ("completed", "caught broken failed: ValueError: it fell apart")
    assert uncaught[0] == "failed"
    assert uncaught[1].startswith("first\nTraceback")
    assert 'File "script", line 3' in uncaught[1]
    assert uncaught[1].endswith("RuntimeError: broken failed: ValueError: it fell apart")


def test_what_rules_deny_a_script_may_not_do(sole: Driven) -> None:
    policy = {"approval_rules": [{"tool": "read", "decision": "deny"}]}
    session_id = sole.open(running("read(path='a')"), options={"session_policy": policy})
    sole.settle()
    assert "deny calls of read" in feed(sole, session_id)[-1][1]
    assert [it[3] for it in made(sole)] == ["failed"]


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("x = (", "SyntaxError"),
        ("def f():\n    return 1 / 0\nf()", "line 2, in f"),
        ("nothing()", "NameError: name 'nothing' is not defined"),
        ("nothing", "NameError: name 'nothing' is not defined"),
        ("script(code='1')", "A script cannot call 'script'"),
        ("call('finish', outcome='success')", "A script cannot call 'finish'"),
        ("call('no_such_tool')", "A script cannot call 'no_such_tool'; there are: big, binary"),
        ("call()", "call() needs the name of a tool first"),
        ("read('a')", "read takes keyword arguments only"),
        ("read(path=print)", "The arguments of read cannot be sent"),
        ("x = ['lol']\nfor _ in range(9): x = [x] * 10\nread(path=x)", "they are too large"),
        ("def f(n): return f(n + 1)\nf(0)", "RecursionError"),
        ("x = 'a' * 100_000_000", "MemoryError"),
        ("while True: print('x' * 100)", "print 10000 bytes"),
        ("while True: pass", "A script may compute for 0.5 s"),
        ("try:\n    while True: pass\nexcept BaseException: pass", "compute for 0.5 s"),
        ("import time\ntime.sleep(1000)", "a script sleeps at most 1 s in all"),
        ("open('/etc/passwd')", "PermissionError"),
        ("import os\nos.environ", "not supported"),
        ("import socket", "ModuleNotFoundError"),
        ("import subprocess", "ModuleNotFoundError"),
    ],
)
def test_what_a_script_cannot_do_is_told(sole: Driven, code: str, told: str) -> None:
    ((status, output),) = gave(sole, code)
    assert status == "failed"
    assert told in output
    assert made(sole) == []


def test_a_script_makes_a_limited_number_of_calls(
    sole: Driven, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scripts, "CALLS", 3)
    ((status, output),) = gave(sole, "for n in range(5): read(path=str(n))")
    assert status == "failed"
    assert output.endswith("RuntimeError: A script makes at most 3 calls")
    assert len(made(sole)) == 3


def test_the_clock_of_a_script_stands_and_chance_repeats_itself(sole: Driven) -> None:
    code = "import time, random\na = time.time()\ntime.sleep(0.05)\n[a == time.time(), a]"
    ((_, output),) = gave(sole, code)
    stands, at = json.loads(output.replace("True", "true"))
    assert stands
    ((begun,),) = sole.rows("SELECT started_at FROM tasks WHERE name = 'script'")
    assert at == pytest.approx(begun / 1e6)


def test_arguments_that_are_none_are_told(sole: Driven) -> None:
    session_id = sole.open('[dev:call script {"code": 1}]')
    sole.settle()
    assert feed(sole, session_id)[-1][1] == "It gave: script needs its code as a string"


# --- stopping ----------------------------------------------------------------------------------


@pytest.mark.parametrize("code", ["while True: pass", "slow()", "import time\ntime.sleep(30)"])
def test_a_script_stops_with_its_turn(
    coder: Driven, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it runs, others go on; stopped, it leaves no process behind."""
    monkeypatch.setattr(coder, "tools", Together(Tools(), Script(Limits(seconds=60.0))))
    workers: list[int | None] = []
    opened = sandbox._open

    def watched(*args: Any) -> Any:
        session = opened(*args)
        workers.append(session.worker_pid)
        return session

    monkeypatch.setattr(sandbox, "_open", watched)
    session_id = coder.open(running(code))

    async def act() -> None:
        await coder.until(lambda tx: workers)
        other = coder.open("hello")
        await coder.until(lambda tx: feed(coder, other)[-1][0] == "reply")
        coder.write(lambda tx: start.cancel_session(tx, coder.owner, session_id))
        await coder.until(lambda tx: not _is_alive(workers[0]))

    coder.during(act)
    assert {it[2] for it in tasks(coder, session_id)} == {"completed", "canceled"}
    assert check(coder.database) == []
    valid(coder, session_id)


def _is_alive(pid: int | None) -> bool:
    return Path(f"/proc/{pid}").exists()


# --- interruptions -----------------------------------------------------------------------------


def interrupted(driven: Driven, code: str, at_path: str) -> str:
    """Run a script, and stop the engine when it calls `slow` with this path."""
    session_id = driven.open(running(code))

    async def leave_off() -> None:
        await driven.until(
            lambda tx: tx.rows(
                "SELECT 1 FROM tasks k JOIN task_details d ON d.task_id = k.id"
                " WHERE k.name = 'slow' AND k.status = 'running' AND d.input LIKE :path",
                path=f"%{at_path}%",
            )
        )

    driven.during(leave_off)
    return session_id


class Quick(Tools):
    """Tools whose `slow` has done its work when it is asked again."""

    async def call(self, name: str, arguments: dict[str, Any], context: Any) -> Any:
        if name == "slow" and context.resumed:
            self.made.append((name, arguments, True))
            return await super().call("read", arguments, context)
        return await super().call(name, arguments, context)


INTERRUPTED = "a = read(path='a')\nb = slow(path='b')\nc = read(path='c')\n[a, b, c]"


def test_a_script_that_runs_again_does_not_repeat_what_was_settled(coder: Driven) -> None:
    tools = Quick()
    coder.tools = Together(tools, Script(LIMITS))
    session_id = interrupted(coder, INTERRUPTED, "b")
    coder.settle()
    said = str([f"the content of {name}" for name in "abc"])
    assert feed(coder, session_id)[-1][1] == f"It gave: {said}"
    assert [(it[1]["path"], it[2]) for it in tools.made if it[0] == "read" and not it[2]] == [
        ("a", False),
        ("c", False),
    ]
    assert [it[3] for it in made(coder)] == ["completed"] * 3
    valid(coder, session_id)
    assert check(coder.database) == []


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("UPDATE tasks SET name = 'glob' WHERE name = 'read'", "called read where it had called"),
        (
            'UPDATE task_details SET input = \'{"path":"x"}\' WHERE task_id IN'
            " (SELECT id FROM tasks WHERE name = 'read')",
            "called read where it had called it with other arguments before",
        ),
        (
            "UPDATE task_details SET input = '{\"code\":\"read(path=''a'')\"}' WHERE task_id IN"
            " (SELECT id FROM tasks WHERE name = 'script')",
            "made 1 calls of the 2 before",
        ),
    ],
)
def test_a_script_that_does_something_else_when_it_runs_again_is_uncertain(
    coder: Driven, change: str, told: str
) -> None:
    session_id = interrupted(coder, INTERRUPTED, "b")
    coder.write(lambda tx: tx.run(change))
    coder.settle()
    assert told in feed(coder, session_id)[-1][1]
    assert tasks(coder, session_id)[1][2] == "uncertain"
    # What was under way, and is not asked for any more, may have had its effect.
    assert made(coder)[-1][3] == "uncertain"
    assert check(coder.database) == []
