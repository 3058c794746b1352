"""The pieces of a history, for what is summed up or left out whole."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from stenograph.engine.models.request import Message

Kind: TypeAlias = Literal["system", "summary", "turn", "prompt", "round", "steer", "note"]


@dataclass(frozen=True, slots=True)
class Unit:
    """Messages that stand or fall together: an earlier turn, or a part of the running one.

    `at` is a turn's position, or the place of a round or steer. `task_id` and `used` are of the
    last model call in it that says how many tokens its request and answer had; the last `behind`
    messages came after that.
    """

    kind: Kind
    messages: tuple[Message, ...]
    at: int = 0
    task_id: int | None = None
    used: int | None = None
    behind: int = 0


def flat(told: Sequence[Unit]) -> tuple[Message, ...]:
    """Return the messages of units."""
    return tuple(message for unit in told for message in unit.messages)
