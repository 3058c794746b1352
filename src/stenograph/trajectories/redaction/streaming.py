r"""Masking a text that comes in pieces: what comes out, joined, is the masked whole.

A text is cut where no secret can stand across the cut, whatever comes next. What may be the
beginning of one, in any spelling, is held back until it is decided:

- the longest end of the text that may be the beginning of a secret, half a spelling included
- what a rule finds there already, for a longer find may yet take its place
- backslashes, which a find takes with it, and the letters before what may be a credential of this
  server, which is one only where no letter stands before it
"""

from collections.abc import Collection, Iterator
from typing import Any

from stenograph.trajectories.redaction.masking import (
    SECRET_MARKER,
    Rules,
    Span,
    compile_bytes,
    finds,
    mask,
    rules_for,
)
from stenograph.trajectories.redaction.shapes import OWN_CREDENTIALS
from stenograph.trajectories.redaction.spellings import secret_forms, spelled_characters

#: Characters of a secret that are followed one by one. Of a longer one the first so many are
#: looked for, and what comes behind them is held back until it would be over.
_FOLLOWED = 1_000
#: Characters that a spelling takes for one of the value's (`http/masking.py`).
_LONGEST_SPELLING = 14
#: Bytes from which a text that is held back is looked at again only when it has grown by an eighth:
#: else a long one, looked at with every piece, would take quadratic time.
_LARGE = 4_096

_HEX = rb"[0-9a-fA-F]"
#: The beginning of a character's spelling, as `spellings._character` writes them.
_ESCAPE = rb"(?:\\+(?:u" + _HEX + rb"{0,4}|x" + _HEX + rb"{0,2}|r)?)"
_PERCENT = rb"(?:%(?:25)*" + _HEX + rb"{0,2})"
_PARTIAL = (
    rb"(?:\r?(?:" + _ESCAPE + rb"{1,5}|" + _PERCENT + rb"{1,5}|&(?:amp;)*[#0-9A-Za-z]{0,5}|~)|\r)"
)
#: What this server's own credentials begin with (`shapes.OWN_CREDENTIALS`), and go on with.
_OWN = tuple(dict.fromkeys(hint for shape in OWN_CREDENTIALS for hint in shape.hints))
_OWN_REST = rb"[A-Za-z0-9_-]*"
#: The first letters of those that are one only where no letter or digit stands before.
_LED = frozenset(hint[0] for hint in _OWN if not hint.startswith(b"sk-"))
#: Half of an escape, which counts as no letter there (`shapes._LEAD`).
_INSIDE_LEAD = compile_bytes(rb"(?:%" + _HEX + rb"?|\\(?:u" + _HEX + rb"{0,3})?)\z")
_LONGEST_LEAD = 5


class StreamedText:
    """Masks one text as `Redactor(secrets, "ephemeral").text` masks the whole."""

    __slots__ = ("_held", "_looked_at", "_pattern")

    def __init__(self, pattern: "Pattern") -> None:
        self._pattern = pattern
        self._held = bytearray()
        self._looked_at = 0

    def feed(self, piece: str) -> str:
        """Take more of the text, and return the masked text that is certain by now."""
        self._held += piece.encode("utf-8", "surrogatepass")
        size = len(self._held)
        if size > _LARGE and size - self._looked_at < self._looked_at // 8:
            return ""
        raw = bytes(self._held)
        cut = self._pattern.cut(raw)
        self._looked_at = size - cut
        return self._given(raw, cut)

    def end(self) -> str:
        """Return the rest, masked; nothing more may come."""
        raw = bytes(self._held)
        return self._given(raw, len(raw))

    def _given(self, raw: bytes, cut: int) -> str:
        if not cut:
            return ""
        self._held = bytearray(raw[cut:])
        return mask(raw[:cut], self._pattern.rules).decode("utf-8", "surrogatepass")


