"""Candidates driven by hand: what the engine writes at each turn of its loop, without a model.

Each function is one step of `engine.drive`, in the verbs that it uses.
"""

from dataclasses import dataclass

from stenograph.engine import calls, rounds, store
from stenograph.engine.choice import Failure, Rules
from stenograph.engine.models.answer import Response, Usage
from stenograph.engine.models.failures import ModelFailedError
from stenograph.engine.models.request import ToolCall
from stenograph.engine.rounds import Question, Round
from stenograph.engine.toolbox import ToolOutcome, ToolSpec
from stenograph.engine.work import load
from stenograph.runs import task as tasks
from stenograph.runs.invocation import Invocation
from stenograph.storage.database import Database, Tx

RULES = Rules()
SEEN = ToolOutcome("completed", "Nothing to see.")
TOOLS = {"look": ToolSpec("look", "Look around.")}


@dataclass(frozen=True)
class Asked:
    """A model call under way."""

    due: Round
    made: Invocation


def take_up(database: Database, candidate: str) -> None:
    """Say that somebody works on a candidate."""
    database.write(lambda tx: rounds.take_up(tx, candidate))


def ask(database: Database, candidate: str) -> Asked:
    """Ask the model for what is due."""

    def begin(tx: Tx) -> Asked:
        due = rounds.begin(tx, RULES, candidate)
        assert isinstance(due, Round), due
        question = rounds.question(tx, RULES, candidate, due)
        assert isinstance(question, Question), question
        made = rounds.ask(tx, question, due, TOOLS)
        assert made is not None
        return Asked(due, made)

    return database.write(begin)


def hear(
    database: Database,
    candidate: str,
    asked: Asked,
    text: str,
    thought: str,
    wanted: int,
    arguments: str = "{}",
) -> None:
    """Write what the model answers, and how many tools it calls."""
    response = Response(
        provider_id="dev",
        model_ref="thinker",
        text=text,
        reasoning=thought,
        reasoning_trace='{"encrypted":"c2VjcmV0"}' if thought else None,
        tool_calls=tuple(ToolCall(f"call_{n}", "look", arguments) for n in range(wanted)),
        usage=Usage(prompt_tokens=10, completion_tokens=2, cached_tokens=4),
        cost_usd=0.5,
        finish_reason="stop",
        request="{}",
        response="{}",
    )
    database.write(lambda tx: rounds.hear(tx, candidate, asked.made, asked.due, response))


def miss(database: Database, candidate: str, asked: Asked) -> None:
    """Write that the model gave no answer, and billed nothing."""
    failure = ModelFailedError("overloaded", "Too many ask")
    database.write(lambda tx: rounds.miss(tx, candidate, asked.made, failure, at_deadline=False))


def give_up(database: Database, candidate: str, asked: Asked, *, late: bool) -> None:
    """End a candidate whose model gave no answer."""
    if late:
        database.write(lambda tx: rounds.run_out(tx, candidate, asked.due))
    else:
        failed = Failure("overloaded", "Too many ask")
        database.write(
            lambda tx: rounds.give_up(tx, candidate, asked.due, failed.kind, failed.message)
        )


def call(database: Database, candidate: str) -> int:
    """Make the calls that wait, and return how many there were."""

    def waiting(tx: Tx) -> list[str]:
        work = load(tx, candidate)
        assert work is not None
        assert work.run is not None
        newest = store.newest_round(tx, work.run.id)
        assert newest is not None
        of = store.calls_of(tx, tasks.find(tx, work.run, newest).id)
        return [key for key, status, _ in of if status not in tasks.TERMINAL]

    with database.read() as tx:
        keys = waiting(tx)
    for key in keys:
        begun = database.write(lambda tx, key=key: calls.begin(tx, candidate, key, TOOLS))
        assert isinstance(begun, calls.Begun), begun
        database.write(lambda tx, key=key: calls.settle(tx, candidate, key, SEEN))
    return len(keys)


def run_id(database: Database, candidate: str) -> str:
    """Return the public id of a candidate's run, however it is seen."""
    with database.read() as tx:
        work = load(tx, candidate)
    assert work is not None
    assert work.run is not None
    return work.run.public_id
