"""What follows when a turn that only sums up has its end: the session stands as it did before, or
answers what was said meanwhile."""

from typing import Literal

from stenograph.clock import now
from stenograph.conversations import turn as turns
from stenograph.conversations import variant as variants
from stenograph.engine import store_compaction as store
from stenograph.engine.work import Work
from stenograph.events import bell, waiting
from stenograph.events.journal import Event, append
from stenograph.sessions import store as sessions
from stenograph.sessions.activity import STATUS
from stenograph.storage.database import Tx

KIND: Literal["compaction_summary"] = "compaction_summary"


def leave(tx: Tx, work: Work) -> None:
    """Go back to the conversation after the turn was settled; the caller holds it.

    Whoever wrote while it was summed up did not mean to steer the summary: the first of these
    words open the next turn, and the others steer that.
    """
    conversation_id = work.conversation.id
    said = store.steers(tx, work.variant.id)
    if said:
        _open(tx, work, [row[0] for row in said], said[0][1])
    elif work.is_session:
        last = store.last_status(tx, conversation_id)
        status = "exit" if last is None else STATUS[last]
        sessions.update(tx, conversation_id, status=status, ended_at=now())
        tx.after_commit(lambda: waiting.announce(conversation_id))


def _open(tx: Tx, work: Work, step_ids: list[int], prompt: str) -> None:
    conversation_id = work.conversation.id
    opened = turns.open(tx, conversation_id, status="pending", announce=False)
    wanted = variants.add(tx, opened, source="run", status="pending", prompt=prompt, announce=False)
    for number, step_id in enumerate(step_ids):
        store.hand_on(tx, conversation_id, step_id, opened.id, wanted.id, opens=number == 0)
    append(tx, conversation_id, Event("turn_created", opened.id, wanted.id))
    bell.ring(tx, wanted.public_id)
