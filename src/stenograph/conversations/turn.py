"""Turns: the slots of a conversation, as they look from it."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from msgspec import Struct

from stenograph.accounts.principal import Kind as PrincipalKind
from stenograph.clock import now
from stenograph.conversations import access, store, store_turns
from stenograph.conversations.access import Conversation
from stenograph.errors import ConflictError, NotFoundError
from stenograph.events.journal import Event, append
from stenograph.ids import new_id
from stenograph.storage.database import Row, Tx

Kind: TypeAlias = Literal["message", "direct_reply", "compaction_summary"]
Role: TypeAlias = Literal["user", "assistant", "system", "tool"]
Status: TypeAlias = Literal["pending", "running", "completed", "failed", "canceled", "timed_out"]
Visibility: TypeAlias = Literal["visible", "excluded_from_context", "hidden"]

UNSETTLED: tuple[Status, ...] = ("pending", "running")


class Turn(Struct, frozen=True):
    """A turn as it looks from one conversation; `conversation_id` is the one that owns it.

    A Struct, as all that pages hold many of: it is built five times as fast as a dataclass.
    """

    id: int
    public_id: str
    conversation_id: int
    position: int
    kind: Kind
    role: Role
    status: Status
    visibility: Visibility
    deleted_at: int | None
    inherited: bool
    origin: str
    active_variant_id: int | None
    created_at: int


class Speaker(Struct, frozen=True):
    """Who said it."""

    public_id: str
    handle: str
    kind: PrincipalKind
    display_name: str


class Listed(Struct, frozen=True):
    """A turn with the people and the input around it, by public ids."""

    turn: Turn
    input: str | None
    answerer: str | None
    speaker: Speaker | None


@dataclass(frozen=True, slots=True)
class Sender:
    """Whose call opened a subagent's first turn, by public ids and the call's key."""

    conversation: str
    run: str
    task_key: str


def find(tx: Tx, conversation: Conversation, public_id: str, *, concealed: bool = False) -> Turn:
    """Return a turn of the conversation, its own or inherited, hidden or not.

    Raises `NotFoundError` for one that is unknown or, unless `concealed`, concealed here.
    """
    row = store_turns.turn(tx, conversation.id, public_id)
    if row is None:
        raise NotFoundError("Not found")
    turn = _turn(row)
    if turn.deleted_at is not None and not concealed:
        raise NotFoundError("Not found")
    return turn


def _turn(row: Row) -> Turn:
    columns = (*row[:9], bool(row[9]), *row[10:])
    return Turn(*columns)


def window(
    tx: Tx,
    conversation: Conversation,
    *,
    after: int | None = None,
    before: int | None = None,
    limit: int = 20,
    hidden: bool = False,
    summaries: bool = True,
) -> list[Listed]:
    """Return turns in order of position, between two positions that are not themselves included.

    With `before` alone the nearest older ones, otherwise the oldest behind `after`. Concealed
    turns are left out, hidden ones unless `hidden`, and those of compactions without `summaries`.
    """
    ancestors: list[tuple[int, int | None]] = []
    if conversation.is_fork:
        lowest = -1 if after is None else after
        ancestors = [
            (owner, boundary)
            for owner, boundary in store_turns.scopes(tx, conversation.id)
            if boundary > lowest
        ]
    rows = store_turns.window(
        tx,
        conversation.id,
        [*ancestors, (conversation.id, None)],
        after=after,
        before=before,
        limit=limit,
        newest=before is not None and after is None,
        hidden=hidden,
        summaries=summaries,
    )
    return [_listed(row) for row in rows]


def _listed(row: Row) -> Listed:
    about, _ids, (sent, answerer, *speaker) = row[:13], row[13:16], row[16:]
    return Listed(_turn(about), sent, answerer, None if speaker[0] is None else Speaker(*speaker))


def look(tx: Tx, conversation: Conversation, turn: Turn) -> Listed:
    """Return a turn that was found, with what is around it."""
    owner = (turn.conversation_id, turn.position if turn.inherited else None)
    (row,) = store_turns.window(
        tx,
        conversation.id,
        [owner],
        after=turn.position - 1,
        before=turn.position + 1,
        limit=1,
        newest=False,
        hidden=True,
    )
    return _listed(row)


def open(
    tx: Tx,
    conversation_id: int,
    *,
    kind: Kind = "direct_reply",
    role: Role = "assistant",
    status: Status = "running",
    visibility: Visibility = "visible",
    origin: str = "person",
    speaker_id: int | None = None,
    answerer_id: int | None = None,
    input_id: int | None = None,
    announce: bool = True,
) -> Turn:
    """Put a turn at the end of a conversation; an unsettled one is its active turn.

    `announce` false: the caller writes the event `turn_created`. Raises `ConflictError`
    `conversation_busy` when another turn is unsettled and this one would be too.
    """
    at = now()
    if status in UNSETTLED:
        store.lock(tx, conversation_id)
        if store_turns.active_turn(tx, conversation_id) is not None:
            raise ConflictError("Another turn is being answered", code="conversation_busy")
    public_id = new_id()
    turn_id, position = store_turns.add_turn(
        tx,
        conversation_id,
        public_id=public_id,
        kind=kind,
        role=role,
        status=status,
        visibility=visibility,
        origin=origin,
        speaker_id=speaker_id,
        answerer_id=answerer_id,
        input_id=input_id,
        created_at=at,
        completed_at=None if status in UNSETTLED else at,
    )
    if status in UNSETTLED:
        store_turns.set_active_turn(tx, conversation_id, turn_id)
    if announce:
        append(tx, conversation_id, Event("turn_created", turn_id, payload={"status": status}))
    return Turn(
        turn_id, public_id, conversation_id, position, kind, role, status, visibility,
        None, False, origin, None, at,
    )  # fmt: skip


def set_view_state(
    tx: Tx,
    conversation: Conversation,
    public_id: str,
    *,
    visibility: Visibility | None = None,
    concealed: bool | None = None,
) -> Turn:
    """Hide, exclude, conceal or show a turn, in the archive too; an inherited one, in this
    conversation only.

    Raises `NotFoundError`, `ForbiddenError`, or `ConflictError`: `apex_never_conceals` (the newest
    turn may be deleted instead, unless a fork shows it), or `workspace_not_active`.
    """
    turn = find(tx, conversation, public_id, concealed=conversation.level == "full")
    access.require_full(conversation)
    access.require_workspace(access.hold(tx, conversation))
    # Read again under the lock: another request may have changed the other half of the state.
    turn = find(tx, conversation, public_id, concealed=True)
    seen = visibility or turn.visibility
    gone = turn.deleted_at
    if concealed is not None and concealed != (gone is not None):
        if concealed and is_apex(tx, turn) and not is_pinned(tx, turn):
            raise ConflictError("The newest turn is never concealed", code="apex_never_conceals")
        gone = now() if concealed else None
    events = []
    if seen != turn.visibility:
        events.append(Event("visibility", turn_id=turn.id, payload={"visibility": seen}))
    if gone != turn.deleted_at:
        payload = {"concealed": gone is not None}
        events.append(Event("soft_delete", turn_id=turn.id, payload=payload))
    if events:
        if turn.inherited:
            store_turns.set_override(tx, conversation.id, turn.id, seen, gone)
        else:
            store_turns.set_view(tx, turn.id, seen, gone)
        store_turns.touch(tx, conversation.id, now(), revised=True)
        append(tx, conversation.id, *events)
    return find(tx, conversation, public_id, concealed=True)


def is_apex(tx: Tx, turn: Turn) -> bool:
    """Tell whether a turn is the newest of the conversation it is looked at from."""
    return not turn.inherited and turn.position == store_turns.apex(tx, turn.conversation_id)


def is_pinned(tx: Tx, turn: Turn) -> bool:
    """Tell whether a fork shows a conversation's own turn."""
    return store_turns.is_pinned(tx, turn.conversation_id, turn.position)


def sender(tx: Tx, conversation: Conversation) -> Sender | None:
    """Return whose call started a conversation; None: it is no subagent's."""
    row = store_turns.sender(tx, conversation.id)
    return None if row is None else Sender(*row)
