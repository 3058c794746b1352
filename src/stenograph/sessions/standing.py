"""How a session stands once its newest turn shows another candidate, or is not there any more.

A turn that ends says so itself (`engine.ending`). Here the feed and the session's facts follow what
people do to it afterwards.
"""

from stenograph.clock import now
from stenograph.conversations.turn import Turn
from stenograph.conversations.variant import Variant
from stenograph.events import waiting
from stenograph.sessions import store_standing as store
from stenograph.sessions.activity import STATUS
from stenograph.sessions.ending import CANCELLED
from stenograph.sessions.messages import Message, Outcome, replace_reply
from stenograph.storage.database import Tx

#: A run that waited for a person who gave it up.
ABANDONED = "abandoned"
#: The public words (reason-api.md 1) for why no answer came; any other is `resource_unavailable`.
_CLASSES = {
    "rate_limited": "rate_limit_exceeded",
    "quota_exhausted": "quota_exhausted",
    "unauthorized": "agent_model_key_missing",
    "invalid_request": "invalid_request",
    "context_too_long": "request_too_large",
    "refused": "invalid_request",
    "invalid_model": "invalid_model",
    "unsupported_reasoning_effort": "invalid_reasoning_effort",
    "invalid_execution_budget": "invalid_request",
    CANCELLED: CANCELLED,
    ABANDONED: CANCELLED,
}


def error_class(reason: str) -> str:
    """Return the public word for a failure's reason."""
    if reason.startswith("budget_"):
        return "quota_exhausted"
    return _CLASSES.get(reason, "resource_unavailable")


def show(tx: Tx, turn: Turn, shown: Variant, outcome: Outcome | None) -> None:
    """Let feed and session tell the settled candidate that a turn shows from now on.

    `outcome` is what a direct reply's candidate came to. The caller holds the conversation.
    """
    name_prompt(tx, turn, shown.id)
    if turn.kind == "direct_reply":
        reply = Message(
            "reply",
            "assistant",
            turn.id,
            shown.id,
            status=STATUS[shown.status],
            outcome=outcome,
            created_at=now(),
        )
        replace_reply(tx, turn.conversation_id, reply)
    stand(tx, turn.conversation_id)


def name_prompt(tx: Tx, turn: Turn, variant_id: int) -> None:
    """Let what was said to open a turn be read from the candidate that it shows: another one may be
    concealed."""
    store.name_prompt(tx, turn.conversation_id, turn.id, variant_id)


def stand(tx: Tx, conversation_id: int) -> None:
    """Let a session stand as its newest answered turn does, unless something is under way; one
    whose agent runs elsewhere says itself how it stands."""
    if not store.waits_here(tx, conversation_id):
        return
    row = store.newest_answer(tx, conversation_id)
    status, reason, outcome = ("completed", None, None) if row is None else row
    failed = status in ("failed", "timed_out")
    store.set_facts(
        tx,
        conversation_id,
        status=STATUS[status],
        outcome=outcome,
        error_class=error_class(reason or "") if failed else None,
        reason_code=None if status == "completed" else reason,
        ended_at=now(),
    )
    tx.after_commit(lambda: waiting.announce(conversation_id))
