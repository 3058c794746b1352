"""Second looks at finds whose pattern alone cannot tell a credential from code or prose.

Each takes the text's bytes, where the whole match starts, and the value's start and end, and tells
whether the value is to be masked. All work on the value and the few bytes around it.
"""

import re

_DIGIT = re.compile(rb"[0-9]")
_SLASH = re.compile(rb"[/+]")
_UPPER = re.compile(rb"[A-Z]")
_CLASS_CHANGE = re.compile(rb"[a-z](?=[A-Z0-9])|[0-9](?=[A-Za-z])|[A-Z]{2}(?=[a-z])")
_BASE64_LINE = re.compile(rb"[A-Za-z0-9+/=]{16}")
_NAME = re.compile(rb"[A-Za-z_.]+")
_DOTTED_NAME = re.compile(rb"[A-Za-z0-9_.]+")
_TEMPLATE = re.compile(rb"[$%]?[{(<\[].*|[xX]+|\*+|\.+|%[sdr]", re.DOTALL)
#: Names that often hold something else (a lexer's token, the text "secret: yes").
_WEAK_NAME = re.compile(rb"(?i:token|secret)[\"'`\\\s]*[:=]")
_PLACEHOLDERS = frozenset(
    b"string required optional password passwd secret token apikey api_key none null true false "
    b"undefined default".split()
)


def is_random(text: bytes, match: int, start: int, end: int) -> bool:
    """Spare long names that only begin like a key (`reason_not_found_in_organization`)."""
    value = text[start:end]
    return bool(_DIGIT.search(value) and _UPPER.search(value))


def has_key_body(text: bytes, match: int, start: int, end: int) -> bool:
    """Spare mentions of a PEM header; a key has lines of base64 after it."""
    return _BASE64_LINE.search(text, start + len(b"-----BEGIN PRIVATE KEY-----"), end) is not None


def is_aws_secret(text: bytes, match: int, start: int, end: int) -> bool:
    """Spare file paths: 40 random characters change their class often (16 times in the mean).

    Without `/` or `+` it is an unbroken run, and masked as that.
    """
    value = text[start:end]
    return bool(_SLASH.search(value) and _DIGIT.search(value)) and (
        len(_CLASS_CHANGE.findall(value)) >= 7
    )


def is_bearer(text: bytes, match: int, start: int, end: int) -> bool:
    """Spare prose about bearer tokens, where a plain word follows."""
    return not text[start:end].rstrip(b".").isalpha()


def is_literal(text: bytes, match: int, start: int, end: int) -> bool:
    """Spare `{password}`, `***`, `xxx` and the like, which stand for a value."""
    value = text[start:end]
    return _TEMPLATE.fullmatch(value) is None and value.lower() not in _PLACEHOLDERS


def is_flag_value(text: bytes, match: int, start: int, end: int) -> bool:
    """Spare what follows `--password` in prose: a word, or the next flag."""
    value = text[start:end]
    return not (value.startswith(b"-") or value.isalpha()) and is_literal(text, match, start, end)


def is_assigned(text: bytes, match: int, start: int, end: int) -> bool:
    """Spare what follows `password=` or `token:` in code: a name, a call, a type, a template."""
    if not is_literal(text, match, start, end):
        return False
    value, length, after = text[start:end], end - start, text[end : end + 1]
    if _WEAK_NAME.match(text, match, start) and (length < 8 or (length < 20 and value.isalpha())):
        return False
    if text[start - 1 : start] in (b'"', b"'", b"`"):
        return length >= 6 and not (value.isalpha() and after == b" ")
    if after in (b"(", b"[") and _DOTTED_NAME.fullmatch(value):
        return False
    if not _NAME.fullmatch(value):
        return True
    # Letters only: a password in a header, an environment file or a URL, else a name in code.
    name, before = re.split(rb"[:=]", text[match:start])[0], text[match - 1 : match]
    if b"-" in name or before in (b"-", b"?", b"&") or name.isupper():
        return True
    return length >= 20 and value.isalpha()
