"""The engine in a process: what it costs before it has work, stopping and going on, watching."""

import asyncio
import itertools
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from engine.driving import Driven, scene
from engine.test_rounds import facts, feed, invocations
from engine.test_turns import SLOW, running
from stenograph.engine import start, store
from stenograph.engine.models.answer import ReasoningDelta, Response, TextDelta
from stenograph.engine.models.failures import ModelFailedError
from stenograph.retention.integrity import check

IDLE = """
import asyncio, sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from stenograph.engine import start
from stenograph.engine.desk import Desk
from stenograph.engine.engine import Engine, Place
from stenograph.engine.models.credentials import Credentials
from stenograph.storage import location, prepare

async def main(folder):
    database = prepare.ready(location.locate(folder, None))
    engine = Engine(Desk(database, lambda o, m: Credentials()), Place(f"sqlite:///{folder}/e.db"))
    await engine.start()
    await asyncio.sleep(0.2)
    await engine.stop()
    database.close()
    assert not {"dbos", "pydantic_ai", "sqlalchemy"} & LATE(), LATE()

LATE = lambda: {name.partition(".")[0] for name in sys.modules}
from stenograph.storage import migrate, location as places
asyncio.run(main(Path(sys.argv[1])))
"""


def test_an_engine_without_work_loads_nothing(tmp_path: Path, sqlite_template: Path) -> None:
    (tmp_path / "steno.db").write_bytes(sqlite_template.read_bytes())
    done = subprocess.run(
        [sys.executable, "-c", IDLE, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_run_goes_on_where_the_engine_left_off(driven: Driven) -> None:
    session_id = driven.open(SLOW)

    async def stop_soon() -> None:
        await driven.until(running("model", "running"))

    driven.during(stop_soon)
    assert facts(driven, session_id).status == "running"
    driven.settle()
    assert [it[2] for it in invocations(driven, session_id)] == ["failed", "completed"]
    assert feed(driven, session_id)[-1][2:] == ("exit", "success")
    assert check(driven.database) == []


def test_what_a_process_asked_is_accounted_for_though_its_turn_was_cancelled_since(
    driven: Driven,
) -> None:
    session_id = driven.open(SLOW)

    async def stop_soon() -> None:
        await driven.until(running("model", "running"))

    driven.during(stop_soon)
    driven.write(lambda tx: start.cancel_session(tx, driven.owner, session_id))
    driven.say(session_id, "hello")

    async def accounted() -> None:
        await driven.settled()
        await driven.until(lambda tx: tx.value("SELECT count(*) FROM usage_receipts") == 2)

    driven.during(accounted)
    assert [it[2] for it in invocations(driven, session_id)] == ["canceled", "completed"]
    assert check(driven.database) == []


def test_what_another_process_said_is_found(driven: Driven) -> None:
    """Nobody rings here for what another process writes."""
    from stenograph.engine import engine
    from stenograph.events import bell

    async def act() -> None:
        listeners, bell._listeners = bell._listeners, []
        driven.open("hello")
        bell._listeners = listeners
        await driven.settled()

    wait, engine.LOOK = engine.LOOK, 0.05
    try:
        driven.during(act)
    finally:
        engine.LOOK = wait
    assert driven.rows("SELECT status FROM runs") == [("completed",)]


def test_a_watcher_hears_the_model_and_what_counts_no_more(driven: Driven) -> None:
    heard: list[object] = []
    driven.watch = lambda work, it: heard.append(it)
    driven.open("[dev:cut] x")
    driven.settle()
    broken = next(at for at, it in enumerate(heard) if isinstance(it, ModelFailedError))
    texts = "".join(it.text for it in heard[broken:] if isinstance(it, TextDelta))
    assert texts == "The first half of this sentence was heard once before the whole."
    thoughts = [it for it in heard if isinstance(it, ReasoningDelta)]
    assert thoughts
    assert broken > 0
    assert isinstance(heard[-1], Response)
    assert heard[-1].text == texts


def test_a_fault_of_the_engine_ends_the_turn(driven: Driven) -> None:
    """A toolbox that breaks before any call is a fault of this server, not of the model."""

    def break_down(conversation_id: int) -> None:
        raise RuntimeError("no tools today")

    driven.tools.specs = break_down  # type: ignore[assignment, method-assign]
    session_id = driven.open("hello")
    driven.settle()
    assert facts(driven, session_id).reason_code == "internal_error"
    del driven.tools.specs
    driven.say(session_id, "again")
    driven.settle()
    assert feed(driven, session_id)[-1][1] == "You said: again"
    assert check(driven.database) == []


def test_a_prompt_is_acknowledged_without_an_engine(driven: Driven) -> None:
    session_id = driven.open("hello")
    assert feed(driven, session_id) == [("prompt", "hello", None, None)]
    driven.say(session_id, "and this")
    driven.settle()
    assert [it[0] for it in feed(driven, session_id)] == ["prompt", "message", "reply"]


def test_the_log_of_steps_is_deleted_when_a_run_is_over(driven: Driven) -> None:
    """It holds names of runs and calls only, and not even those for long."""
    from stenograph.engine import engine

    path = driven.place.url.removeprefix("sqlite:///")

    def left() -> list[tuple[int]]:
        with closing(sqlite3.connect(path)) as log:
            return log.execute(
                "SELECT count(*) FROM workflow_status UNION ALL"
                " SELECT count(*) FROM operation_outputs"
            ).fetchall()

    async def act() -> None:
        driven.open("[dev:files]")
        await driven.settled()
        while left() != [(0,), (0,)]:
            await asyncio.sleep(0.05)

    wait, engine.LOOK = engine.LOOK, 0.05
    try:
        driven.during(act)
    finally:
        engine.LOOK = wait


def test_a_run_survives_a_database_that_is_away_for_a_while(driven: Driven) -> None:
    from stenograph.engine import engine

    writes, submit = itertools.count(1), driven.database.submit

    def falter(act):
        if next(writes) in (3, 4, 5, 8, 9):
            raise OSError("the database is away")
        return submit(act)

    session_id = driven.open("[dev:files]")
    driven.database.submit = falter  # type: ignore[method-assign]
    wait, engine.LOOK = engine.LOOK, 0.05
    try:
        driven.settle()
    finally:
        engine.LOOK = wait
        del driven.database.submit
    assert feed(driven, session_id)[-1][2:] == ("exit", "success")
    assert check(driven.database) == []


def test_a_run_survives_a_log_of_steps_that_takes_nothing_for_a_while(driven: Driven) -> None:
    from stenograph.engine import drive, engine

    path = driven.place.url.removeprefix("sqlite:///")
    full = "BEGIN SELECT RAISE(ABORT, 'no room'); END"

    async def act() -> None:
        driven.open("hello")
        await driven.settled()
        with closing(sqlite3.connect(path)) as log:
            log.execute(f"CREATE TRIGGER steps BEFORE INSERT ON operation_outputs {full}")
            log.execute(f"CREATE TRIGGER ends BEFORE UPDATE ON workflow_status {full}")
            session_id = driven.open("[dev:files]")
            (candidate,) = driven.read(store.unsettled)
            await driven.until(lambda tx: tx.rows("SELECT 1 FROM tasks WHERE key = 'r2t0'"))
            while drive.drives(candidate):
                await asyncio.sleep(0.01)
            log.execute("DROP TRIGGER steps")
            log.execute("DROP TRIGGER ends")
        await driven.settled()
        assert feed(driven, session_id)[-1][2:] == ("exit", "success")

    wait, engine.LOOK = engine.LOOK, 0.05
    try:
        driven.during(act)
    finally:
        engine.LOOK = wait
    assert len(driven.tools.made) == 2
    assert check(driven.database) == []


def test_a_log_of_steps_that_cannot_be_opened_is_tried_again(driven: Driven, capfd) -> None:
    from stenograph.engine import engine

    path = Path(driven.place.url.removeprefix("sqlite:///"))
    path.mkdir()

    async def act() -> None:
        driven.open("hello")
        while "run_not_begun" not in "".join(capfd.readouterr()):
            await asyncio.sleep(0.01)
        path.rmdir()
        await driven.settled()

    wait, engine.LOOK = engine.LOOK, 0.05
    try:
        driven.during(act)
    finally:
        engine.LOOK = wait
    assert driven.rows("SELECT status FROM turns") == [("completed",)]


def test_many_sessions_at_once(driven: Driven) -> None:
    sessions = [driven.open("[dev:files]", model="dev/small") for _ in range(20)]
    driven.settle()
    assert {feed(driven, it)[-1][3] for it in sessions} == {"success"}
    assert len(driven.tools.made) == 40
    assert check(driven.database) == []


def test_what_an_engine_left_that_is_gone_is_taken_up_by_another(driven: Driven) -> None:
    from stenograph.engine import engine

    session_id = driven.open(scene('''
[[round]]
call = [{ tool = "glob" }, { tool = "slow" }]
[[round]]
say = "It came."
'''))  # fmt: skip
    here, there = (replace(driven.place, executor=name, shared=True) for name in ("here", "there"))

    async def called() -> None:
        done = "SELECT 1 FROM tasks WHERE key = 'r2t0' AND status = 'completed'"
        await driven.until(lambda tx: tx.rows(done))

    async def not_taken_up() -> None:
        before = len(driven.tools.made)
        await driven.until(lambda tx: tx.rows("SELECT 1 FROM engines WHERE executor = 'there'"))
        assert len(driven.tools.made) == before

    wait, engine.LOOK = engine.LOOK, 0.05
    try:
        driven.place = here
        driven.during(called)
        driven.place = there
        driven.during(not_taken_up)
        # Its last sign of life is an hour old.
        driven.write(lambda tx: tx.run("UPDATE engines SET seen_at = seen_at - 3600000000"))
        driven.tools.seconds = 0
        driven.settle()
    finally:
        engine.LOOK = wait
    assert feed(driven, session_id)[-1][1] == "It came."
    assert [name for name, *_ in driven.tools.made].count("glob") == 1
    assert check(driven.database) == []
