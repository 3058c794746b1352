"""Reading the journal of a conversation (agent-api.md 7)."""

from dataclasses import dataclass
from typing import Any

import msgspec

from stenograph.conversations import store
from stenograph.conversations.access import Conversation
from stenograph.storage.database import Tx


@dataclass(frozen=True, slots=True)
class Happening:
    """An event as it is read; `payload` names rows by their public ids and keys."""

    public_id: str
    sequence: int
    type: str
    occurred_at: int
    payload: dict[str, Any]


def page(tx: Tx, conversation: Conversation, after: int, limit: int) -> list[Happening]:
    """Return up to `limit` events behind the sequence number `after`, ascending."""
    found = []
    for row in store.events(tx, conversation.id, after, limit):
        public_id, sequence, kind, at, payload, turn, turn_kind, variant, run, task = row
        named = {
            "turn_public_id": turn,
            "turn_kind": turn_kind if kind.startswith("turn_") else None,
            "variant_public_id": variant,
            "run_public_id": run,
            "task_key": task,
        }
        own = msgspec.json.decode(payload, type=dict[str, Any])
        whole = {k: v for k, v in named.items() if v is not None} | own
        found.append(Happening(public_id, sequence, kind, at, whole))
    return found


def watermark(conversation: Conversation) -> int:
    """Return the number of the newest event; 0 before the first."""
    return conversation.next_sequence - 1
