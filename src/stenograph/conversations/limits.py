"""How large what people write about a conversation may be."""

from typing import Any

import msgspec

from stenograph.errors import RefusedError

#: Bytes of a metadata object, written as JSON.
METADATA = 64 * 1024


def refused(message: str) -> RefusedError:
    """The error for a value that no rule of the family allows."""
    return RefusedError(message, code="validation_failed")


def check_text(name: str, text: str, *, longest: int, blank: bool = True) -> None:
    """Raise `RefusedError` for a text over `longest` characters, or blank where it must not be."""
    if len(text) > longest:
        raise refused(f"{name} is longer than {longest} characters")
    if not blank and not text.strip():
        raise refused(f"{name} must not be blank")


def check_metadata(metadata: dict[str, Any] | None) -> str:
    """Return the JSON text of a metadata object; raises `RefusedError` when it is too large."""
    text = msgspec.json.encode(metadata or {}).decode()
    if len(text.encode()) > METADATA:
        raise refused(f"metadata is larger than {METADATA} bytes")
    return text
