"""What people ask of the engine: to answer, to answer again, to stop.

Nothing is answered here: a candidate is written as `pending`, and whoever drives is told after
the commit.
"""

from dataclasses import dataclass

from stenograph.accounts.access import Caller
from stenograph.clock import now
from stenograph.conversations import access, store_turns
from stenograph.conversations import store as conversations
from stenograph.conversations import turn as turns
from stenograph.conversations import variant as variants
from stenograph.conversations.access import Conversation
from stenograph.conversations.turn import UNSETTLED, Turn
from stenograph.conversations.variant import Model, Variant
from stenograph.engine import bell, budget, ending, store
from stenograph.engine.results import storable
from stenograph.engine.work import load
from stenograph.errors import ConflictError, InvalidInputError
from stenograph.events.journal import Event, append
from stenograph.sessions import creation, messages, reason, sending, session
from stenograph.sessions import store as sessions
from stenograph.sessions import store_turns as session_turns
from stenograph.sessions.creation import NewSession
from stenograph.sessions.ending import cancel as end_session
from stenograph.sessions.messages import Item, Message
from stenograph.sessions.sending import NewMessage
from stenograph.sessions.session import Session
from stenograph.storage.database import Tx


@dataclass(frozen=True, slots=True)
class Wish:
    """Which model is wanted, by name (`catalog.parse`), and how it is set; None: as it comes.

    `direct`: one call of the model, without tools and without a run.
    """

    model: str | None = None
    reasoning_enabled: bool | None = None
    reasoning_effort: str | None = None
    direct: bool = False


@dataclass(frozen=True, slots=True)
class Sent:
    """What became of words: the turn and the candidate that will answer them."""

    turn: Turn
    variant: Variant


# Sessions


def open_session(tx: Tx, caller: Caller, new: NewSession, prompt: str) -> Session:
    """Begin a session of this server with its prompt.

    Raises `InvalidInputError` (`prompt_required`, `invalid_execution_budget`).
    """
    if not prompt.strip():
        raise InvalidInputError("A session needs a prompt", code="prompt_required")
    budget.read(new.options)
    public_id = sessions.public_id(tx, creation.create(tx, caller, new))
    say_to_session(tx, caller, public_id, NewMessage(prompt))
    return session.find(tx, caller, public_id)


def say_to_session(tx: Tx, caller: Caller, public_id: str, new: NewMessage) -> Item:
    """As `sending.to_session`, and have it answered; while a turn runs, the words steer it."""
    item = sending.to_session(tx, caller, public_id, _storable(new))
    _ring_all(tx, session.find(tx, caller, public_id).id)
    return item


def say_to_reason(tx: Tx, caller: Caller, public_id: str, new: NewMessage) -> Item:
    """As `sending.to_reason`, and have it answered."""
    item = sending.to_reason(tx, caller, public_id, _storable(new))
    conversation_id = reason.find(tx, caller, public_id).conversation_id
    assert conversation_id is not None
    _ring_all(tx, conversation_id)
    return item


def cancel_session(tx: Tx, caller: Caller, public_id: str) -> Session:
    """As `sessions.ending.cancel`; an answer that was being made anew stops too."""
    found = end_session(tx, caller, public_id)
    for candidate in store.unsettled_of(tx, found.id):
        ending.cancel(tx, candidate)
    return session.find(tx, caller, public_id)


# Conversations


def send(
    tx: Tx, caller: Caller, conversation: Conversation, text: str, wish: Wish | None = None
) -> Sent:
    """Say something that is to be answered; while a run answers, the words steer it.

    Raises `ForbiddenError`; `InvalidInputError` (`prompt_required`); `ConflictError`
    (`workspace_not_active`, `conversation_archived`, `conversation_busy` while a direct reply is
    under way, `session_target_unavailable`).
    """
    access.require_full(conversation)
    access.require_open(conversation)
    if not text.strip():
        raise InvalidInputError("There is nothing to answer", code="prompt_required")
    text, wish = storable(text), wish or Wish()
    conversations.lock(tx, conversation.id)
    is_session = _require_here(tx, conversation)
    running = store_turns.active_turn(tx, conversation.id)
    if running is not None:
        return _steer(tx, conversation, running, text)
    turn = turns.open(
        tx,
        conversation.id,
        status="pending",
        speaker_id=caller.principal_id,
        answerer_id=conversation.answerer_id,
        announce=False,
    )
    variant = variants.add(
        tx,
        turn,
        source="inference" if wish.direct else "run",
        status="pending",
        prompt=text,
        model=_wanted(wish),
        announce=False,
    )
    at = now()
    session_turns.insert_step(tx, conversation.id, "prompt", turn.id, variant.id, None, at)
    append(
        tx,
        conversation.id,
        Event("turn_created", turn.id, variant.id, payload={"status": "pending"}),
    )
    kind: messages.Kind = "message" if turn.position else "prompt"
    messages.append(tx, conversation.id, Message(kind, "user", turn.id, variant.id, created_at=at))
    if is_session:
        sessions.resume(tx, conversation.id)
    bell.ring(tx, variant.public_id)
    return Sent(turn, variant)


