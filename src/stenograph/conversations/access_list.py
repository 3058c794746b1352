"""The access list of a conversation: who is named, and what everyone else may do.

Creator and answerer may always do everything, so they are never in it (agent-api.md 2).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from stenograph.clock import now
from stenograph.conversations import access, store, store_access
from stenograph.conversations.access import Conversation
from stenograph.errors import ConflictError, RefusedError
from stenograph.events.journal import Event, append
from stenograph.storage.database import Tx

AccessLevel: TypeAlias = Literal["full", "read", "none"]

#: How many people one conversation may name.
ENTRIES = 100


@dataclass(frozen=True, slots=True)
class Entry:
    """Named access; `who` is a public id or a handle (`@` may lead it)."""

    who: str
    level: AccessLevel


@dataclass(frozen=True, slots=True)
class Named:
    """Named access as it is read."""

    public_id: str
    handle: str
    level: AccessLevel


def listed(tx: Tx, conversation_id: int) -> list[Named]:
    """Return who is named, in order of joining the organization."""
    return [Named(*row) for row in store_access.entries(tx, conversation_id)]


def name(tx: Tx, workspace_id: int, conversation_id: int, entries: Sequence[Entry]) -> None:
    """Give named people their own level; of one named twice, the last counts.

    Raises `ConflictError` (`entry_limit_reached`) or `RefusedError` (`principal_not_eligible`).
    """
    if len(entries) > ENTRIES:
        raise ConflictError(
            f"A conversation names at most {ENTRIES} people", code="entry_limit_reached"
        )
    people = members(tx, workspace_id, [entry.who for entry in entries], "principal_not_eligible")
    levels = {
        person: entry.level for person, entry in zip(people, entries, strict=True)
    }  # fmt: skip
    tx.insert_many(
        "conversation_access",
        ("conversation_id", "principal_id", "level"),
        [(conversation_id, who, level) for who, level in levels.items()],
    )


def members(tx: Tx, workspace_id: int, people: Sequence[str], code: str) -> list[int]:
    """Return the row ids of people by public id or handle.

    Raises `RefusedError` with `code` for one who does not belong to the workspace.
    """
    names = [who.removeprefix("@") for who in people]
    found = store_access.members_named(tx, workspace_id, names)
    if not found.keys() >= set(names):
        raise RefusedError("Someone named here does not belong to this workspace", code=code)
    return [found[name] for name in names]


def replace(
    tx: Tx, conversation: Conversation, default: AccessLevel, entries: Sequence[Entry]
) -> None:
    """Set who may do what; whoever was named and is not any more has the default.

    Readers who wait are woken, and look again with what they may do now. Raises `ForbiddenError`,
    `NotFoundError`, and what `name` raises.
    """
    access.require_full(conversation)
    access.require_workspace(conversation)
    found = access.hold(tx, conversation)
    store_access.clear(tx, found.id)
    name(tx, found.workspace_id, found.id, entries)
    store.update(tx, found.id, access_default=default, updated_at=now())
    append(tx, found.id, Event("access_changed", payload={"default": default}))
