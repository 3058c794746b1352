"""The workflow that drives a candidate, and the engine that keeps such workflows going.

Importing this costs a second and 50 MB (DBOS); `engine.Engine` does so when the first candidate
waits.
"""

import asyncio
import functools
import logging
import sqlite3
import sys
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import sqlalchemy
import structlog
from dbos import DBOS, DBOSConfig, SetWorkflowID

from stenograph.engine import ending
from stenograph.engine.asking import ask
from stenograph.engine.calling import call
from stenograph.engine.desk import Desk
from stenograph.engine.work import hold
from stenograph.storage.database import Tx

_log = structlog.get_logger()

#: Says which shape of the workflow wrote a log of steps; raise it when `_drive` changes.
_SHAPE = "1"
_PRAGMAS = (
    "busy_timeout = 30000",
    "foreign_keys = ON",
    "journal_mode = WAL",
    "synchronous = NORMAL",
)
_SWEPT = 200
#: How a workflow stands that nobody goes on with by itself.
_OVER = frozenset({"SUCCESS", "ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED"})

#: What the workflows of this process work with; DBOS is one to a process too.
_desk: Desk | None = None
_running: "dict[asyncio.Task[object], str]" = {}
#: Workflows of this process that have ended, whatever their log says: it may have had no room for
#: the end.
_ended: set[str] = set()


class Interrupted(Exception):
    """The record could not be reached; the candidate is begun again later."""


def launch(desk: Desk, url: str, schema: str, executor: str) -> None:
    """Start DBOS over its system database, and let it take up what this executor left.

    `url` is `sqlite:///…` or `postgresql://…` (with `schema`). Called on the loop that runs.
    """
    global _desk
    _desk = desk
    config: DBOSConfig = {
        "name": "stenograph",
        "system_database_url": url,
        "dbos_system_schema": schema,
        "application_version": _SHAPE,
        "executor_id": executor,
        "log_level": "ERROR",
        # Nothing here waits for DBOS's notifications; stopping waits for this.
        "notification_listener_polling_interval_sec": 0.1,
    }
    if url.startswith("sqlite:///"):
        config["system_database_engine"] = _sqlite(Path(url.removeprefix("sqlite:///")))
    # With a handler there, DBOS leaves its logger alone, and its lines are masked like all others.
    logging.getLogger("dbos").addHandler(logging.NullHandler())
    DBOS(config=config)
    try:
        DBOS.launch()
    except BaseException:
        # Half of one would pass for the whole at the next try.
        _close()
        raise


def drives(candidate: str) -> bool:
    """Tell whether a workflow of this process is driving the candidate now."""
    return candidate in _running.values()


async def stop() -> None:
    """Leave off: what is under way is taken up by the next start."""
    working = list(_running)
    for task in working:
        task.cancel()
    await asyncio.gather(*working, return_exceptions=True)
    _close()


def _close() -> None:
    global _desk
    DBOS.destroy()
    _desk = None
    _ended.clear()
    # DBOS had lent the loop its own threads, which are gone.
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor())


async def begin(candidate: str, executors: Collection[str] | None = None) -> None:
    """See to it that a workflow drives the candidate: once, however often this is called.

    `executors` are those that drive anything; what any other has begun, it has left.
    """
    number = 0
    workflow = candidate
    # A workflow that is over and left its candidate waiting was overtaken by the record.
    while (status := await DBOS.get_workflow_status_async(workflow)) and (
        status.status in _OVER
        or workflow in _ended
        or (executors is not None and status.executor_id not in executors)
    ):
        number += 1
        workflow = f"{candidate}.{number}"
    with SetWorkflowID(workflow):
        await DBOS.start_workflow_async(_drive, candidate)


async def sweep() -> set[str]:
    """Delete the logs of workflows that are over, and return their candidates; where their runs
    stand is in the record."""
    swept = set()
    while over := await DBOS.list_workflows_async(
        status=sorted(_OVER), limit=_SWEPT, load_input=False, load_output=False
    ):
        await DBOS.delete_workflows_async([it.workflow_id for it in over])
        _ended.difference_update(it.workflow_id for it in over)
        swept |= {it.workflow_id.partition(".")[0] for it in over}
    return swept


@DBOS.workflow(name="drive")
async def _drive(candidate: str) -> None:
    """Alternate between the model and what it calls until the candidate has its end."""
    desk, workflow = _desk, DBOS.workflow_id
    task = asyncio.current_task()
    assert desk is not None
    assert task is not None
    assert workflow is not None
    if drives(candidate):
        return  # a start found two of which the log does not know the end
    _running[task] = candidate
    try:
        while (keys := await DBOS.run_step_async({"name": "ask"}, _ask, candidate)) is not None:
            await asyncio.gather(
                *(DBOS.run_step_async({"name": "call"}, _call, candidate, key) for key in keys)
            )
    finally:
        del _running[task]
        _ended.add(workflow)


async def _ask(candidate: str) -> list[str] | None:
    assert _desk is not None
    try:
        return await ask(_desk, candidate)
    except Exception as error:
        await _surprised(_desk, candidate, error)
        return None


async def _call(candidate: str, key: str) -> None:
    assert _desk is not None
    try:
        await call(_desk, candidate, key)
    except Exception as error:
        await _surprised(_desk, candidate, error)


async def _surprised(desk: Desk, candidate: str, error: Exception) -> None:
    """A fault of ours ends the turn and says so: nobody should wait for ever.

    Raises `Interrupted` when the record cannot be reached. DBOS keeps what a step raises, and must
    not get to see what errors of the database quote.
    """
    _log.error("run_failed", candidate=candidate, exc_info=error)

    def end(tx: Tx) -> None:
        work = hold(tx, candidate)
        if work is not None and not work.settled:
            ending.fail(tx, work, "failed", "internal_error")

    try:
        if _is_outage(error):
            raise Interrupted
        await desk.write(end)
    except Exception:
        raise Interrupted from None


def _is_outage(error: Exception) -> bool:
    """Tell whether the record is away or has no room, which passes, rather than that we erred."""
    away: tuple[type[Exception], ...] = (OSError, sqlite3.OperationalError)
    if (psycopg := sys.modules.get("psycopg")) is not None:
        away = (*away, psycopg.OperationalError)
    return isinstance(error, away)


def _sqlite(path: Path) -> sqlalchemy.Engine:
    """Open the system database as fast as its content allows: the record is what must not be
    lost, and losing the last of these commits loses nothing (docs/decisions/0030)."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.touch(mode=0o600)
    engine = sqlalchemy.create_engine(f"sqlite:///{path}")

    @functools.partial(sqlalchemy.event.listens_for, engine, "connect")()
    def prepare(connection: sqlalchemy.engine.interfaces.DBAPIConnection, _: object) -> None:
        connection.isolation_level = "IMMEDIATE"
        for pragma in _PRAGMAS:
            connection.execute(f"PRAGMA {pragma}")

    return engine
