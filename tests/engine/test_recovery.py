"""A server that is killed at any moment: after the next start every acknowledged prompt is answered
once, no settled tool ran again, and every model call is in the account."""

import asyncio
import itertools
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy
from dbos import _dbos

from engine.driving import PATIENCE, Driven, Tools, scene
from exports import exported
from people import make_org
from stenograph.accounts import access
from stenograph.conversations import conversation as conversations
from stenograph.conversations import workspace as workspaces
from stenograph.conversations.access import Conversation
from stenograph.engine.engine import Engine, Place
from stenograph.retention.integrity import check
from stenograph.sessions import session
from stenograph.storage.database import Tx
from stenograph.storage.location import Location, connect

PROMPT = scene(
    """
[[round]]
think = "Both, at once; the line breaks the first time."
say = "I read both."
call = [
  { tool = "read", arguments = { path = "README.md" } },
  { tool = "read", arguments = { path = "LICENSE" } },
]
fail = { kind = "interrupted", times = 1 }
[[round]]
think = "Both are here."
say = "They say: {results}"
"""
)
ANSWER = "They say: the content of README.md, the content of LICENSE"

#: In how many places a run is killed; they are spread evenly over it.
PLACES = {"sqlite": 24, "postgres": 6}


def peopled(location: Location) -> None:
    opened = connect(location)
    make_org(opened)
    opened.close()


@pytest.fixture
def world(database_location: Location, tmp_path: Path) -> tuple[Location, Place]:
    """A database with people in it, closed, and where the engine keeps its steps."""
    peopled(database_location)
    if not database_location.is_postgres:
        return database_location, Place(f"sqlite:///{tmp_path / 'engine.db'}")
    return database_location, Place(database_location.url, schema=f"engine_{os.getpid()}")


def within(world: tuple[Location, Place], log: Path, act: Callable[[Driven], Any]) -> Any:
    location, place = world
    database = connect(location)
    try:
        with database.read() as tx:
            owner = access.local(tx)
        return act(Driven(database, owner, place, Tools(log=log)))
    finally:
        database.close()


