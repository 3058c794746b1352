"""Sessions of any length, as an import makes them."""

from collections.abc import Iterator

from stenograph.accounts.access import Caller
from stenograph.storage.database import Database
from stenograph.trajectories.atif.format import (
    Agent,
    Metrics,
    Observation,
    ObservationResult,
    Step,
    ToolCall,
)
from stenograph.trajectories.importers.draft import SessionDraft, StepDraft
from stenograph.trajectories.recording.record import record
from stenograph.trajectories.recording.session import Recorded

PROSE = "The test expects the clamped day to come back, so the anchor has to be stored as well. "


def many_turns(database: Database, owner: Caller, turns: int) -> Recorded:
    """Record a session of `turns` questions, each answered by one model call."""
    return _record(database, owner, f"{turns} turns", list(_talk(turns)))


def one_long_turn(database: Database, owner: Caller, calls: int) -> Recorded:
    """Record a session of one question that took `calls` model calls, each with a tool call."""
    return _record(database, owner, f"{calls} calls", list(_work(calls)))


def _record(database: Database, owner: Caller, key: str, steps: list[StepDraft]) -> Recorded:
    agent = Agent(name="bench", version="1", model_name="heron-large")
    draft = SessionDraft(format="claude-code", agent=agent, steps=steps, key=key, title=key)
    return database.write(lambda tx: record(tx, owner, draft))[0]


def _talk(turns: int) -> Iterator[StepDraft]:
    for number in range(turns):
        yield StepDraft("prompt", Step(step_id=1, source="user", message=f"Question {number}?"))
        yield StepDraft("agent", _answer(f"Answer {number}. {PROSE}"))


def _work(calls: int) -> Iterator[StepDraft]:
    yield StepDraft("prompt", Step(step_id=1, source="user", message="Find the fault."))
    for number in range(calls):
        step = _answer(f"Step {number}. {PROSE}")
        call = f"call_{number:08d}"
        step.tool_calls = [
            ToolCall(
                tool_call_id=call,
                function_name="bash",
                arguments={"command": f"sed -n '{number},+40p' src/calendar/recurrence.py"},
            )
        ]
        content = "\n".join(f"{line}: {PROSE}" for line in range(14))
        step.observation = Observation(
            results=[ObservationResult(source_call_id=call, content=content)]
        )
        yield StepDraft("agent", step)


def _answer(text: str) -> Step:
    return Step(
        step_id=1,
        source="agent",
        message=text,
        reasoning_content=PROSE * 4,
        metrics=Metrics(prompt_tokens=1_200, completion_tokens=88, cached_tokens=900),
    )
