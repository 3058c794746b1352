"""Forks: a new conversation that shows another one's turns up to a point, without copying them.

The turn at the fork point is adopted: it becomes the fork's own first turn, with a copy of one
candidate, so that it may be answered anew. What stands before it is inherited.
"""

from dataclasses import dataclass

from stenograph.accounts.access import Caller
from stenograph.clock import now
from stenograph.conversations import (
    access,
    conversation,
    store_forks,
    store_turns,
    store_variants,
    turn,
    variant,
)
from stenograph.conversations.access import Conversation, Workspace
from stenograph.conversations.turn import UNSETTLED
from stenograph.errors import ConflictError, NotFoundError
from stenograph.events.journal import Event, append
from stenograph.storage.database import Tx


def create(
    tx: Tx,
    caller: Caller,
    workspace: Workspace,
    source: Conversation,
    turn_public_id: str,
    *,
    variant_public_id: str | None = None,
    title: str | None = None,
) -> Conversation:
    """Fork a conversation at a turn, with its active candidate or another one.

    The fork takes over the answerer and the access list; those who always had full access to the
    source are named in it, and the forker is its creator. Raises `NotFoundError` for a concealed
    target, `ForbiddenError`, or `ConflictError` `variant_not_forkable` for an unsettled candidate.
    """
    point = turn.find(tx, source, turn_public_id)
    access.require_full(source)
    adopted = _candidate(tx, point, variant_public_id)
    if adopted.status in UNSETTLED:
        raise ConflictError("The candidate is not settled yet", code="variant_not_forkable")
    made = conversation.create(tx, caller, workspace, title=title)
    store_forks.copy_access(tx, source.id, made.id)
    # The source's own turn at the boundary is left out: its adopted copy stands in that slot.
    link(tx, made.id, source.id, Point(point.id, point.position - 1))
    store_forks.adopt(tx, made.id, source_variant_id=adopted.id, answerer_id=source.answerer_id)
    own = turn.open(
        tx,
        made.id,
        kind=point.kind,
        role=point.role,
        status=adopted.status,
        visibility=point.visibility,
        origin=point.origin,
        announce=False,
    )
    store_forks.copy_people(tx, point.id, own.id)
    copy = variant.add(
        tx,
        own,
        source="fork",
        status=adopted.status,
        prompt=adopted.prompt,
        content=adopted.content,
        model=adopted.model,
        origin_id=adopted.id,
        announce=False,
    )
    store_variants.copy_details(tx, adopted.id, copy.id)
    if adopted.details_pruned_at is not None:
        store_variants.settle(tx, copy.id, details_pruned_at=adopted.details_pruned_at)
    append(tx, made.id, Event("turn_created", own.id, copy.id, payload={"status": own.status}))
    append(
        tx,
        source.id,
        Event("fork_created", point.id, adopted.id, payload={"fork_public_id": made.public_id}),
    )
    store_turns.touch(tx, made.id, now())
    return access.find(tx, caller, workspace.public_id, made.public_id)


@dataclass(frozen=True, slots=True)
class Point:
    """Where a fork leaves its source: the turn it names, and the last position it inherits."""

    turn_id: int
    boundary: int


def link(tx: Tx, fork_id: int, source_id: int, point: Point | None) -> None:
    """Let an empty conversation show another one's turns up to a point, as they look from there.

    None: it came from the other one, and they have no turn in common.
    """
    if point is None:
        store_forks.adopt(tx, fork_id, source_id=source_id)
        return
    store_forks.add_ancestries(tx, fork_id, source_id, point.boundary)
    store_forks.copy_overrides(tx, source_id, fork_id, point.boundary + 1)
    store_forks.adopt(
        tx,
        fork_id,
        source_id=source_id,
        source_turn_id=point.turn_id,
        next_position=point.boundary + 1,
    )


def _candidate(tx: Tx, point: turn.Turn, public_id: str | None) -> variant.Variant:
    if public_id is not None:
        return variant.find(tx, point, public_id)
    for candidate in variant.deck(tx, point):
        if candidate.id == point.active_variant_id:
            return candidate
    raise NotFoundError("Not found")