def in_a_process(act: Callable[[], None]) -> bool:
    """Do `act` in a process of its own. False: it was killed."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            act()
            status = 0
        finally:
            os._exit(status)
    _, ended = os.waitpid(child, 0)
    if os.WIFSIGNALED(ended):
        assert os.WTERMSIG(ended) == signal.SIGKILL
        return False
    assert os.WEXITSTATUS(ended) == 0, "the engine itself failed"
    return True


def drive(world: tuple[Location, Place], log: Path, *, kill_at: int = 0, said: int = -1) -> None:
    """Drive all work to its end, and be killed at the n-th thing that happens: a statement of the
    record, one of DBOS, a delta of a model. With `said`, the count is written to that descriptor.
    """
    counter = itertools.count(1)

    def tick(*_: object, **__: object) -> None:
        if next(counter) == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    def act(driven: Driven) -> None:
        driven.database.observer = tick
        driven.watch = tick
        sqlalchemy.event.listen(sqlalchemy.Engine, "before_cursor_execute", tick)
        sqlalchemy.event.listen(sqlalchemy.Engine, "commit", tick)
        # What was left is taken up through a queue that is looked at once a second.
        queue = _dbos._get_or_create_dbos_registry().get_internal_queue()
        queue._polling_interval_sec = 0.05
        asyncio.run(settled(driven))

    async def settled(driven: Driven) -> None:
        await Engine(driven.desk(), world[1]).start()
        async with asyncio.timeout(PATIENCE):
            await driven.settled()
        if said >= 0:
            os.write(said, str(next(counter)).encode())
        # To stop in good order takes DBOS a second, and is no promise that this is about.
        os._exit(0)

    within(world, log, act)


def opened(world: tuple[Location, Place], log: Path) -> str:
    return within(world, log, lambda driven: driven.open(PROMPT))


def things(world: tuple[Location, Place], log: Path) -> int:
    """How many things happen in a run that nobody disturbs."""
    opened(world, log)
    read, write = os.pipe()
    assert in_a_process(partial(drive, world, log, said=write))
    os.close(write)
    with os.fdopen(read) as said:
        return int(said.read())


def without_moments(document: dict) -> Any:
    """A trajectory without ids, times, and how often a model was asked."""
    for step in document["steps"]:
        step.pop("timestamp")
        step.pop("extra", None)
    return [document["steps"], document["final_metrics"]]


def checked(world: tuple[Location, Place], log: Path, session_id: str) -> Any:
    """Hold what is left of a session to the promises, and return its trajectory."""
    return within(world, log, lambda driven: _checked(driven, log, session_id))


def _checked(driven: Driven, log: Path, session_id: str) -> Any:
    assert check(driven.database) == []
    turns = driven.rows(
        "SELECT t.status, v.status, v.content, r.status, v.public_id FROM turns t"
        " JOIN conversations c ON c.id = t.conversation_id JOIN variants v ON v.turn_id = t.id"
        " LEFT JOIN runs r ON r.variant_id = v.id WHERE c.public_id = :id",
        id=session_id,
    )
    assert [turn[:4] for turn in turns] == [("completed", "completed", ANSWER, "completed")]
    feed = driven.rows(
        "SELECT m.kind, m.status, m.outcome FROM messages m"
        " JOIN conversations c ON c.id = m.conversation_id WHERE c.public_id = :id"
        " ORDER BY m.cursor",
        id=session_id,
    )
    assert feed == [("prompt", None, None), ("reply", "exit", "success")]
    tasks = driven.rows(
        "SELECT k.key, k.status FROM tasks k JOIN runs r ON r.id = k.run_id"
        " JOIN conversations c ON c.id = r.conversation_id WHERE c.public_id = :id ORDER BY k.id",
        id=session_id,
    )
    assert tasks == [(key, "completed") for key in ("r1", "r2t0", "r2t1", "r2")]
    _check_tools(log, turns[0][4])
    _check_account(driven, session_id)
    return without_moments(exported(driven.database, session_id))


def _check_tools(log: Path, candidate: str) -> None:
    """A call was begun once; each time more, it was said that its end had not been seen."""
    made = [line.split() for line in log.read_text().splitlines() if line.startswith(candidate)]
    begun = Counter(key for _, key, resumed in made if resumed == "0")
    # Killed between the word that it begins and the provider's own first word, it is only resumed.
    assert set(begun.values()) <= {1}
    assert {key for _, key, _ in made} == {"r2t0", "r2t1"}


def _check_account(driven: Driven, session_id: str) -> None:
    calls = driven.rows(
        "SELECT i.status, count(u.id), sum(u.prompt_tokens), i.id = k.selected_invocation_id"
        " FROM invocations i JOIN tasks k ON k.id = i.task_id JOIN runs r ON r.id = k.run_id"
        " JOIN conversations c ON c.id = r.conversation_id"
        " LEFT JOIN usage_receipts u ON u.invocation_id = i.id WHERE c.public_id = :id"
        " GROUP BY i.id, i.status, k.selected_invocation_id ORDER BY i.id",
        id=session_id,
    )
    assert all(receipts == 1 for _, receipts, _, _ in calls)
    assert [status for status, _, _, selected in calls if selected] == ["completed", "completed"]
    assert {status for status, _, _, selected in calls if not selected} == {"failed"}
    # The attempt whose line broke was billed, and is in the account beside the two that answered.
    assert sum(1 for status, _, tokens, _ in calls if status == "failed" and tokens) == 1

    def used(tx: Any) -> session.Account:
        found = session.find(tx, driven.owner, session_id)
        return session.details(tx, [found])[found.id].usage

    account = driven.read(used)
    assert account.input_tokens == sum(tokens or 0 for _, _, tokens, _ in calls)
    assert account.cost_usd == 0.0


def test_a_run_that_is_killed_anywhere_is_answered_once(
    world: tuple[Location, Place], tmp_path: Path
) -> None:
    log = tmp_path / "tools"
    things(world, log)  # the first start makes DBOS's tables
    count = things(world, log)
    places = PLACES["postgres" if world[0].is_postgres else "sqlite"]
    whole = checked(world, log, within(world, log, _newest))
    killed = 0
    for number in range(places):
        session_id = opened(world, log)
        at = 1 + number * (count - 1) // (places - 1)
        killed += not in_a_process(partial(drive, world, log, kill_at=at))
        # And once more, on the way back.
        in_a_process(partial(drive, world, log, kill_at=max(count - at, 40)))
        assert in_a_process(partial(drive, world, log))
        assert checked(world, log, session_id) == whole, at
    assert killed > places * 0.8


def test_a_direct_reply_that_is_killed_anywhere_is_written_once(
    sqlite_location: Location, tmp_path: Path
) -> None:
    log = tmp_path / "tools"
    peopled(sqlite_location)
    world = sqlite_location, Place(f"sqlite:///{tmp_path / 'engine.db'}")
    conversation = within(world, log, _conversation)
    for at in range(5, 150, 15):
        within(world, log, partial(_reply_wanted, conversation=conversation))
        in_a_process(partial(drive, world, log, kill_at=at))
        assert in_a_process(partial(drive, world, log))
    within(world, log, _check_replies)


def _conversation(driven: Driven) -> Conversation:
    def make(tx: Tx) -> Conversation:
        workspace = workspaces.create(tx, driven.owner, name="w", access_mode="account_wide")
        return conversations.create(tx, driven.owner, workspace, title=None)

    return driven.write(make)


def _reply_wanted(driven: Driven, conversation: Conversation) -> None:
    driven.ask(conversation, "hello", model="dev/thinker")


def _check_replies(driven: Driven) -> None:
    assert check(driven.database) == []
    replies = driven.rows("SELECT status, content FROM variants")
    assert set(replies) == {("completed", "You said: hello")}
    kinds = driven.rows("SELECT kind, count(*) FROM messages GROUP BY kind ORDER BY kind")
    assert kinds == [("message", len(replies) - 1), ("prompt", 1), ("reply", len(replies))]
    billed = driven.rows(
        "SELECT count(u.id) FROM invocations i"
        " LEFT JOIN usage_receipts u ON u.invocation_id = i.id GROUP BY i.id"
    )
    assert set(billed) == {(1,)}
    assert len(billed) > len(replies)  # some were lost on the way, and are in the account


def _newest(driven: Driven) -> str:
    return str(driven.rows("SELECT public_id FROM conversations ORDER BY id DESC LIMIT 1")[0][0])
