"""What an engine wrote is pruned like what was imported: nothing of it is left in any file, and the
conversation goes on with what people and the agent said to each other."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from engine.driving import Driven, Tools, scene
from engine.test_inputs import ask, requests, told
from people import Org
from retention import bytes_left
from stenograph.conversations import conversation as conversations
from stenograph.conversations import workspace as workspaces
from stenograph.conversations.access import Conversation
from stenograph.conversations.attachment import File
from stenograph.engine.engine import Place
from stenograph.engine.toolbox import ToolContext, ToolOutcome, ToolSpec
from stenograph.engine.work import Work
from stenograph.retention.integrity import check
from stenograph.retention.prune import prune
from stenograph.runs.request import Request, read
from stenograph.sessions import conversing
from stenograph.storage.database import Database
from stenograph.storage.location import Location

#: What stands in no prompt and no answer.
WORDS = {"output": "m7output7m", "definition": "m7definition7m", "message": "peek-a-peek-a-"}
QUESTION = scene(
    """
[[round]]
say = "peek-a-"
repeat = 3
call = [{ tool = "look" }]
[[round]]
say = "All is well."
"""
)


@dataclass
class Telling(Tools):
    """A tool whose name is all that people read of it."""

    async def specs(self, work: Work) -> tuple[ToolSpec, ...]:
        return (ToolSpec("look", WORDS["definition"]),)

    async def call(self, name: str, arguments: dict[str, Any], context: ToolContext) -> ToolOutcome:
        return ToolOutcome("completed", WORDS["output"])


@pytest.fixture
def driven(database: Database, org: Org, tmp_path: Path) -> Driven:
    place = Place(f"sqlite:///{tmp_path / 'data' / 'engine.db'}")
    return Driven(database, org.owner, place, tools=Telling())


@pytest.fixture
def talk(driven: Driven) -> Conversation:
    """A question with a file, and a follow-up with another, both answered by one run."""

    def make(tx: Any) -> Conversation:
        workspace = workspaces.create(tx, driven.owner, name="w", access_mode="account_wide")
        made = conversations.create(tx, driven.owner, workspace, title=None)
        conversing.begin(tx, driven.owner, made.id)
        return made

    made = driven.write(make)
    ask(driven, made, QUESTION, files=[File("a", "text/plain", b"aaa")], tool_names=("look",))
    ask(driven, made, "Now.", files=[File("b", "text/plain", b"bbb")], delivery_mode="steer")
    driven.settle()
    return made


def places(tmp_path: Path, database: Database, location: Location) -> set[str]:
    """Where the words still stand: the record's files, and the engine's."""
    engine = b"".join(it.read_bytes() for it in (tmp_path / "data").glob("engine.db*"))
    assert engine
    found = {name for name, word in WORDS.items() if word.encode() in engine}
    return found | bytes_left.in_files(database, location, WORDS)


def test_no_byte_of_a_run_that_was_driven_here_is_left(
    driven: Driven, talk: Conversation, database_location: Location, tmp_path: Path
) -> None:
    assert bytes_left.in_tables(driven.database, WORDS) == set(WORDS)
    done = prune(driven.database, 0)
    assert (done.erased, done.reports[0].runs, done.reports[0].skipped) == (True, 1, 0)
    assert bytes_left.in_tables(driven.database, WORDS) == set()
    assert places(tmp_path, driven.database, database_location) == set()
    assert check(driven.database) == []


def test_the_next_request_has_question_follow_up_and_answer_with_their_files(
    driven: Driven, talk: Conversation
) -> None:
    prune(driven.database, 0, rewrite=False)
    driven.ask(talk, "Go on", tool_names=())
    driven.settle()
    (sent,) = requests(driven)
    asked, steered, *_ = sent.entries
    assert [entry["role"] for entry in sent.entries] == ["user", "user", "assistant", "user"]
    assert (asked["parts"][0]["text"], "\naaa\n" in asked["parts"][1]["text"]) == (QUESTION, True)
    assert (steered["parts"][0]["text"], "\nbbb\n" in steered["parts"][1]["text"]) == ("Now.", True)
    assert told(sent)[2:] == [("assistant", "All is well."), ("user", "Go on")]
    assert check(driven.database) == []


def _sent(driven: Driven, runs: str) -> list[tuple[int, Request]]:
    """Return every request of runs that is there, put together from those before it."""
    with driven.database.read() as tx:
        calls = tx.rows(
            "SELECT i.id FROM invocations i JOIN tasks k ON k.id = i.task_id"
            f" JOIN runs r ON r.id = k.run_id WHERE {runs} ORDER BY i.id"
        )
        return [(row_id, read(tx, row_id)) for (row_id,) in calls]


def test_no_request_rests_on_one_of_another_run(driven: Driven, talk: Conversation) -> None:
    """Each run's first request says all of what was before it, so that this may go."""
    ask(driven, talk, QUESTION, tool_names=("look",))
    driven.settle()
    newer = "r.id = (SELECT max(id) FROM runs)"
    before = _sent(driven, newer)
    assert len(before) == 2
    assert WORDS["output"] in str(before[0][1].entries)  # that of the first run
    driven.write(lambda tx: tx.run(f"UPDATE runs AS r SET completed_at = 1 WHERE NOT {newer}"))
    done = prune(driven.database, 1, rewrite=False)
    assert done.reports[0].runs == 1
    assert _sent(driven, newer) == before == _sent(driven, "1 = 1")
