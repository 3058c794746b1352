"""Conversations: making one, listing them, and the facts that surround what is said."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from msgspec import UNSET, UnsetType

from stenograph.accounts.access import Caller
from stenograph.clock import now
from stenograph.conversations import access, access_list, runner, store, store_inputs, usage
from stenograph.conversations.access import Conversation, Workspace
from stenograph.conversations.access_list import AccessLevel, Entry, Named
from stenograph.conversations.limits import check_metadata, check_text
from stenograph.conversations.runner import Runner
from stenograph.conversations.usage import Context, Usage
from stenograph.errors import ConflictError
from stenograph.ids import new_id
from stenograph.storage.database import Tx

#: Which conversations a list holds; `working` are the living ones at the top.
Which: TypeAlias = Literal["working", "sides", "archived", "children"]
OrderBy: TypeAlias = Literal["public_id", "last_activity_at"]

#: The columns behind each order; row ids run in the order of making, as public ids do.
KEYS: dict[OrderBy, tuple[str, ...]] = {
    "public_id": ("id",),
    "last_activity_at": ("last_activity_at", "id"),
}


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
class Surroundings:
    """What the full form of a conversation adds. `held`: its queue stands still."""

    entries: list[Named]
    usage: Usage
    context: Context | None
    runner: Runner | None
    held: bool


def create(
    tx: Tx,
    caller: Caller,
    workspace: Workspace,
    *,
    title: str | None = None,
    metadata: dict[str, Any] | None = None,
    billing_subject: str | None = None,
    answerer: str | None = None,
    default_runner: str | None = None,
    access_default: AccessLevel = "full",
    entries: Sequence[Entry] = (),
) -> Conversation:
    """Make a conversation; `answerer` is the public id or handle of who answers in it,
    `default_runner` the public id of a device.

    Raises `ConflictError` (`workspace_not_active`, `entry_limit_reached`), `RefusedError`
    (`answerer_not_eligible`, `runner_not_eligible`, `principal_not_eligible`,
    `validation_failed`), or `NotFoundError` if the workspace is gone.
    """
    if workspace.state != "active":
        raise ConflictError("The workspace is not active", code="workspace_not_active")
    check_text("title", title or "", longest=255)
    check_text("billing_subject", billing_subject or "", longest=255)
    answerer_id = None
    if answerer is not None:
        (answerer_id,) = access_list.members(tx, workspace.id, [answerer], "answerer_not_eligible")
    runner_id = None if default_runner is None else runner.require(tx, caller, default_runner)
    public_id = new_id()
    conversation_id = store.add_conversation(
        tx,
        now(),
        public_id=public_id,
        workspace_id=workspace.id,
        creator_id=caller.principal_id,
        answerer_id=answerer_id,
        default_runner_id=runner_id,
        title=title,
        metadata=check_metadata(metadata),
        billing_subject=billing_subject,
        access_default=access_default,
    )
    access_list.name(tx, workspace.id, conversation_id, entries)
    made = access.find(tx, caller, workspace.public_id, public_id)
    # Its row holds the workspace's, which another request may just have archived.
    access.require_workspace(made)
    return made


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


def update(
    tx: Tx,
    conversation: Conversation,
    *,
    title: str | UnsetType | None = UNSET,
    metadata: dict[str, Any] | UnsetType = UNSET,
) -> None:
    """Set the title, or all of the metadata; what is left out stays.

    Raises `ForbiddenError`, `ConflictError` (`workspace_not_active`, `conversation_archived`), or
    `RefusedError` (`validation_failed`).
    """
    access.require_full(conversation)
    held = access.hold(tx, conversation)
    access.require_open(held)
    sets: dict[str, str | None] = {}
    if title is not UNSET:
        check_text("title", title or "", longest=255)
        sets["title"] = title
    if metadata is not UNSET:
        sets["metadata"] = check_metadata(metadata)
    if sets:
        store.update(tx, held.id, updated_at=now(), **sets)


def surroundings(tx: Tx, conversation: Conversation) -> Surroundings:
    """Return who is named, what the conversation's model calls took, and what its queue does."""
    return Surroundings(
        entries=access_list.listed(tx, conversation.id),
        usage=usage.total(tx, conversation.id),
        context=usage.context(tx, conversation.id),
        runner=runner.of(tx, conversation.id),
        held=store_inputs.is_held(tx, conversation.id, now()),
    )
