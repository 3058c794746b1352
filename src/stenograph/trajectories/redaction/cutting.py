"""Cutting a text where no secret stands across the cut: half of one is in no list of secrets."""

from collections.abc import Collection
from typing import Literal

from stenograph.trajectories.redaction.masking import finds, rules_for

#: Characters that a spelling takes for one of the value's (`\\ud83d\\ude42`, `%F0%9F%99%82`).
LONGEST_SPELLING = 14


def apart(
    text: str, at: int, secrets: Collection[str], side: Literal["before", "after"] = "before"
) -> int:
    """Return where to cut a text, at `at` or else before (after) what stands there of a secret."""
    if not secrets or not 0 < at < len(text):
        return at
    margin = LONGEST_SPELLING * max(map(len, secrets))
    start = max(0, at - margin)
    raw = _bytes(text[start : at + margin])
    cut = wanted = len(_bytes(text[start:at]))
    spans = finds(raw, rules_for(secrets, "ephemeral"))
    while across := [(a, b) for a, b, _ in spans if a < cut < b]:
        cut = min(a for a, _ in across) if side == "before" else max(b for _, b in across)
    return at if cut == wanted else start + len(raw[:cut].decode("utf-8", "surrogatepass"))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