class Pattern:
    """The secrets of a conversation, as texts that are masked in pieces look for them."""

    __slots__ = ("_begins", "_long", "_whole", "longest", "rules")

    def __init__(self, secrets: Collection[str]) -> None:
        self.rules: tuple[Rules, ...] = rules_for(secrets, "ephemeral")
        forms = secret_forms(secrets)
        self._begins = compile_bytes(b"|".join(_beginnings(forms)))
        long = [b"".join(spelled_characters(form[:_FOLLOWED])) for form in forms if _is_long(form)]
        self._long = compile_bytes(b"|".join(long)) if long else None
        #: Bytes that a secret may take, in its longest spelling.
        self.longest = _LONGEST_SPELLING * max((len(f.encode()) for f in forms), default=0)
        #: A secret that a marker may be a part of: only the whole text says what becomes of it.
        self._whole = any(_meets(self._begins, form) for form in forms)

    def cut(self, raw: bytes) -> int:
        """Return up to where a text may be masked by itself."""
        if self._whole:
            return 0
        cut = len(raw)
        if (found := self._begins.search(raw)) is not None:
            cut = found.start()
        if self._long is not None:
            found = self._long.search(raw, max(0, len(raw) - self.longest))
            if found is not None:
                cut = min(cut, found.start())
        spans = finds(raw, self.rules)
        while (sooner := _sooner(raw, cut, spans)) != cut:
            cut = sooner
        return cut


def masked_window(text: str, secrets: Collection[str], *, from_start: bool) -> str:
    """Mask a part of a text, as it is masked in the whole.

    Left out is its end as far as that may be the beginning of a secret and, unless it is the
    beginning of the text (`from_start`), as much as may be the end of one.
    """
    if not secrets:
        return text
    pattern = Pattern(secrets)
    raw = text.encode("utf-8", "surrogatepass")
    start, cut = 0 if from_start else pattern.longest, pattern.cut(raw)
    spans = sorted(finds(raw, pattern.rules))
    for begins, ends, _ in spans:
        if begins < start < ends:
            start = ends
    while start < cut and raw[start] & 0xC0 == 0x80:  # within a character
        start += 1
    return mask(raw[start:cut], pattern.rules).decode("utf-8", "surrogatepass")


def _sooner(raw: bytes, cut: int, spans: list[Span]) -> int:
    """Move a cut to before what stands across it."""
    for start, end, _ in spans:
        if start < cut < end:
            cut = start
    while cut and (raw[cut - 1] == 0x5C or _may_be_led(raw, cut)):
        cut -= 1
    start = max(0, cut - _LONGEST_LEAD)
    inside = _INSIDE_LEAD.search(raw[start:cut])
    return cut if inside is None else start + int(inside.start())


def _may_be_led(raw: bytes, cut: int) -> bool:
    """Tell whether a credential may begin at the cut that is none, for a letter stands before."""
    return raw[cut - 1 : cut].isalnum() and (cut == len(raw) or raw[cut] in _LED)


def _is_long(form: str) -> bool:
    return len(form) > _FOLLOWED


def _beginnings(forms: Collection[str]) -> Iterator[bytes]:
    """Patterns of what, at the end of a text, may begin a secret or an own credential."""
    for form in forms:
        yield _nested(spelled_characters(form[:_FOLLOWED]))
    yield _PARTIAL + rb"\z"
    for own in _OWN:
        letters = [bytes([letter]) for letter in own]
        letters[-1] += _OWN_REST
        yield _nested(letters)


def _nested(parts: list[bytes]) -> bytes:
    """`a(?:b(?:c)?)?` at the end of the text, with half a spelling behind."""
    inner = b"(?:".join(parts) + b")?" * (len(parts) - 1)
    return inner + _PARTIAL + rb"?\z"


def _meets(begins: Any, form: str) -> bool:
    """Tell whether a marker may stand in a find of this form, in whole or in part."""
    for marker, new in _MARKERS:
        if marker in form or begins.search(marker.encode()):
            return True
        if any(form.endswith(marker[:length]) for length in range(new, len(marker))):
            return True
    return False


#: Each marker, and from how many of its characters on it is other than what it replaced.
_MARKERS = [
    (SECRET_MARKER, 1),
    *((shape.marker, len(shape.marker) - 2) for shape in OWN_CREDENTIALS),
]
