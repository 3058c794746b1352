"""Child sessions: a call of the parent starts one, and its first answer is the call's result."""

from dataclasses import dataclass, field
from typing import Any

import msgspec

from stenograph.clock import now
from stenograph.conversations import store as conversations
from stenograph.conversations import store_inputs
from stenograph.conversations import turn as turns
from stenograph.conversations import variant as variants
from stenograph.conversations.variant import Model
from stenograph.conversations.wishes import Wishes
from stenograph.devices import target
from stenograph.engine import budget, history, store, store_children
from stenograph.engine.budget import Budget
from stenograph.engine.results import storable
from stenograph.engine.work import Work, hold
from stenograph.errors import RefusedError
from stenograph.events import bell, waiting
from stenograph.events.journal import Event, append
from stenograph.ids import new_id
from stenograph.runs import approval
from stenograph.sessions import messages
from stenograph.sessions import store as sessions
from stenograph.sessions import store_turns as session_turns
from stenograph.sessions.messages import Message
from stenograph.storage.database import Tx

#: How many sessions may stand above one; an export embeds 32.
DEPTH = 8
#: How many sessions the calls of one run may start.
CHILDREN = 64
#: About how many sessions are started beneath a session while a turn of it goes on, at any depth:
#: those that are started at once are not told of each other.
FAMILY = 256


@dataclass(frozen=True, slots=True)
class NewChild:
    """What a child is asked, and how it is to be answered; None: as its parent is."""

    prompt: str
    label: str | None = None
    model: str | None = None
    reasoning_effort: str | None = None
    budget: Budget = field(default_factory=Budget)


@dataclass(frozen=True, slots=True)
class Child:
    """A session that a call started."""

    id: int
    public_id: str


@dataclass(frozen=True, slots=True)
class Answer:
    """How a child's first turn ended; `outcome` is what the child declared."""

    variant_id: int
    status: str
    content: str | None
    failure_reason: str | None
    outcome: str | None


def open_child(tx: Tx, candidate: str, key: str, task_id: int, new: NewChild) -> Child | None:
    """Start the session of a call, or find the one that it started before; None: the turn of the
    call has its end.

    The child is its parent's in all but what it is asked: place, people, secrets, Reason, target,
    approvals. Its time and money are at most what its parent has left. Raises `RefusedError`
    `too_deep` or `too_many_children`.
    """
    work = hold(tx, candidate)
    if work is None or work.settled or work.run is None:
        return None
    known = store_children.child_of(tx, task_id)
    if known is not None:
        return Child(*known)
    if store_children.depth(tx, work.conversation.id) >= DEPTH:
        message = f"Subagents are nested at most {DEPTH} deep, and this one is"
        raise RefusedError(message, code="too_deep")
    if store_children.children_made(tx, work.run.id) >= CHILDREN:
        raise RefusedError(
            f"One turn starts at most {CHILDREN} subagents", code="too_many_children"
        )
    if store_children.family_made(tx, work.conversation.id, work.run.created_at) >= FAMILY:
        message = f"A turn and its subagents start at most {FAMILY} subagents in all"
        raise RefusedError(message, code="too_many_children")
    child = _session(tx, work, key, new)
    store_children.copy_access(tx, work.conversation.id, child.id)
    target.inherit(tx, work.conversation.id, child.id)
    store_children.link(tx, task_id, child.id)
    rest = history.read_rest(store.call_details(tx, task_id)[1])
    rest.refs = [{"trajectory_id": child.public_id, "session_id": child.public_id}]
    store.set_rest(tx, task_id, msgspec.json.encode(rest).decode())
    _ask(tx, child, work, storable(new.prompt))
    return child


def _session(tx: Tx, work: Work, key: str, new: NewChild) -> Child:
    at, public_id = now(), new_id()
    (workspace_id, creator_id, answerer_id, billing_subject, access_default, runner_id,
     organization_id, owner_id, reason_id, mode) = store_children.inheritance(
        tx, work.conversation.id
    )  # fmt: skip
    label = None if new.label is None else storable(new.label)
    conversation_id = conversations.add_conversation(
        tx,
        at,
        public_id=public_id,
        workspace_id=workspace_id,
        creator_id=creator_id,
        answerer_id=answerer_id,
        billing_subject=billing_subject,
        access_default=access_default,
        default_runner_id=runner_id,
        title=label,
        label=label,
        parent_id=work.conversation.id,
        spawn_key=key,
    )
    model, effort = _model(work, new)
    sessions.insert_session(
        tx,
        conversation_id,
        organization_id=organization_id,
        owner_id=owner_id,
        reason_id=reason_id,
        parent_conversation_id=work.conversation.id,
        mode=mode,
        status="running",
        model=model,
        reasoning_effort=effort,
        tags="[]",
        options=msgspec.json.encode(_options(tx, work, new)).decode(),
        created_at=at,
        started_at=at,
    )
    return Child(conversation_id, public_id)


