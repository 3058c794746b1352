"""The journal: events of a conversation, numbered 1, 2, 3 … in the order in which they commit.

An event names rows and never copies their text, so that what retention deletes is in no event.
The number is taken from the conversation's own row inside the writing transaction: whoever
commits later reads later, and a reader that follows the numbers misses nothing (agent-api.md 7).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from stenograph.clock import now
from stenograph.events import catalogue, store, waiting
from stenograph.ids import new_id
from stenograph.storage.database import Tx

COLUMNS = (
    "public_id", "conversation_id", "sequence", "type", "turn_id", "variant_id", "run_id",
    "task_id", "step_id", "payload", "occurred_at",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened; `type` is a word of the catalogue.

    The ids are row ids. `payload` holds only words and numbers (statuses, keys, public ids),
    never what anyone said. `occurred_at` is in microseconds; None: now.
    """

    type: catalogue.Type
    turn_id: int | None = None
    variant_id: int | None = None
    run_id: int | None = None
    task_id: int | None = None
    step_id: int | None = None
    payload: dict[str, Any] = field(default_factory=dict)
    occurred_at: int | None = None


def append(tx: Tx, conversation_id: int, *events: Event) -> int:
    """Write events in order and wake who waits for them. Returns the last sequence number."""
    return append_all(tx, conversation_id, events)


def append_all(tx: Tx, conversation_id: int, events: Sequence[Event]) -> int:
    """As `append`, for a batch."""
    first = store.take_sequences(tx, conversation_id, len(events))
    tx.insert_many(
        "events",
        COLUMNS,
        [
            (
                new_id(),
                conversation_id,
                sequence,
                e.type,
                e.turn_id,
                e.variant_id,
                e.run_id,
                e.task_id,
                e.step_id,
                msgspec.json.encode(e.payload).decode(),
                now() if e.occurred_at is None else e.occurred_at,
            )
            for sequence, e in enumerate(events, first)
        ],
    )
    last = first + len(events) - 1
    tx.after_commit(lambda: waiting.announce(conversation_id, last))
    return last
