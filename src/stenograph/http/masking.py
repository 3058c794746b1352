"""Masking: a run's secret values leave in no answer, however they are spelled."""

from typing import Any, TypeVar

import msgspec

from stenograph.trajectories.redaction.redactor import Redactor

T = TypeVar("T")

#: Characters that a spelling takes for one of the value's: `\\ud83d\\ude42`, `%F0%9F%99%82`.
_LONGEST_SPELLING = 14


def masked(value: T, secrets: tuple[str, ...]) -> T:
    """Return a copy of `value` with every spelling of a secret in its strings made
    `[redacted-secret]`, keys and free-form numbers included.

    Untouched without secrets, or where a scan of its JSON finds none. Of structs, numbers and fixed
    words stay, and a call's id becomes an alias (`Redactor.struct`), so that the shape is kept.
    """
    if not secrets:
        return value
    redactor = Redactor(secrets, "ephemeral")
    if redactor.clean(msgspec.json.encode(value)):
        return value
    copied: Any = redactor.struct(value)  # type: ignore[type-var]
    return copied  # type: ignore[no-any-return]


def mask_text(text: str, secrets: tuple[str, ...]) -> str:
    """As `masked`, for one string."""
    return Redactor(secrets, "ephemeral").text(text) if secrets else text


def margin(secrets: tuple[str, ...]) -> int:
    """How many characters behind a cut are to be read, so that a secret there is seen whole."""
    return _LONGEST_SPELLING * max(map(len, secrets), default=0)


def excerpt(text: str, size: int, length: int, secrets: tuple[str, ...]) -> str:
    """Return the first `size` characters of a text that was read up to `size + margin(secrets)`
    and then masked; `length` is how long it was before either.

    Where the reading was cut, the last `margin` may begin a secret, which masking did not see; and
    what was masked before has moved it to the front.
    """
    beyond = margin(secrets)
    known = len(text) - beyond if length > size + beyond else len(text)
    return text[: max(0, min(size, known))]
