"""Variants: the candidate answers of a turn, one of which it shows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from msgspec import Struct

from stenograph.clock import now
from stenograph.conversations import access, store, store_turns, store_variants
from stenograph.conversations.access import Conversation
from stenograph.conversations.turn import UNSETTLED, Status, Turn
from stenograph.conversations.turn import find as find_turn
from stenograph.errors import ConflictError, ForbiddenError, NotFoundError
from stenograph.events.journal import Event, append
from stenograph.ids import new_id
from stenograph.storage.database import Row, Tx

Source: TypeAlias = Literal["manual", "edit", "inference", "run", "import", "fork", "fallback"]


@dataclass(frozen=True, slots=True)
class Model:
    """Which model answers, with its effective reasoning settings; None: not told.

    `byok`: with the organization's own key, and with no other; of a candidate only.
    """

    provider_id: str | None = None
    model_ref: str | None = None
    reasoning_enabled: bool | None = None
    reasoning_effort: str | None = None
    byok: bool = False


NO_MODEL = Model()
#: What a candidate's provider begins with in its column where the organization's own key is used.
_OWN_KEY = "byok:"


def model_of(
    provider_id: str | None, ref: str | None, enabled: int | None, effort: str | None
) -> Model:
    """Return the model of a row's four columns."""
    own = False
    if provider_id is not None and provider_id.startswith(_OWN_KEY):
        own, provider_id = True, provider_id.removeprefix(_OWN_KEY)
    return Model(provider_id, ref, None if enabled is None else bool(enabled), effort, own)


def _provider(model: Model) -> str | None:
    own = model.byok and model.provider_id is not None
    return f"{_OWN_KEY}{model.provider_id}" if own else model.provider_id


class Variant(Struct, frozen=True):
    """A candidate. `origin` is the public id of the one it was adopted from."""

    id: int
    public_id: str
    turn_id: int
    position: int
    source: Source
    status: Status
    model: Model
    invocation_id: int | None
    deleted_at: int | None
    details_pruned_at: int | None
    prompt: str | None
    content: str | None
    origin: str | None


def _variant(row: Row) -> Variant:
    columns = (*row[:6], model_of(*row[6:10]), *row[10:])
    return Variant(*columns)


def find(tx: Tx, turn: Turn, public_id: str, *, concealed: bool = False) -> Variant:
    """Return a candidate of the turn. Raises `NotFoundError`, also for a concealed one."""
    row = store_variants.find(tx, turn.id, public_id)
    if row is None or (row[11] is not None and not concealed):
        raise NotFoundError("Not found")
    return _variant(row)


def deck(tx: Tx, turn: Turn) -> list[Variant]:
    """List the candidates of a turn that are not concealed."""
    return [_variant(row) for row in store_variants.deck(tx, turn.id)]


def shown(tx: Tx, turns: Sequence[Turn]) -> dict[int, list[Variant]]:
    """Return, by turn id, the active candidate of each turn and those under way beside it."""
    active = [turn.active_variant_id for turn in turns if turn.active_variant_id is not None]
    found: dict[int, list[Variant]] = {}
    for row in store_variants.shown(tx, [turn.id for turn in turns], active):
        variant = _variant(row)
        found.setdefault(variant.turn_id, []).append(variant)
    return found


def add(
    tx: Tx,
    turn: Turn,
    *,
    source: Source,
    status: Status = "running",
    prompt: str | None = None,
    content: str | None = None,
    model: Model = NO_MODEL,
    origin_id: int | None = None,
    activate: bool = True,
    announce: bool = True,
) -> Variant:
    """Add a candidate to a turn; with `activate` the turn shows it.

    `announce` false: the caller writes an event that names it.
    """
    at = now()
    public_id = new_id()
    store.lock(tx, turn.conversation_id)
    variant_id = store_variants.add(
        tx,
        turn.id,
        public_id=public_id,
        source=source,
        status=status,
        origin_variant_id=origin_id,
        provider_id=_provider(model),
        model_ref=model.model_ref,
        reasoning_enabled=model.reasoning_enabled,
        reasoning_effort=model.reasoning_effort,
        prompt=prompt,
        content=content,
        created_at=at,
        completed_at=None if status in UNSETTLED else at,
    )
    if activate:
        store_variants.activate(tx, turn.id, variant_id)
    if announce:
        payload = {"source": source, "status": status}
        append(
            tx, turn.conversation_id, Event("turn_variant", turn.id, variant_id, payload=payload)
        )
    return find(tx, turn, public_id)


