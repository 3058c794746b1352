"""Logging: structlog, one line an event, to standard error; no text of the record is logged."""

import logging
import sys

import structlog

from stenograph.errors import InvalidInputError
from stenograph.settings import Settings

LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}
FORMATS = ("text", "json")


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
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            last,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    # What libraries say: warnings and errors only.
    logging.basicConfig(level=max(level, logging.WARNING), stream=sys.stderr)