def _model(work: Work, new: NewChild) -> tuple[str | None, str | None]:
    """Return model and effort: the parent's effort is meant for the parent's model."""
    asked = work.variant.model
    own = asked.model_ref or work.model
    if asked.provider_id is not None:
        own = f"{'byok:' if asked.byok else ''}{asked.provider_id}/{asked.model_ref}"
    if new.model is not None and new.model != own:
        return new.model, new.reasoning_effort
    return own, new.reasoning_effort or asked.reasoning_effort or work.effort


def _options(tx: Tx, work: Work, new: NewChild) -> dict[str, Any]:
    assert work.run is not None
    own, asked = budget.read(work.options), new.budget
    seconds = budget.seconds_left(work, own)
    left_ms = None if seconds is None else max(0, int(seconds * 1000))
    left_usd = None
    if own.cost_max_usd is not None:
        spent = store_children.spent_usd(tx, work.conversation.id)
        left_usd = max(0.0, own.cost_max_usd - spent)
    bounded = Budget(
        wall_clock_max_ms=_least(asked.wall_clock_max_ms, left_ms),
        steps_max=asked.steps_max,
        cost_max_usd=_least(asked.cost_max_usd, left_usd),
    )
    # A run whose input made it ask more has children that ask as much.
    policy = dict(work.options.get("session_policy") or {})
    mode = approval.read_policy(work.options).mode
    policy["approval_mode"] = approval.tightened(mode, work.run.approval_mode)
    return {
        **work.options,
        "session_policy": policy,
        "execution_budget": msgspec.to_builtins(bounded),
    }


def _least(*limits: Any) -> Any:
    return min((it for it in limits if it is not None), default=None)


def _ask(tx: Tx, child: Child, work: Work, prompt: str) -> None:
    """Open the child's turn, as an input of the parent's agent; it has the parent's tools."""
    at, speaker_id = now(), work.conversation.answerer_id
    input_id = store_inputs.add(
        tx,
        child.id,
        public_id=new_id(),
        state="consumed",
        kind="direct_reply",
        role="user",
        origin="agent",
        sender_id=speaker_id,
        text=prompt,
        options=msgspec.json.encode(Wishes(tool_names=work.wishes.tool_names)).decode(),
        created_at=at,
    )
    turn = turns.open(
        tx,
        child.id,
        status="pending",
        origin="agent",
        speaker_id=speaker_id,
        answerer_id=speaker_id,
        input_id=input_id,
        announce=False,
    )
    store_inputs.consume(tx, input_id, turn.id, at)
    variant = variants.add(
        tx, turn, source="run", status="pending", prompt=prompt, model=Model(), announce=False
    )
    session_turns.insert_step(tx, child.id, "prompt", turn.id, variant.id, None, at)
    append(tx, child.id, Event("turn_created", turn.id, variant.id, payload={"status": "pending"}))
    said = Message("prompt", "user", turn.id, variant.id, created_at=at)
    messages.append(tx, child.id, said)
    bell.ring(tx, variant.public_id)


def answer(tx: Tx, child: Child) -> Answer | None:
    """Return how a child's first turn ended; None: it has not. One that was deleted is canceled."""
    row = store_children.first_answer(tx, child.id)
    found = Answer(0, "canceled", None, "deleted", None) if row is None else Answer(*row)
    return None if found.status in turns.UNSETTLED else found


def report(tx: Tx, candidate: str, found: Answer, text: str) -> None:
    """Put what a child reports into its parent's feed, once, while the parent's turn goes on."""
    work = hold(tx, candidate)
    if work is None or work.settled or found.variant_id == 0:
        return
    conversation_id = work.conversation.id
    if store_children.is_reported(tx, conversation_id, found.variant_id):
        return
    item = Message(
        "message",
        "user",
        work.turn.id,
        # Whoever conceals the child's answer conceals it here too.
        found.variant_id,
        source="subagent",
        content=text,
        created_at=now(),
    )
    messages.append(tx, conversation_id, item)
    tx.after_commit(lambda: waiting.announce(conversation_id))
