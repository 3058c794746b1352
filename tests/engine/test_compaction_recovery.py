"""A server that is killed while it sums a conversation up: after the next start there is one
summary, every model call is in the account, and the turn is answered."""

import os
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from engine.driving import Driven
from engine.test_compaction import SUMMARY, compactions, long_scene
from engine.test_recovery import drive, in_a_process, peopled, within, without_moments
from engine.test_rounds import account, valid
from stenograph.engine.engine import Place
from stenograph.retention.integrity import check
from stenograph.storage.location import Location

#: Two rounds, the second of which comes after a summary.
PROMPT = long_scene(3, window=1_600, more=SUMMARY)


@pytest.fixture
def place(database_location: Location, tmp_path: Path) -> tuple[Location, Place]:
    """A database with people in it, closed, and where the engine keeps its steps."""
    peopled(database_location)
    if not database_location.is_postgres:
        return database_location, Place(f"sqlite:///{tmp_path / 'engine.db'}")
    return database_location, Place(database_location.url, schema=f"engine_{os.getpid()}")


def test_a_run_that_is_killed_while_it_sums_up_does_so_once(
    place: tuple[Location, Place], tmp_path: Path
) -> None:
    log = tmp_path / "tools"
    opened = partial(within, place, log, lambda driven: driven.open(PROMPT))
    checked = partial(within, place, log)
    opened()
    assert in_a_process(partial(drive, place, log))  # makes DBOS's tables
    first = opened()
    read, write = os.pipe()
    assert in_a_process(partial(drive, place, log, said=write))
    os.close(write)
    with os.fdopen(read) as said:
        count = int(said.read())
    whole = checked(partial(_whole, session_id=first))
    number = 5 if place[0].is_postgres else 14
    killed = 0
    for n in range(number):
        session_id = opened()
        # The summary is made in the second half of what happens.
        at = count // 3 + n * (count * 2 // 3 - 5) // number
        killed += not in_a_process(partial(drive, place, log, kill_at=at))
        assert in_a_process(partial(drive, place, log))
        assert checked(partial(_whole, session_id=session_id)) == whole, at
    assert killed > number * 0.7


def _whole(driven: Driven, session_id: str) -> Any:
    assert check(driven.database) == []
    document = valid(driven, session_id)
    assert len(compactions(document)) == 1
    tasks = driven.rows(
        "SELECT k.key, k.status FROM tasks k JOIN runs r ON r.id = k.run_id"
        " JOIN conversations c ON c.id = r.conversation_id"
        " WHERE c.public_id = :id AND k.kind = 'model_task' ORDER BY k.key",
        id=session_id,
    )
    assert tasks == [(key, "completed") for key in ("compaction-1", "r1", "r2", "r3", "r4")]
    billed = driven.rows(
        "SELECT i.status, count(u.id) FROM invocations i JOIN tasks k ON k.id = i.task_id"
        " JOIN runs r ON r.id = k.run_id JOIN conversations c ON c.id = r.conversation_id"
        " LEFT JOIN usage_receipts u ON u.invocation_id = i.id"
        " WHERE c.public_id = :id GROUP BY i.id, i.status",
        id=session_id,
    )
    assert all(receipts == 1 for _, receipts in billed)
    assert sum(status == "completed" for status, _ in billed) == 5
    total = document["final_metrics"]["total_prompt_tokens"]
    assert (account(driven, session_id).input_tokens or 0) >= total
    events = driven.rows(
        "SELECT count(*) FROM events e JOIN conversations c ON c.id = e.conversation_id"
        " WHERE c.public_id = :id AND e.type = 'context_compacted'",
        id=session_id,
    )
    assert events == [(1,)]
    # Which call it is told of, and when, is another each time; what was said is not.
    return without_moments(document)
