"""Turns of a thread: a prompt with what followed, up to the next prompt, and how each ended."""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from stenograph.trajectories.importers.codex.response import Response
from stenograph.trajectories.importers.draft import Abandoned, StepDraft, TurnStatus

End: TypeAlias = tuple[TurnStatus, str | None]

LOG_ENDED: End = ("canceled", "log_ended")


@dataclass(slots=True, eq=False)
class Turn:
    """One turn; the first of a thread has no prompt and holds what came before all of them."""

    steps: list[StepDraft] = field(default_factory=list)
    last: Response | None = None
    #: How it ended, where the log says so.
    end: End | None = None
    #: Whether the program's task for it was ended. Old logs tell nothing of tasks.
    task: Literal["untold", "running", "ended"] = "untold"


def ends(turns: list[Turn]) -> dict[int, End]:
    """Return how turns ended, by ordinal, leaving out those that were completed."""
    prompted = turns[1:]
    found = {}
    for ordinal, turn in enumerate(prompted):
        end = turn.end
        if end is None and _breaks_off(turn, turn is prompted[-1]):
            end = LOG_ENDED
        if end is not None:
            found[ordinal] = end
    return found


def _breaks_off(turn: Turn, is_last: bool) -> bool:
    """Whether the log leaves a turn without an answer.

    One whose task still runs may have its answer already: only the line that ends it is to come.
    Where no task is told, a prompt that another follows at once is only its first half.
    """
    if turn.task == "ended":
        return False
    said = [step.part for step in turn.steps if step.part != "system"]
    if turn.last is None or said[-1] != "agent":
        return is_last or turn.task == "running"
    return bool(turn.last.calls)


def roll_back(turns: list[Turn], count: int) -> Abandoned | None:
    """Take the last `count` turns off, as the person did."""
    count = min(count, len(turns) - 1)
    if count <= 0:
        return None
    left = turns[-count:]
    del turns[-count:]
    return Abandoned(turn=len(turns) - 1, steps=[step for turn in left for step in turn.steps])
