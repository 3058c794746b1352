"""What a call in a worker's hands has written so far, told live and never kept.

A worker sends the end of the output, again and again. Of one that does not begin at the beginning,
and at its end, half a secret may stand, which no list of secrets holds: both ends are left out up
to where that cannot be.
"""

from dataclasses import dataclass

from stenograph.devices import dispatch
from stenograph.devices.device import Device
from stenograph.engine.work import load
from stenograph.events.live import Frame
from stenograph.runs import task as tasks
from stenograph.sessions import secret
from stenograph.storage.database import Tx
from stenograph.storage.sealing import Sealer
from stenograph.trajectories.redaction.streaming import masked_window

#: Characters of an output's end that are told.
SHOWN = 2_000


@dataclass(frozen=True, slots=True)
class Report:
    """The end of an output, and how many characters it has in all."""

    text: str
    characters: int


def told(
    tx: Tx, sealer: Sealer, worker: Device, claim_id: str, report: Report
) -> tuple[int, Frame | None]:
    """Return the conversation (row id) and the frame for a report; None: it is nobody's to see.

    Raises `ConflictError` (`stale_claim`) unless the worker holds the claim.
    """
    found = dispatch.held(tx, worker, claim_id)
    work = load(tx, found.candidate)
    if found.status != "claimed" or work is None or work.run is None:
        raise dispatch.stale()
    if tasks.find(tx, work.run, found.task_key).visibility == "hidden":
        return found.conversation_id, None
    secrets = secret.values(tx, sealer, found.conversation_id)
    is_whole = report.characters <= len(report.text)
    text = masked_window(report.text, secrets, from_start=is_whole)
    data = {
        "turn_public_id": work.turn.public_id,
        "variant_public_id": work.variant.public_id,
        "run_public_id": work.run.public_id,
        "task_key": found.task_key,
        "name": found.name,
        "text": text[-SHOWN:],
        "characters": report.characters,
    }
    frame = Frame("progress", "tool_output", data, work.turn.id, work.variant.id)
    return found.conversation_id, frame
