"""Scheduled inputs: who looks at what is due. The moments lie in the record, so that a start finds
what fell due while nobody looked."""

import asyncio
from functools import partial

import structlog

from stenograph.clock import now
from stenograph.conversations import store_inputs
from stenograph.engine.desk import Desk
from stenograph.sessions import conversing

_log = structlog.get_logger()

#: Seconds between two looks: how late an input may be.
LOOK = 1.0
#: How many conversations one look delivers in.
_AT_ONCE = 100


async def keep(desk: Desk) -> None:
    """Deliver what falls due, until this is cancelled."""
    while True:
        try:
            delivered = await deliver(desk)
        except Exception as error:
            _log.error("inputs_not_delivered", error=type(error).__name__)
            delivered = 0
        if delivered < _AT_ONCE:
            await asyncio.sleep(LOOK)


async def deliver(desk: Desk) -> int:
    """Deliver what is due now; returns in how many conversations something was."""
    due = await desk.read(lambda tx: store_inputs.due(tx, now(), _AT_ONCE))
    for conversation_id in due:
        await desk.write(partial(conversing.fall_due, conversation_id=conversation_id))
    return len(due)
