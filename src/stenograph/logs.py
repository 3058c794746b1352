"""Logging: structlog, one line an event, to standard error.

No text of the record is logged. What an error says of itself may hold some, so that every line is
masked last: the secret values that the request knows, and the shapes of this server's keys.
"""

import logging
import sys

import structlog

from stenograph.errors import InvalidInputError
from stenograph.settings import Settings
from stenograph.storage.sealing import plain_texts
from stenograph.trajectories.redaction import Redactor, mask_log_event

LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}
FORMATS = ("text", "json")


def _redactor() -> Redactor:
    """Masks the secret values that the current request knows, and credentials of this server."""
    return Redactor(plain_texts.get() or (), "ephemeral")


#: What every event goes through before it is written.
PROCESSORS: list[structlog.typing.Processor] = [
    structlog.processors.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.format_exc_info,
    mask_log_event(_redactor),
]


def configure(settings: Settings) -> None:
    """Set up logging as the settings say. Raises `InvalidInputError` for unknown ones."""
    if settings.log_level not in LEVELS:
        raise InvalidInputError(
            f"The log level must be one of {', '.join(LEVELS)}", code="invalid_setting"
        )
    if settings.log_format not in FORMATS:
        raise InvalidInputError(
            f"The log format must be one of {', '.join(FORMATS)}", code="invalid_setting"
        )
    level = LEVELS[settings.log_level]
    last: structlog.typing.Processor = (
        structlog.processors.JSONRenderer()
        if settings.log_format == "json"
        else structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
        )
    )
    structlog.configure(
        processors=[*PROCESSORS, last],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    # What libraries say: warnings and errors only.
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, last],
            foreign_pre_chain=PROCESSORS,
        )
    )
    logging.basicConfig(level=max(level, logging.WARNING), handlers=[handler], force=True)
