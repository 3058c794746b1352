"""What people ask about a conversation's context: how full it is, and to have it summed up."""

from collections.abc import Collection
from dataclasses import dataclass

import msgspec

from stenograph.accounts.access import Caller
from stenograph.conversations import access, store_turns
from stenograph.conversations import turn as turns
from stenograph.conversations import variant as variants
from stenograph.conversations.access import Conversation
from stenograph.conversations.turn import Turn
from stenograph.conversations.variant import Model
from stenograph.engine import compaction, fitting, history, store
from stenograph.engine import store_compaction as compactions
from stenograph.engine.choice import Rules, candidates, settings_of
from stenograph.engine.compaction import Wish
from stenograph.engine.models import catalog
from stenograph.engine.models.catalog import ModelId
from stenograph.engine.models.request import Message
from stenograph.engine.models.windows import window
from stenograph.engine.start import require_here
from stenograph.engine.summaries import View, view
from stenograph.engine.summary_turn import KIND
from stenograph.engine.work import load
from stenograph.errors import ConflictError
from stenograph.events import bell
from stenograph.runs import approval
from stenograph.runs import run as runs
from stenograph.runs import task as tasks
from stenograph.runs.task import Task
from stenograph.sessions import store as sessions
from stenograph.storage.database import Tx

_END = 2**62
#: Behind every turn that there may be.
_LAST = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Compacting:
    """A compaction that will be made: by a turn of its own, or within the turn that runs, after the
    round `task` by the task `summary_key`."""

    turn: Turn
    task: Task | None = None
    summary_key: str | None = None


@dataclass(frozen=True, slots=True)
class Estimate:
    """How long a conversation is for a model, in tokens; `parts` by what they are."""

    model: ModelId
    window: int
    compacts_at: int
    parts: dict[str, int]
    total: int
    messages: tuple[Message, ...]


def check(wish: Wish, endpoints: Collection[str]) -> None:
    """Check a wish before it is kept; loads what is known of the provider's models.

    Raises `InvalidInputError` `invalid_model`, `RefusedError` `unsupported_reasoning_effort`.
    """
    if wish.model is not None:
        wanted = catalog.parse(wish.model, endpoints)
        settings_of(wanted, wish.reasoning_enabled, wish.reasoning_effort)


def of_session(tx: Tx, conversation_id: int) -> Conversation:
    """Return the conversation of a session that the caller may drive."""
    *about, is_fork, side, revision, active, sequence, archived = compactions.conversation(
        tx, conversation_id
    )
    seen = ("full", *about, bool(is_fork), bool(side), revision, active, sequence, archived)
    return Conversation(*seen)


def compact(
    tx: Tx, caller: Caller, conversation: Conversation, wish: Wish | None = None
) -> Compacting:
    """Have what was said summed up, at once or before the next round of the turn that runs.

    Raises `ForbiddenError`, or `ConflictError`: `compaction_disabled`; `already_compacted` if there
    is nothing to sum up, or it is being done; `conversation_busy` while a direct reply is written;
    `task_not_queued` for a turn that has not begun; `session_target_unavailable`; and what
    `access.require_open` does.
    """
    access.require_full(conversation)
    wish = wish or Wish()
    conversation = access.hold(tx, conversation)
    access.require_open(conversation)
    is_session = require_here(tx, conversation)
    written = compactions.facts(tx, conversation.id)[1]
    options = {} if written is None else msgspec.json.decode(written, type=dict[str, object])
    if not approval.read_policy(options).compaction:
        raise ConflictError("This session does without summaries", code="compaction_disabled")
    active = store_turns.active_turn(tx, conversation.id)
    if active is not None:
        return _within(tx, conversation, active, wish)
    _require_something(tx, conversation)
    turn = turns.open(
        tx,
        conversation.id,
        kind=KIND,
        status="pending",
        speaker_id=caller.principal_id,
        answerer_id=conversation.answerer_id,
    )
    model = Model(None, wish.model, wish.reasoning_enabled, wish.reasoning_effort)
    made = variants.add(tx, turn, source="run", status="pending", model=model)
    if is_session:
        sessions.update(tx, conversation.id, status="running", ended_at=None)
    bell.ring(tx, made.public_id)
    return Compacting(turn)


def _require_something(tx: Tx, conversation: Conversation) -> None:
    newest = turns.window(tx, conversation, before=_LAST, limit=1)
    if not newest or (newest[0].turn.kind == KIND and newest[0].turn.status == "completed"):
        raise ConflictError("Nothing was said that is not summed up", code="already_compacted")


def _within(tx: Tx, conversation: Conversation, turn_id: int, wish: Wish) -> Compacting:
    turn = turns.find(tx, conversation, store_turns.turn_public_id(tx, turn_id))
    if turn.kind == KIND:
        raise ConflictError("It is being summed up", code="already_compacted")
    shown = next(it for it in variants.deck(tx, turn) if it.id == turn.active_variant_id)
    if shown.source == "inference":
        raise ConflictError("A reply is being written", code="conversation_busy")
    run = runs.of(tx, shown)
    key = None if run is None else store.newest_round(tx, run.id)
    if run is None or key is None:
        raise ConflictError("The turn has not begun", code="task_not_queued")
    if compactions.is_open(tx, run.id):
        raise ConflictError("It is going to be summed up", code="already_compacted")
    return Compacting(turn, tasks.find(tx, run, key), compaction.add(tx, run, wish))


def estimate(
    tx: Tx, conversation: Conversation, rules: Rules, model: str | None, text: str | None
) -> Estimate:
    """Estimate how long the conversation is for a model (None: the one that answers) as it stands,
    or with an input of this text. Tools are not in it: which there are is known to the run.

    Raises `InvalidInputError` `invalid_model`.
    """
    usual, _, instructions = compactions.facts(tx, conversation.id)
    newest = compactions.newest_candidate(tx, conversation.id)
    work = None if newest is None else load(tx, newest[0])
    if model is not None:
        wanted = catalog.parse(model, rules.endpoints)
    elif work is not None:
        wanted = candidates(work, rules)[0][0]
    else:
        wanted = catalog.parse(usual or rules.model, rules.endpoints)
    seen = View(conversation, _LAST, 0, text, instructions)
    if work is not None and newest is not None and newest[1]:
        seen = view(work)
    size = window(wanted, seen.prompt)
    told = fitting.shortened(history.units(tx, seen, _END), size)
    measured = fitting.measure(told)
    counted = measured is None or not compactions.was_trimmed(tx, measured)
    parts: dict[str, int] = {}
    for unit in told:
        parts[unit.kind] = parts.get(unit.kind, 0) + fitting.length(unit.messages)
    return Estimate(
        model=wanted,
        window=size,
        compacts_at=int(size * fitting.FULL),
        parts=parts,
        total=fitting.total(told, counted=counted),
        messages=history.flat(told),
    )
