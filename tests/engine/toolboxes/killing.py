"""A program that kills engines with subagents and scripts at work, again and again, and looks at
what is left: `killing.py DATABASE_URL FOLDER PLACES`.

A program of its own, because a process that has run a script cannot be forked.
"""

import json
import sys
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

from engine import test_recovery
from engine.driving import Driven, Tools, scene
from engine.test_recovery import drive, in_a_process, within
from exports import exported
from stenograph.engine.engine import Place
from stenograph.engine.toolbox import Together
from stenograph.engine.toolboxes.script import Script
from stenograph.engine.toolboxes.spawn import Spawn
from stenograph.retention.integrity import check
from stenograph.storage.location import Location

CODE = """
import asyncio
a = read(path='a')
b, c = await asyncio.gather(start('read', path='b'), start('spawn', prompt='Say c'))
print(a, b, c, read(path='d'))
"""
PROMPT = scene(
    f"""
[[round]]
say = "All at once."
call = [
  {{ tool = "spawn", arguments = {{ prompt = "Say one" }} }},
  {{ tool = "script", arguments = {{ code = {json.dumps(CODE)} }} }},
]
[[round]]
say = "{{results}}"
"""
)
ANSWER = "You said: Say one, the content of a the content of b You said: Say c the content of d"
TASKS = {
    ("r1", "completed", None),
    ("r2t0", "completed", None),
    ("r2t1", "completed", None),
    ("r2t2", "completed", "r2t1"),
    ("r2t3", "completed", "r2t1"),
    ("r2t4", "completed", "r2t1"),
    ("r2t5", "completed", "r2t1"),
    ("r2", "completed", None),
}


def checked(log: Path, session_id: str, driven: Driven) -> Any:
    """Hold what is left of a session to the promises; returns what readers are told of it."""
    assert check(driven.database) == []
    ((candidate, conversation, content, status),) = driven.rows(
        "SELECT v.public_id, c.id, v.content, v.status FROM conversations c"
        " JOIN turns t ON t.conversation_id = c.id JOIN variants v ON v.turn_id = t.id"
        " WHERE c.public_id = :id",
        id=session_id,
    )
    assert (content, status) == (ANSWER, "completed")
    tasks = driven.rows(
        "SELECT k.key, k.status, p.key FROM runs r JOIN tasks k ON k.run_id = r.id"
        " LEFT JOIN tasks p ON p.id = k.parent_id AND p.kind = 'tool_task'"
        " WHERE r.conversation_id = :id",
        id=conversation,
    )
    assert set(tasks) == TASKS, tasks
    assert len(tasks) == len(TASKS)
    feed = driven.rows(
        "SELECT kind, source, content FROM messages WHERE conversation_id = :id ORDER BY cursor",
        id=conversation,
    )
    assert feed[0][:2] == ("prompt", None)
    assert feed[-1][:2] == ("reply", None)
    reports = sorted(it[2] for it in feed[1:-1])
    assert reports == ["You said: Say c", "You said: Say one"], feed
    children = driven.rows(
        "SELECT s.status, s.outcome, (SELECT count(*) FROM runs r WHERE r.conversation_id ="
        " s.conversation_id) FROM sessions s WHERE s.parent_conversation_id = :id",
        id=conversation,
    )
    assert children == [("exit", "success", 1)] * 2
    _check_tools(log, candidate)
    document = exported(driven.database, session_id)
    calls = [call for step in document["steps"] for call in step.get("tool_calls", ())]
    totals = [it["final_metrics"] for it in document["subagent_trajectories"]]
    return (
        [(call["function_name"], call["arguments"], "extra" in call) for call in calls],
        sorted(it["total_prompt_tokens"] for it in totals),
        document["final_metrics"]["extra"]["session_totals"]["total_steps"],
    )


def _check_tools(log: Path, candidate: str) -> None:
    """No call was begun twice; done again, it was said that its end had not been seen."""
    made = [line.split() for line in log.read_text().splitlines() if line.startswith(candidate)]
    begun = Counter(key for _, key, resumed in made if resumed == "0")
    assert set(begun.values()) <= {1}, begun
    # The spawn of the script may have its place before the second file's.
    assert {key for _, key, _ in made} <= {"r2t2", "r2t3", "r2t4", "r2t5"}


def _count(world: tuple[Location, Place], log: Path, folder: Path) -> int:
    """How many things happen in a run that nobody disturbs."""
    found = folder / "count"
    with found.open("w") as file:
        assert in_a_process(partial(drive, world, log, said=file.fileno()))
    return int(found.read_text())


def main(url: str, folder: Path, places: int) -> None:
    location = Location(url)
    place = Place(f"sqlite:///{folder / 'engine.db'}")
    if location.is_postgres:
        place = Place(url, schema="engine_killed")
    world, log = (location, place), folder / "tools"
    test_recovery.peopled(location)
    test_recovery.Tools = lambda log: Together(Tools(log=log), Spawn(), Script())

    def opened() -> str:
        return within(world, log, lambda driven: driven.open(PROMPT))

    opened()
    _count(world, log, folder)  # the first start makes DBOS's tables
    session_id = opened()
    count = _count(world, log, folder)
    whole = within(world, log, partial(checked, log, session_id))
    killed = 0
    for number in range(places):
        session_id = opened()
        at = 1 + number * (count - 1) // places
        killed += not in_a_process(partial(drive, world, log, kill_at=at))
        # And once more, on the way back.
        in_a_process(partial(drive, world, log, kill_at=max(count - at, 40)))
        assert in_a_process(partial(drive, world, log))
        assert within(world, log, partial(checked, log, session_id)) == whole, at
    assert killed > places * 0.7, killed


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
