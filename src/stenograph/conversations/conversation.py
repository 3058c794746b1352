"""Conversations: making one, listing them, and the facts that surround what is said."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from stenograph.accounts.access import Caller
from stenograph.clock import now
from stenograph.conversations import access, store
from stenograph.conversations.access import Conversation, Workspace
from stenograph.conversations.limits import check_metadata, check_text
from stenograph.errors import ConflictError, RefusedError
from stenograph.ids import new_id
from stenograph.storage.database import Row, Tx

AccessLevel: TypeAlias = Literal["full", "read", "none"]
#: Which conversations a list holds; `working` are the living ones at the top.
Which: TypeAlias = Literal["working", "sides", "archived", "children"]
OrderBy: TypeAlias = Literal["public_id", "last_activity_at"]

#: How many people one conversation may name.
ENTRIES = 100
#: The columns behind each order; row ids run in the order of making, as public ids do.
KEYS: dict[OrderBy, tuple[str, ...]] = {
    "public_id": ("id",),
    "last_activity_at": ("last_activity_at", "id"),
}


@dataclass(frozen=True, slots=True)
class Entry:
    """Named access; `who` is a public id or a handle (`@` may lead it)."""

    who: str
    level: AccessLevel


@dataclass(frozen=True, slots=True)
class Document:
    """A conversation with the public ids around it. Times are in microseconds."""

    id: int
    public_id: str
    title: str | None
    answerer: str | None
    archived_at: int | None
    billing_subject: str | None
    parent: str | None
    spawn_key: str | None
    label: str | None
    forked_from_turn: str | None
    forked_from_variant: str | None
    source: str | None
    side: int
    active_turn: str | None
    context_revision: int
    last_activity_at: int
    created_at: int
    updated_at: int
    metadata: str
    access_default: AccessLevel
    next_sequence: int

    def key(self, order_by: OrderBy) -> tuple[int, ...]:
        """Return what a cursor behind this row holds."""
        return (self.id,) if order_by == "public_id" else (self.last_activity_at, self.id)


@dataclass(frozen=True, slots=True)
class Usage:
    """What a conversation's model calls took. Prompt tokens hold the cached ones.

    `cost_usd` sums the calls whose cost is known; `uncosted` is how many have none.
    """

    requests: int
    prompt_tokens: int
    cached_tokens: int
    cache_write_tokens: int
    completion_tokens: int
    reasoning_tokens: int
    cost_usd: float
    uncosted: int


@dataclass(frozen=True, slots=True)
class Context:
    """What the newest model call took, and which model it was."""

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    provider_id: str | None
    model_ref: str | None


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the full form of a conversation adds."""

    entries: list[tuple[str, str, AccessLevel]]
    usage: Usage
    context: Context | None


def create(
    tx: Tx,
    caller: Caller,
    workspace: Workspace,
    *,
    title: str | None = None,
    metadata: dict[str, Any] | None = None,
    billing_subject: str | None = None,
    answerer: str | None = None,
    access_default: AccessLevel = "full",
    entries: Sequence[Entry] = (),
) -> Conversation:
    """Make a conversation; `answerer` is the public id or handle of who answers in it.

    Raises `ConflictError` (`workspace_not_active`, `entry_limit_reached`) or `RefusedError`
    (`answerer_not_eligible`, `principal_not_eligible`, `validation_failed`).
    """
    if workspace.state != "active":
        raise ConflictError("The workspace is not active", code="workspace_not_active")
    check_text("title", title or "", longest=255)
    check_text("billing_subject", billing_subject or "", longest=255)
    answerer_id = None
    if answerer is not None:
        answerer_id = _member(tx, workspace, answerer, "answerer_not_eligible")
    public_id = new_id()
    conversation_id = store.add_conversation(
        tx,
        now(),
        public_id=public_id,
        workspace_id=workspace.id,
        creator_id=caller.principal_id,
        answerer_id=answerer_id,
        title=title,
        metadata=check_metadata(metadata),
        billing_subject=billing_subject,
        access_default=access_default,
    )
    name(tx, workspace, conversation_id, entries)
    return access.find(tx, caller, workspace.public_id, public_id)


def name(tx: Tx, workspace: Workspace, conversation_id: int, entries: Sequence[Entry]) -> None:
    """Give named people their own level; of one named twice, the last counts."""
    if len(entries) > ENTRIES:
        raise ConflictError(
            f"A conversation names at most {ENTRIES} people", code="entry_limit_reached"
        )
    levels = {
        _member(tx, workspace, entry.who, "principal_not_eligible"): entry.level
        for entry in entries
    }
    tx.insert_many(
        "conversation_access",
        ("conversation_id", "principal_id", "level"),
        [(conversation_id, who, level) for who, level in levels.items()],
    )


def _member(tx: Tx, workspace: Workspace, who: str, code: str) -> int:
    found = store.member(tx, workspace.id, who.removeprefix("@"))
    if found is None:
        raise RefusedError("Someone named here does not belong to this workspace", code=code)
    return found


def document(tx: Tx, conversation: Conversation) -> Document:
    """Return the facts of a conversation."""
    return Document(*store.document(tx, conversation.id))


def page(
    tx: Tx,
    caller: Caller,
    workspace: Workspace,
    which: Which = "working",
    *,
    parent: Conversation | None = None,
    order_by: OrderBy = "public_id",
    descending: bool = False,
    after: Sequence[int] | None = None,
    limit: int = 25,
) -> list[Document]:
    """List up to `limit` conversations the caller may read, behind the key `after`."""
    rows = store.conversations(
        tx,
        caller.principal_id,
        workspace.id,
        which,
        columns=KEYS[order_by],
        after=after,
        limit=limit,
        descending=descending,
        parent_id=parent.id if parent else 0,
    )
    return [Document(*row) for row in rows]


def surroundings(tx: Tx, conversation: Conversation) -> Surroundings:
    """Return who is named, and what the conversation's model calls took."""
    entries = [(who, handle, level) for who, handle, level in store.entries(tx, conversation.id)]
    last = store.last_receipt(tx, conversation.id)
    return Surroundings(
        entries,
        _usage(store.usage(tx, conversation.id)),
        None if last is None else _context(last),
    )


def _context(row: Row) -> Context:
    prompt, completion, cached, provider_id, model_ref = row
    return Context(prompt or 0, completion or 0, cached or 0, provider_id, model_ref)


def _usage(row: Row) -> Usage:
    requests, prompt, cached, written, completion, reasoning, cost, uncosted = row
    # PostgreSQL sums whole numbers to decimals.
    return Usage(
        int(requests),
        int(prompt),
        int(cached),
        int(written),
        int(completion),
        int(reasoning),
        float(cost),
        int(uncosted),
    )
