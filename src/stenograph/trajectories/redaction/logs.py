"""Masking of log lines, as a structlog processor."""

from collections.abc import Callable
from typing import Any

from structlog.typing import EventDict, Processor, WrappedLogger

from stenograph.trajectories.redaction.redactor import Redactor


def mask_log_event(current: Callable[[], Redactor]) -> Processor:
    """Return a processor that masks every string of an event, keys and nested values included.

    `current` gives the redactor to use, so that secrets can be registered and forgotten while the
    server runs; tier `ephemeral` masks registered secrets and own credentials. An object that is no
    JSON is replaced by its masked `repr` if that needs masking. Put the processor last before the
    renderer, after the one that turns `exc_info` into text.
    """

    def process(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
        redactor = current()
        return {redactor.text(str(key)): _masked(value, redactor) for key, value in event.items()}

    return process


def _masked(value: Any, redactor: Redactor) -> Any:
    if isinstance(value, str):
        return redactor.text(value)
    if isinstance(value, dict):
        return {redactor.text(str(key)): _masked(item, redactor) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_masked(item, redactor) for item in value]
    shown = repr(value)
    masked = redactor.text(shown)
    return value if masked is shown else masked
