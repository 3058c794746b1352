"""Forks: a new conversation that shows another one's turns up to a point, without copying them.

The turn at the fork point is adopted: it becomes the fork's own first turn, with a copy of one
candidate, so that it may be answered anew. What stands before it is inherited. What a fork costs
depends on neither how many turns it inherits nor how long they are.
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
from stenograph.errors import ConflictError, NotFoundError, RefusedError
from stenograph.events.journal import Event, append
from stenograph.storage.database import Tx

#: How many hidden or concealed turns a fork takes over as they look: each costs it a row.
VIEWS = 2_000
#: How many conversations may stand one behind the other.
LINEAGE = 400


@dataclass(frozen=True, slots=True)
class Point:
    """Where a fork leaves its source: the turn it names (None: before the first), and the last
    position it inherits."""

    turn_id: int | None
    boundary: int


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

    The fork takes over the answerer, the default runner, whom it is billed to and the access list;
    those who always had full access to the source are named in it, and the forker is its creator.
    Raises `NotFoundError` for a concealed target, `ForbiddenError`, `ConflictError`
    (`variant_not_forkable` for an unsettled candidate, `workspace_not_active`), or `RefusedError`
    (`side_of_side`, `fork_too_large`, `validation_failed`).
    """
    turn.find(tx, source, turn_public_id)
    source = hold_source(tx, source)
    point = turn.find(tx, source, turn_public_id)
    adopted = _candidate(tx, point, variant_public_id)
    if adopted.status in UNSETTLED:
        raise ConflictError("The candidate is not settled yet", code="variant_not_forkable")
    # The source's own turn at the boundary is left out: its adopted copy stands in that slot.
    made = begin(tx, caller, workspace, source, Point(point.id, point.position - 1), title=title)
    store_forks.adopt(tx, made.id, source_variant_id=adopted.id)
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
    store_forks.copy_attachments(tx, adopted.id, made.id, copy.id)
    pruned_at = adopted.details_pruned_at or store_forks.run_pruned_at(tx, adopted.id)
    if pruned_at is not None:
        store_variants.settle(tx, copy.id, details_pruned_at=pruned_at)
    append(tx, made.id, Event("turn_created", own.id, copy.id, payload={"status": own.status}))
    announce(tx, source, made, point.id, adopted.id)
    return access.find(tx, caller, workspace.public_id, made.public_id)


def hold_source(tx: Tx, source: Conversation) -> Conversation:
    """Hold what is to be forked, and return it as it is now.

    Raises `ForbiddenError`, `NotFoundError` if it is gone, or `RefusedError` (`side_of_side`,
    `fork_too_large`).
    """
    access.require_full(source)
    if source.side:
        raise RefusedError("A side conversation is never forked", code="side_of_side")
    source = access.hold(tx, source)
    if store_forks.views(tx, source.id, VIEWS + 1) > VIEWS:
        raise RefusedError(
            f"More than {VIEWS} of its turns are hidden or concealed", code="fork_too_large"
        )
    if source.is_fork and len(store_turns.scopes(tx, source.id)) >= LINEAGE:
        raise RefusedError(f"It is a fork of a fork, {LINEAGE} times over", code="fork_too_large")
    return source


def begin(
    tx: Tx,
    caller: Caller,
    workspace: Workspace,
    source: Conversation,
    point: Point,
    *,
    title: str | None,
) -> Conversation:
    """Make a conversation that shows what the source shows up to a point, and nothing of its own.

    The caller holds the source. Raises what `conversation.create` does.
    """
    made = conversation.create(tx, caller, workspace, title=title)
    store_forks.copy_facts(tx, source.id, made.id)
    link(tx, made.id, source.id, point)
    return made


def announce(
    tx: Tx, source: Conversation, made: Conversation, turn_id: int | None, variant_id: int | None
) -> None:
    """Tell readers of the source that it has a fork, and where."""
    payload = {"fork_public_id": made.public_id}
    append(tx, source.id, Event("fork_created", turn_id, variant_id, payload=payload))
    store_turns.touch(tx, made.id, now())


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


def effects_known(tx: Tx, fork: Conversation) -> bool:
    """Tell whether the details of what a fork adopted, which say what runners did, are kept."""
    return not store_forks.is_pruned(tx, fork.id)


def _candidate(tx: Tx, point: turn.Turn, public_id: str | None) -> variant.Variant:
    if public_id is not None:
        return variant.find(tx, point, public_id)
    for candidate in variant.deck(tx, point):
        if candidate.id == point.active_variant_id:
            return candidate
    raise NotFoundError("Not found")
