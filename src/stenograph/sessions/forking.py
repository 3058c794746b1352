"""A fork is a session like its source: it is answered alike, and has a feed and a trajectory.

What it inherits is read from its ancestors. The turn it adopted is its own, so it has rows of its
own for it, which name the copied words and never repeat them.
"""

from stenograph.accounts.access import Caller
from stenograph.clock import now
from stenograph.conversations.access import Conversation
from stenograph.sessions import conversing, messages, store_forking
from stenograph.sessions import store_turns as turns
from stenograph.sessions.activity import STATUS
from stenograph.sessions.messages import Message, Outcome
from stenograph.sessions.store_forking import Adopted
from stenograph.storage.database import Tx


def begin(tx: Tx, caller: Caller, source: Conversation, made: Conversation) -> None:
    """Give a fork that was just made the facts of a session, and a place to what it adopted.

    A fork of a Reason's conversation is the Reason's too: nobody else sees it.
    """
    if not store_forking.copy_session(tx, caller.principal_id, source.id, made.id, now()):
        conversing.begin(tx, caller, made.id)
    for adopted in store_forking.adopted(tx, made.id):
        place = (adopted.turn_id, adopted.variant_id, adopted.position, adopted.kind, adopted.role)
        if adopted.kind == "message" or adopted.asked:
            conversing.place(tx, made.id, *place, adopted.content, adopted.at)
        if adopted.kind == "direct_reply":
            _reply(tx, made.id, adopted)


def _reply(tx: Tx, fork_id: int, adopted: Adopted) -> None:
    turn_id, variant_id, at = adopted.turn_id, adopted.variant_id, adopted.at
    for text, said_at in store_forking.steers(tx, adopted.origin_id):
        step_id = turns.insert_step(tx, fork_id, "steer", turn_id, variant_id, text, said_at or at)
        steer = Message("message", "user", turn_id, step_id=step_id, created_at=said_at)
        messages.append(tx, fork_id, steer)
    turns.insert_step(tx, fork_id, "agent", turn_id, variant_id, None, at, source="agent")
    outcome: Outcome | None = "success" if adopted.status == "completed" else "failure"
    reply = Message(
        "reply",
        "assistant",
        turn_id,
        variant_id,
        status=STATUS[adopted.status],
        outcome=None if adopted.status == "canceled" else outcome,
        created_at=at,
    )
    messages.append(tx, fork_id, reply)
