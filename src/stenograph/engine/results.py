"""What of a tool's output, and of a model's words, is kept and what is told.

A text is cut where no value of `secrets` stands across the cut: half of one would be masked
nowhere.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    # A worker loads this file, and nothing of the record.
    from stenograph.storage.database import Tx

#: Returns the values that are masked in the readings of a conversation (row id).
Secrets: TypeAlias = "Callable[[Tx, int], Collection[str]]"

#: Characters of an output that the model is told; the record keeps it whole up to `LONGEST`.
PREVIEW = 4_000
#: Characters of an output that are kept.
LONGEST = 1_000_000

_HEAD = 3_000


def storable(text: str) -> str:
    """Replace what no database takes: NUL and lone surrogates become U+FFFD."""
    if not text.isascii():
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text.replace("\x00", "\ufffd")


def no_secrets(tx: Tx, conversation_id: int) -> Collection[str]:
    """Return none, where there are none or nothing is cut."""
    return ()


def beginning(text: str, most: int, secrets: Collection[str] = ()) -> str:
    """Return the first `most` characters of a text."""
    return text[: _apart(text, most, secrets)]


def kept(output: str, secrets: Collection[str] = ()) -> tuple[str, bool]:
    """Return the part of an output that is kept, and whether it is only a part."""
    return storable(beginning(output, LONGEST, secrets)), len(output) > LONGEST


def preview(output: str, secrets: Collection[str] = ()) -> str:
    """Cut a long output to `PREVIEW` characters: its beginning, what was left out, its end."""
    if len(output) <= PREVIEW:
        return output
    left_out = f"\n[… {len(output)} characters in all, the middle is left out …]\n"
    end = len(output) - (PREVIEW - _HEAD - len(left_out))
    return (
        beginning(output, _HEAD, secrets)
        + left_out
        + output[_apart(output, end, secrets, "after") :]
    )


def _apart(
    text: str, at: int, secrets: Collection[str], side: Literal["before", "after"] = "before"
) -> int:
    if not secrets:
        return at
    from stenograph.trajectories.redaction.cutting import apart

    return apart(text, at, secrets, side)