def settle(
    tx: Tx,
    turn: Turn,
    variant: Variant,
    status: Status,
    *,
    content: str | None = None,
    reasoning: str | None = None,
    reasoning_trace: str | None = None,
    model: Model | None = None,
    failure_reason: str | None = None,
) -> None:
    """End a candidate. If it is the active one, the turn ends alike and frees the conversation.

    `reasoning` and `reasoning_trace` are for a direct reply, which adopts them from its model call
    here; a run keeps them with each of its calls.
    """
    at = now()
    frozen = {} if model is None else {
        "provider_id": _provider(model),
        "model_ref": model.model_ref,
        "reasoning_enabled": model.reasoning_enabled,
        "reasoning_effort": model.reasoning_effort,
    }  # fmt: skip
    store_variants.settle(
        tx,
        variant.id,
        status=status,
        content=content,
        failure_reason=failure_reason,
        completed_at=at,
        **frozen,
    )
    if reasoning is not None or reasoning_trace is not None:
        store_variants.set_reasoning(
            tx, variant.id, reasoning=reasoning, reasoning_trace=reasoning_trace
        )
    project(tx, turn, variant.id, status)


def project(tx: Tx, turn: Turn, variant_id: int, status: Status) -> None:
    """Let the turn stand as its active candidate does, and tell it."""
    at = now()
    store.lock(tx, turn.conversation_id)
    active = store_variants.active_variant(tx, turn.id) == variant_id
    if active:
        store_turns.set_turn_status(tx, turn.id, status, None if status in UNSETTLED else at)
        if status not in UNSETTLED:
            store_turns.clear_active_turn(tx, turn.conversation_id, turn.id)
    store_turns.touch(tx, turn.conversation_id, at, revised=active)
    payload = {"status": status, "variant_status": status} if active else {"variant_status": status}
    append(tx, turn.conversation_id, Event("turn_status", turn.id, variant_id, payload=payload))


def set_view_state(
    tx: Tx, conversation: Conversation, turn_id: str, variant_id: str, *, concealed: bool
) -> tuple[Turn, Variant]:
    """Conceal a candidate or bring it back, in the archive too; it is one row for all who see it.

    Raises what `find_own` does, or `ConflictError`: `variant_active`, `run_live` for one that is
    under way, which the turn will show, or `workspace_not_active`.
    """
    find_own(tx, conversation, turn_id, variant_id)
    access.require_workspace(access.hold(tx, conversation))
    turn = find_turn(tx, conversation, turn_id)
    variant = find(tx, turn, variant_id, concealed=True)
    if concealed and turn.active_variant_id == variant.id:
        raise ConflictError("The turn shows this candidate", code="variant_active")
    if concealed and variant.status in UNSETTLED:
        raise ConflictError("The candidate is under way: cancel it", code="run_live")
    if concealed != (variant.deleted_at is not None):
        at = now()
        store_variants.settle(tx, variant.id, deleted_at=at if concealed else None)
        store_turns.touch(tx, conversation.id, at)
        event = Event("soft_delete", turn.id, variant.id, payload={"concealed": concealed})
        append(tx, conversation.id, event)
    return turn, find(tx, turn, variant_id, concealed=True)


def find_own(tx: Tx, conversation: Conversation, turn_id: str, variant_id: str) -> Variant:
    """Return a candidate that the caller may change, concealed or not.

    Raises `NotFoundError`, or `ForbiddenError`, also for an inherited turn, whose content is its
    owner's.
    """
    turn = find_turn(tx, conversation, turn_id)
    own = conversation.level == "full" and not turn.inherited
    found = find(tx, turn, variant_id, concealed=own)
    require_own(conversation, turn)
    return found


def require_own(conversation: Conversation, turn: Turn) -> None:
    """Raise `ForbiddenError` unless the caller may change the content of this turn."""
    access.require_full(conversation)
    if turn.inherited:
        raise ForbiddenError("An inherited turn is changed where it was made")


def require_settled(variant: Variant) -> None:
    """Raise `ConflictError` `variant_not_active` for a candidate that is under way."""
    if variant.status in UNSETTLED:
        raise ConflictError("The candidate is not settled yet", code="variant_not_active")


def activate(tx: Tx, turn: Turn, variant: Variant) -> None:
    """Let the turn show another candidate, and stand as that one does.

    Raises `ConflictError` `variant_not_active` for one that is not settled. What the replaced one
    has under way is for `engine.deck` to end.
    """
    require_settled(variant)
    if turn.active_variant_id != variant.id:
        store_variants.activate(tx, turn.id, variant.id)
        event = Event("turn_variant", turn.id, variant.id, payload={"active": True})
        append(tx, turn.conversation_id, event)
        project(tx, turn, variant.id, variant.status)
