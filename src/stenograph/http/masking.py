"""Masking: a run's secret values leave in no answer."""

from typing import Any, TypeVar

import msgspec

T = TypeVar("T")
MARKER = "[redacted-secret]"


def masked(value: T, secrets: tuple[str, ...]) -> T:
    """Return `value` with every secret value in its strings replaced by `[redacted-secret]`.

    Without secrets it is returned untouched; with some, what comes back is its JSON form (dicts
    and lists), which encodes alike. Longer values go first, so that one that holds another
    leaves nothing behind.
    """
    if not secrets:
        return value
    longest_first = sorted((s for s in secrets if s), key=len, reverse=True)
    clean: T = _mask(msgspec.to_builtins(value), longest_first)
    return clean


def mask_text(text: str, secrets: tuple[str, ...]) -> str:
    """As `masked`, for one string."""
    for secret in sorted((s for s in secrets if s), key=len, reverse=True):
        text = text.replace(secret, MARKER)
    return text


def _mask(value: Any, secrets: list[str]) -> Any:
    if isinstance(value, str):
        for secret in secrets:
            if secret in value:
                value = value.replace(secret, MARKER)
        return value
    if isinstance(value, dict):
        return {_mask(key, secrets): _mask(item, secrets) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_mask(item, secrets) for item in value]
    return value