def _steer(tx: Tx, conversation: Conversation, turn_id: int, text: str) -> Sent:
    turn = turns.find(tx, conversation, store_turns.turn_public_id(tx, turn_id))
    shown = next(it for it in variants.deck(tx, turn) if it.id == turn.active_variant_id)
    if shown.source == "inference":
        raise ConflictError("A reply is being written", code="conversation_busy")
    at = now()
    step_id = session_turns.insert_step(tx, conversation.id, "steer", turn.id, shown.id, text, at)
    append(
        tx,
        conversation.id,
        Event("input_accepted", turn.id, step_id=step_id, payload={"delivery_mode": "steer"}),
    )
    messages.append(
        tx, conversation.id, Message("message", "user", turn.id, step_id=step_id, created_at=at)
    )
    return Sent(turn, shown)


def regenerate(
    tx: Tx, caller: Caller, conversation: Conversation, turn_id: str, wish: Wish | None = None
) -> Sent:
    """Have the newest turn answered anew, beside the answer it shows until the new one is there.

    Raises `NotFoundError`, `ForbiddenError`, or `ConflictError`: `conversation_busy` while
    something is answered, `branch_required` for an older turn, `unsupported_turn_type` for one
    that nobody asked a model for.
    """
    turn = turns.find(tx, conversation, turn_id)
    variants.require_own(conversation, turn)
    access.require_open(conversation)
    conversations.lock(tx, conversation.id)
    is_session = _require_here(tx, conversation)
    turn = turns.find(tx, conversation, turn_id)
    deck = variants.deck(tx, turn)
    shown = next((it for it in deck if it.id == turn.active_variant_id), None)
    if shown is None or shown.prompt is None:
        raise ConflictError("No model answered this turn", code="unsupported_turn_type")
    if store_turns.active_turn(tx, conversation.id) is not None or any(
        it.status in UNSETTLED for it in deck
    ):
        raise ConflictError("Something is being answered", code="conversation_busy")
    if turn.position != store_turns.apex(tx, conversation.id):
        raise ConflictError("Newer turns build on this answer: fork", code="branch_required")
    wish = wish or Wish(direct=shown.source == "inference")
    made = variants.add(
        tx,
        turn,
        source="inference" if wish.direct else "run",
        status="pending",
        prompt=shown.prompt,
        model=_wanted(wish) if wish.model else shown.model,
        activate=False,
    )
    session_turns.insert_step(tx, conversation.id, "prompt", turn.id, made.id, None, now())
    if is_session:
        sessions.update(tx, conversation.id, status="running", ended_at=None)
    bell.ring(tx, made.public_id)
    return Sent(turn, made)


def cancel(tx: Tx, conversation: Conversation, turn_id: str) -> Turn:
    """Stop what answers a turn; one that has its end stays as it is.

    Raises `NotFoundError`, `ForbiddenError`.
    """
    turn = turns.find(tx, conversation, turn_id)
    variants.require_own(conversation, turn)
    conversations.lock(tx, conversation.id)
    for candidate in variants.deck(tx, turn):
        ending.cancel(tx, candidate.public_id)
    return turns.find(tx, conversation, turn_id)


def _require_here(tx: Tx, conversation: Conversation) -> bool:
    """Return whether the conversation is a session; raises `ConflictError` for one of an agent
    that runs elsewhere, which would never hear of it."""
    here = store.runs_here(tx, conversation.id)
    if here is False:
        raise ConflictError("The session's agent runs elsewhere", code="session_target_unavailable")
    return here is not None


def _wanted(wish: Wish) -> Model:
    return Model(None, wish.model, wish.reasoning_enabled, wish.reasoning_effort)


def _storable(new: NewMessage) -> NewMessage:
    return NewMessage(storable(new.text), new.model, new.reasoning_effort, new.attachments)


def _ring_all(tx: Tx, conversation_id: int) -> None:
    for candidate in store.unsettled_of(tx, conversation_id):
        found = load(tx, candidate)
        if found is not None and found.variant.status == "pending":
            bell.ring(tx, candidate)
