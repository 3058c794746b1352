"""How a session ends before its agent is done: it is cancelled, or its Reason is deleted."""

from stenograph.accounts.access import Caller
from stenograph.clock import now
from stenograph.events import waiting
from stenograph.events.journal import Event, append
from stenograph.sessions import conversing, reason, session, store, store_reasons, store_turns
from stenograph.sessions.messages import Message, replace_reply
from stenograph.sessions.session import Session
from stenograph.storage.database import Tx

#: The public code of a session that somebody stopped (reason-api.md 1).
CANCELLED = "run_cancelled"


def cancel(tx: Tx, caller: Caller, public_id: str) -> Session:
    """Stop a session and the sessions it started; one that has ended stays as it is.

    Turns that have no end get one, and a reply with the status `cancelled` in the feed.
    """
    found = session.find(tx, caller, public_id)
    session.require_control(caller, found)
    if store.hold(tx, found.id) in ("running", "suspended"):
        for conversation_id in (found.id, *store.running_below(tx, found.id)):
            _cancel(tx, conversation_id)
    return session.find(tx, caller, public_id)


def delete_reason(tx: Tx, caller: Caller, public_id: str) -> None:
    """Delete a Reason of the caller's with its sessions; those that run are cancelled first."""
    found = reason.require_own(caller, reason.find(tx, caller, public_id))
    store_reasons.hold(tx, found.id)
    for conversation_id in store_reasons.running(tx, found.id):
        _cancel(tx, conversation_id)
    store_reasons.delete(tx, found.id, now())


def _cancel(tx: Tx, conversation_id: int) -> None:
    at = now()
    store.hold(tx, conversation_id)
    for turn in store_turns.open_turns(tx, conversation_id):
        turn_id, variant_id, run_id = turn
        store_turns.cancel(tx, turn, CANCELLED, at)
        append(
            tx,
            conversation_id,
            Event(
                "turn_status",
                turn_id=turn_id,
                variant_id=variant_id,
                run_id=run_id,
                payload={"status": "canceled", "variant_status": "canceled"},
                occurred_at=at,
            ),
        )
        reply = Message(
            "reply", "assistant", turn_id, variant_id, status="cancelled", created_at=at
        )
        replace_reply(tx, conversation_id, reply)
    store.update(
        tx,
        conversation_id,
        status="cancelled",
        outcome=None,
        reason_code=CANCELLED,
        ended_at=at,
    )
    conversing.go_on(tx, conversation_id)
    tx.after_commit(lambda: waiting.announce(conversation_id))
