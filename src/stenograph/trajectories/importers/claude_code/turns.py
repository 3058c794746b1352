"""Turns of a session as a tree: a rewind makes a second turn after the same one.

Calls that run in parallel fork the tree of lines as well, but open no turn; only prompts do.
"""

from dataclasses import dataclass, field, replace
from typing import TypeAlias

from msgspec import structs

from stenograph.trajectories.importers.claude_code.response import Response
from stenograph.trajectories.importers.draft import Abandoned, StepDraft, TurnStatus

End: TypeAlias = tuple[TurnStatus, str | None]

LOG_ENDED: End = ("canceled", "log_ended")


@dataclass(slots=True, eq=False)
class Turn:
    """A prompt with what followed, up to the next prompt; the root, without one, precedes all."""

    parent: "Turn | None" = None
    steps: list[StepDraft] = field(default_factory=list)
    last: Response | None = None
    #: How it ended, where the log says so.
    end: End | None = None
    #: Nothing more is expected of the model: it was interrupted, or the program answered for it.
    closed: bool = False


def path_to(turn: Turn) -> list[Turn]:
    """Return the turns from the root to this one."""
    path = [turn]
    while (parent := path[-1].parent) is not None:
        path.append(parent)
    return path[::-1]


def ends(path: list[Turn]) -> dict[int, End]:
    """Return how the turns of a path ended, by ordinal, leaving out those that were completed."""
    found = {}
    for ordinal, turn in enumerate(path[1:]):
        end = turn.end or (LOG_ENDED if _breaks_off(turn, turn is path[-1]) else None)
        if end is not None:
            found[ordinal] = end
    return found


def _breaks_off(turn: Turn, is_last: bool) -> bool:
    """Whether the log leaves a turn without an answer.

    A prompt that is followed by another before the model has spoken is only its first half.
    """
    if turn.last is None:
        return is_last
    return bool(turn.last.calls)


def abandoned(turns: list[Turn], main: list[Turn]) -> list[Abandoned]:
    """Return the branches that were left, each from where it left the main line.

    `turns` is every turn in file order. Of a branch that was itself rewound, its last way is the
    branch; what that left is another, which begins with a copy of what both share.
    """
    on_main, kept = set(map(id, main)), set(map(id, main))
    below: dict[int, Turn] = {id(t.parent): t for t in turns if t.parent is not None}
    found = []
    for turn in turns:
        if id(turn) in kept:
            continue
        branch = [turn]
        while (following := below.get(id(branch[-1]))) is not None:
            branch.append(following)
        kept.update(map(id, branch))
        shared = [t for t in path_to(turn)[:-1] if id(t) not in on_main]
        steps = [_copied(step, turn) for part in shared for step in part.steps]
        steps += [step for part in branch for step in part.steps]
        found.append(Abandoned(turn=len(path_to(turn)) - len(shared) - 2, steps=steps))
    return found


def _copied(draft: StepDraft, branch: Turn) -> StepDraft:
    """Return a step as the history of another branch: nobody pays for it twice."""
    step = structs.replace(draft.step, is_copied_context=True, metrics=None)
    key = None if draft.key is None else f"{draft.key}@{branch.steps[0].key}"
    return replace(draft, step=step, key=key, cache_write_tokens=None)
