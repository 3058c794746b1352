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
from stenograph.engine import budget, ending, store
from stenograph.errors import ConflictError, InvalidInputError
from stenograph.events import bell
from stenograph.runs import approval
from stenograph.sessions import creation, sending, session
from stenograph.sessions import store as sessions
from stenograph.sessions import store_turns as session_turns
from stenograph.sessions.creation import NewSession
from stenograph.sessions.ending import cancel as end_session
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

    Raises `InvalidInputError` (`prompt_required`, `invalid_execution_budget`,
    `invalid_session_policy`).
    """
    if not prompt.strip():
        raise InvalidInputError("A session needs a prompt", code="prompt_required")
    budget.read(new.options)
    approval.read_policy(new.options)
    public_id = sessions.public_id(tx, creation.create(tx, caller, new))
    sending.to_session(tx, caller, public_id, NewMessage(prompt))
    return session.find(tx, caller, public_id)


def cancel_session(tx: Tx, caller: Caller, public_id: str) -> Session:
    """As `sessions.ending.cancel`; an answer that was being made anew stops too."""
    found = end_session(tx, caller, public_id)
    for candidate in store.unsettled_of(tx, found.id):
        ending.cancel(tx, candidate)
    return session.find(tx, caller, public_id)


# Conversations


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
    is_session = require_here(tx, conversation)
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


def require_here(tx: Tx, conversation: Conversation) -> bool:
    """Return whether the conversation is a session; raises `ConflictError` for one of an agent
    that runs elsewhere, which would never hear of it."""
    here = store.runs_here(tx, conversation.id)
    if here is False:
        raise ConflictError("The session's agent runs elsewhere", code="session_target_unavailable")
    return here is not None


def _wanted(wish: Wish) -> Model:
    return Model(None, wish.model, wish.reasoning_enabled, wish.reasoning_effort)
