"""Side conversations: a fork at the live head, to talk beside what is going on.

A side inherits every turn that has its end. A turn that is under way is not inherited, for it goes
on changing: the side gets a snapshot of its own, a completed turn that stays as it was.
"""

from dataclasses import dataclass

from stenograph.accounts.access import Caller
from stenograph.conversations import access, fork, store_forks, store_variants, turn, variant
from stenograph.conversations.access import Conversation, Workspace
from stenograph.conversations.fork import Point
from stenograph.conversations.turn import Turn
from stenograph.conversations.variant import Variant
from stenograph.events.journal import Event, append
from stenograph.storage.database import Tx


@dataclass(frozen=True, slots=True)
class UnderWay:
    """A turn that is being answered, and the candidate that it shows."""

    turn: Turn
    variant: Variant


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a candidate has brought so far. `said`: its words; `reference`: with what it did."""

    said: str | None
    reference: str


def under_way(tx: Tx, source: Conversation) -> UnderWay | None:
    """Return what is being answered in a conversation that the caller holds."""
    public_id = store_forks.active_turn(tx, source.id)
    if public_id is None:
        return None
    running = turn.find(tx, source, public_id, concealed=True)
    shown = store_variants.public_id(tx, running.active_variant_id)
    return UnderWay(running, variant.find(tx, running, shown, concealed=True))


def create(
    tx: Tx,
    caller: Caller,
    workspace: Workspace,
    source: Conversation,
    *,
    running: UnderWay | None,
    snapshot: Snapshot | None,
    title: str | None = None,
) -> Conversation:
    """Make a side of a conversation that the caller holds (`fork.hold_source`).

    `running` is what `under_way` returned, `snapshot` what it has brought. Raises `ConflictError`
    (`workspace_not_active`) or `RefusedError` (`validation_failed`).
    """
    if running is None:
        point = Point(*store_forks.head(tx, source.id))
    else:
        point = Point(running.turn.id, running.turn.position - 1)
    made = fork.begin(tx, caller, workspace, source, point, title=title)
    store_forks.adopt(tx, made.id, side=1)
    if running is not None and snapshot is not None:
        _keep(tx, made, running, snapshot)
    made = access.find(tx, caller, workspace.public_id, made.public_id)
    fork.announce(tx, source, made, point.turn_id, None if running is None else running.variant.id)
    return made


def _keep(tx: Tx, made: Conversation, running: UnderWay, snapshot: Snapshot) -> None:
    """Give a side its fixed copy of the turn that is under way."""
    source = running.variant
    store_forks.adopt(tx, made.id, source_variant_id=source.id)
    own = turn.open(
        tx,
        made.id,
        kind=running.turn.kind,
        role=running.turn.role,
        status="completed",
        visibility=running.turn.visibility,
        origin=running.turn.origin,
        announce=False,
    )
    store_forks.copy_people(tx, running.turn.id, own.id)
    copy = variant.add(
        tx,
        own,
        source="fork",
        status="completed",
        prompt=source.prompt,
        content=snapshot.said,
        model=source.model,
        origin_id=source.id,
        announce=False,
    )
    store_variants.set_reference(tx, copy.id, snapshot.reference)
    store_forks.copy_attachments(tx, source.id, made.id, copy.id)
    append(tx, made.id, Event("turn_created", own.id, copy.id, payload={"status": "completed"}))


def references(tx: Tx, conversation: Conversation) -> set[int]:
    """Return the turns of a conversation, by row id, that are such snapshots."""
    return store_forks.references(tx, conversation.id) if conversation.side else set()
