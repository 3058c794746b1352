r"""The spellings in which a run's secret value may stand in a document.

A value is looked for as itself and as JSON, URLs, HTML and Python would write it, to any depth of
strings inside strings: `\\*"` is a quote escaped any number of times. A pattern therefore also
holds on the JSON spelling of any string that it holds on, which is what lets encoded bytes be
scanned instead of strings.
"""

import base64
from collections.abc import Collection, Iterator
from functools import lru_cache

import re2

#: The shortest secret that is masked, in characters, surrounding whitespace apart: anything shorter
#: stands by chance all over a document. Refuse shorter ones where secrets are made.
MIN_SECRET_LENGTH = 4

#: The shortest line of a secret of many lines (a PEM file) that is masked on its own.
MIN_LINE_LENGTH = 8

#: The shortest piece of base64 that is looked for inside longer base64 (`user:password`).
_MIN_BASE64 = 8

_SHORT_ESCAPES = {"\b": "b", "\t": "t", "\n": "n", "\f": "f", "\r": "r", "\v": "v"}
#: RFC 6901, section 3: errors name places by pointers, whose steps are keys.
_POINTER_ESCAPES = {"~": b"~0", "/": b"~1"}
_ENTITIES = {
    '"': ("quot", "#34", "#x22"),
    "&": ("amp", "#38", "#x26"),
    "'": ("apos", "#39", "#x27"),
    "<": ("lt", "#60", "#x3c"),
    ">": ("gt", "#62", "#x3e"),
}


def secret_patterns(secrets: Collection[str]) -> list[bytes]:
    """Return RE2 patterns (bytes, Latin-1) that together hold on every spelling of `secrets`.

    Values under `MIN_SECRET_LENGTH` are left out. Of a value of many lines, each line of
    `MIN_LINE_LENGTH` or more counts as a value too. Base64 is looked for alone and inside longer
    base64, unwrapped.
    """
    return [_spelled(form) for form in secret_forms(secrets)]


def secret_forms(secrets: Collection[str]) -> list[str]:
    """Return the texts whose spellings `secret_patterns` holds on."""
    return sorted({form for secret in secrets for form in _forms(secret)})


def spelled_characters(form: str) -> list[bytes]:
    """Return a pattern for each character of a form; joined they hold on its spellings."""
    return list(map(_character, form))


def _forms(secret: str) -> Iterator[str]:
    whole = secret.strip()
    if len(whole) < MIN_SECRET_LENGTH:
        return
    yield whole.replace("\r\n", "\n")
    lines = [line.strip() for line in whole.splitlines()]
    if len(lines) > 1:
        yield from (line for line in lines if len(line) >= MIN_LINE_LENGTH)
    yield from _base64_forms(whole)
    yield from _base64_forms(secret)


def _base64_forms(value: str) -> Iterator[str]:
    raw = value.encode("utf-8", "surrogatepass")
    for altchars in (b"+/", b"-_"):
        yield base64.b64encode(raw, altchars).decode().rstrip("=")
        for offset in range(3):
            # The characters whose six bits come from `raw` alone, `offset` bytes into a group.
            whole = base64.b64encode(bytes(offset) + raw, altchars).decode()
            inner = whole[-(-offset * 8 // 6) : (offset + len(raw)) * 8 // 6]
            if len(inner) >= _MIN_BASE64:
                yield inner


def _spelled(value: str) -> bytes:
    return b"".join(spelled_characters(value))


@lru_cache(maxsize=1024)
def _character(char: str) -> bytes:
    if char.isascii() and char.isalnum():
        return char.encode()
    code, raw = ord(char), char.encode("utf-8", "surrogatepass")
    units = char.encode("utf-16-be", "surrogatepass")
    forms = [
        re2.escape(raw) if code < 0x20 else rb"\\*" + re2.escape(raw),
        b"".join(rb"\\+u" + _hex(units[i : i + 2]) for i in range(0, len(units), 2)),
        b"".join(rb"%(?:25)*" + _hex(raw[i : i + 1]) for i in range(len(raw))),
        b"".join(rb"\\+x" + _hex(raw[i : i + 1]) for i in range(len(raw))),
    ]
    if 0x7F < code < 0x100:
        forms.append(rb"\\+x" + _hex(bytes([code])))
    if char in _SHORT_ESCAPES:
        forms.append(rb"\\+" + _SHORT_ESCAPES[char].encode())
    forms += [rb"&(?:amp;)*(?i:" + name.encode() + rb");" for name in _ENTITIES.get(char, ())]
    if char == "\\":
        forms.append(rb"\\+")
    if char == " ":
        forms.append(rb"\+")
    if char in _POINTER_ESCAPES:
        forms.append(_POINTER_ESCAPES[char])
    spelled = rb"(?:" + b"|".join(forms) + rb")"
    return rb"(?:\r|\\+r|%(?:25)*0[dD])?" + spelled if char == "\n" else spelled


def _hex(raw: bytes) -> bytes:
    digits = raw.hex()
    return "".join(f"[{d}{d.upper()}]" if d.isalpha() else d for d in digits).encode()
