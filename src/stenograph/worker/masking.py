"""Secrets, kept out of what a worker says and of what others see of its process."""

import ctypes
import os
import sys
from collections.abc import Iterable, MutableMapping
from contextvars import ContextVar
from typing import Any

MASK = "[redacted-secret]"

#: `prctl`: whether others of the same user may look into this process.
_PR_SET_DUMPABLE = 4
#: Fields of /proc/self/stat, counted from the third: where arguments and environment lie.
_ARGUMENTS, _ENVIRONMENT = (45, 46), (47, 48)

#: The values of the environment of the call at hand.
values: ContextVar[tuple[str, ...]] = ContextVar("values", default=())


def mask(text: str) -> str:
    """Replace the values of the call at hand."""
    for value in sorted(filter(None, values.get()), key=len, reverse=True):
        text = text.replace(value, MASK)
    return text


def mask_log_event(_: Any, __: str, event: MutableMapping[str, Any]) -> dict[str, Any]:
    """Mask a log event (a structlog processor)."""
    return {key: mask(value) if isinstance(value, str) else value for key, value in event.items()}


def hide(secrets: Iterable[str]) -> None:
    """Keep secrets, and every variable `STENO_…`, from commands that this process runs.

    A command is given neither, but could look at /proc. So the variables are removed, their bytes
    and those of the secrets among the arguments overwritten where the kernel shows them, and the
    process closed to others of its user (environment, memory, descriptors). That is Linux; other
    systems show less, and there only the variables are removed. Nothing keeps root out.
    """
    own = {name: value for name, value in os.environ.items() if name.startswith("STENO_")}
    for name in own:
        del os.environ[name]
    if not sys.platform.startswith("linux"):
        return
    with open("/proc/self/stat", "rb") as file:
        fields = file.read().rpartition(b") ")[2].split()
    for (first, last), texts in ((_ARGUMENTS, secrets), (_ENVIRONMENT, own.values())):
        _overwrite(int(fields[first]), int(fields[last]), texts)
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def _overwrite(start: int, end: int, texts: Iterable[str]) -> None:
    if not 0 < start < end:
        return
    shown = ctypes.string_at(start, end - start)
    for text in filter(None, map(os.fsencode, texts)):
        at = shown.find(text)
        while at >= 0:
            ctypes.memset(start + at, ord("x"), len(text))
            at = shown.find(text, at + 1)
