"""Conversations that began in the Agent API are sessions like any other (design.md 1).

They get the facts of a session when they are made, and what is said in them gets its place in the
feed and in the trajectory. The words stay where they are, with the candidate.
"""

from typing import Literal

from stenograph.accounts.access import Caller
from stenograph.clock import now
from stenograph.conversations import input as inputs
from stenograph.sessions import messages, store
from stenograph.sessions import store_turns as turns
from stenograph.sessions.messages import Message
from stenograph.storage.database import Tx

#: By the role of a message: the part its step has in the trajectory, and who says so there.
_STEPS: dict[str, tuple[str, str]] = {"user": ("prompt", "user"), "assistant": ("agent", "agent")}


def begin(tx: Tx, caller: Caller, conversation_id: int) -> None:
    """Give a conversation that was just made the facts of a session that waits for nothing."""
    at = now()
    store.insert_session(
        tx,
        conversation_id,
        organization_id=caller.organization_id,
        owner_id=caller.principal_id,
        mode="standard",
        status="exit",
        tags="[]",
        options="{}",
        created_at=at,
        started_at=at,
    )


def go_on(tx: Tx, conversation_id: int) -> None:
    """Let inputs that waited become turns, when nothing is being answered any more.

    The caller holds the conversation.
    """
    if inputs.advance(tx, conversation_id):
        catch_up(tx, conversation_id)


def catch_up(tx: Tx, conversation_id: int) -> None:
    """Put inputs that became turns, and are not there yet, into the feed and the trajectory.

    A message of the role system or tool has a step and is in no feed, which knows neither role.
    """
    for row in turns.unheard(tx, conversation_id):
        place(tx, conversation_id, *row)
        if row[3] == "direct_reply":
            store.resume(tx, conversation_id)


def place(
    tx: Tx,
    conversation_id: int,
    turn_id: int,
    variant_id: int,
    position: int,
    kind: str,
    role: str,
    content: str | None,
    at: int,
) -> None:
    """Give what opened a turn its step, and its row of the feed."""
    part, source = _STEPS.get("user" if kind == "direct_reply" else role, ("system", "system"))
    text = content if part == "system" else None
    turns.insert_step(tx, conversation_id, part, turn_id, variant_id, text, at, source=source)
    if part == "system":
        return
    speaker: Literal["user", "assistant"] = "user" if part == "prompt" else "assistant"
    item: messages.Kind = "prompt" if position == 0 and speaker == "user" else "message"
    messages.append(tx, conversation_id, Message(item, speaker, turn_id, variant_id, created_at=at))


def take_steers(tx: Tx, conversation_id: int, turn_id: int, variant_id: int) -> None:
    """Let inputs that steer the running turn go into it, before its next call of the model.

    The caller holds the conversation.
    """
    at = now()
    for _, text in inputs.take_steers(tx, conversation_id, turn_id):
        step_id = turns.insert_step(tx, conversation_id, "steer", turn_id, variant_id, text, at)
        messages.append(
            tx, conversation_id, Message("message", "user", turn_id, step_id=step_id, created_at=at)
        )
