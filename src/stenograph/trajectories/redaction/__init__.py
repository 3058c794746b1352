"""What must not leave: secret values, credentials and long runs, masked last, over every string."""

from stenograph.trajectories.redaction.logs import mask_log_event
from stenograph.trajectories.redaction.masking import MARKERS, Tier
from stenograph.trajectories.redaction.redactor import Redactor
from stenograph.trajectories.redaction.spellings import MIN_LINE_LENGTH, MIN_SECRET_LENGTH

__all__ = [
    "MARKERS",
    "MIN_LINE_LENGTH",
    "MIN_SECRET_LENGTH",
    "Redactor",
    "Tier",
    "mask_log_event",
]
