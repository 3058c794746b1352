"""What people ask of the engine: to answer, to answer again, to stop.

Nothing is answered here: a candidate is written as `pending`, and whoever drives is told after
the commit.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from stenograph.accounts.access import Caller
from stenograph.clock import now
from stenograph.conversations import access, attachment, store_turns
from stenograph.conversations import store as conversations
from stenograph.conversations import turn as turns
from stenograph.conversations import variant as variants
from stenograph.conversations.access import Conversation
from stenograph.conversations.turn import UNSETTLED, Turn
from stenograph.conversations.variant import Model, Variant
from stenograph.conversations.wishes import Configuration
from stenograph.engine import budget, ending, store
from stenograph.engine.work import write_configuration
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
    tx: Tx,
    caller: Caller,
    conversation: Conversation,
    turn_id: str,
    wish: Wish | None = None,
    configuration: Configuration | None = None,
) -> Sent:
    """Have the newest turn answered anew, beside the answer it shows until the new one is there.

    What its input asked for holds again, but for another model or `configuration`.

    Raises `NotFoundError`, `ForbiddenError`, or `ConflictError`: `unsupported_turn_type` for a turn
    that nobody asked a model for; `execution_details_pruned`; `run_live` while the turn is being
    answered; `conversation_busy` while another is; `branch_required` for an older turn;
    `session_target_unavailable`; and what `access.require_open` does.
    """
    turn = turns.find(tx, conversation, turn_id)
    variants.require_own(conversation, turn)
    access.require_open(access.hold(tx, conversation))
    is_session = require_here(tx, conversation)
    turn = turns.find(tx, conversation, turn_id)
    deck = variants.deck(tx, turn)
    shown = next((it for it in deck if it.id == turn.active_variant_id), None)
    if shown is None or shown.prompt is None:
        raise ConflictError("No model answered this turn", code="unsupported_turn_type")
    if store.is_pruned(tx, turn.id, shown.id):
        raise ConflictError(
            "Execution details of the original have expired", code="execution_details_pruned"
        )
    require_quiet(tx, conversation, turn)
    wish, like = wish or Wish(), _answerer(deck, shown)
    made = variants.add(
        tx,
        turn,
        source="inference" if wish.direct or (like and like.source == "inference") else "run",
        status="pending",
        prompt=shown.prompt,
        model=_wanted(wish) if wish.model else (like or shown).model,
        activate=False,
    )
    attachment.copy(tx, shown.id, made.id)
    rest = None if configuration is None else write_configuration(configuration)
    session_turns.insert_step(
        tx, conversation.id, "prompt", turn.id, made.id, None, now(), rest=rest
    )
    if is_session:
        sessions.update(tx, conversation.id, status="running", ended_at=None)
    bell.ring(tx, made.public_id)
    return Sent(turn, made)


def cancel(tx: Tx, conversation: Conversation, turn_id: str) -> Turn:
    """Stop what answers a turn, concealed or not; one that has its end stays as it is.

    Raises `NotFoundError`, `ForbiddenError`.
    """
    turn = turns.find(tx, conversation, turn_id, concealed=True)
    variants.require_own(conversation, turn)
    conversations.lock(tx, conversation.id)
    for candidate in variants.deck(tx, turn):
        ending.cancel(tx, candidate.public_id)
    return turns.find(tx, conversation, turn_id, concealed=True)


def require_here(tx: Tx, conversation: Conversation) -> bool:
    """Return whether the conversation is a session; raises `ConflictError` for one of an agent
    that runs elsewhere, which would never hear of it."""
    here = store.runs_here(tx, conversation.id)
    if here is False:
        raise ConflictError("The session's agent runs elsewhere", code="session_target_unavailable")
    return here is not None


def require_quiet(tx: Tx, conversation: Conversation, turn: Turn) -> None:
    """Raise `ConflictError` unless the turn is the newest and nothing is under way: `run_live` for
    the turn itself, `conversation_busy`, or `branch_required`. The conversation is held."""
    if any(it.status in UNSETTLED for it in variants.deck(tx, turn)):
        raise ConflictError("The turn is being answered", code="run_live")
    if store_turns.active_turn(tx, conversation.id) is not None:
        raise ConflictError("Another turn is being answered", code="conversation_busy")
    if not turns.is_apex(tx, turn):
        raise ConflictError("Newer turns build on this one: fork", code="branch_required")


def _answerer(deck: Sequence[Variant], shown: Variant) -> Variant | None:
    """Return the candidate that says how a turn is answered: the one it shows, unless a person
    wrote that, or else the newest that a model answered."""
    asked = [it for it in deck if it.source in ("run", "inference")]
    return shown if shown in asked else (asked[-1] if asked else None)


def _wanted(wish: Wish) -> Model:
    return Model(None, wish.model, wish.reasoning_enabled, wish.reasoning_effort)
