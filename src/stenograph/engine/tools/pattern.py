"""Patterns of paths and of text, both matched in linear time by RE2."""

from typing import Any

import re2

from stenograph.engine.tools.result import ToolError

#: Bytes of an expression and its states; larger ones are refused.
_MEMORY = 2 << 20

_MAGIC = frozenset("*?[{")


def expression(pattern: str, ignore_case: bool = False) -> Any:
    """Compile a regular expression; raises `ToolError`."""
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY
    options.case_sensitive = not ignore_case
    try:
        return re2.compile(pattern, options)
    except UnicodeEncodeError:
        raise ToolError("The pattern is not valid Unicode") from None
    except re2.error as problem:
        reason = problem.args[0] if problem.args else b""
        text = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        raise ToolError(f"The pattern is no regular expression of RE2: {text}") from None


def anywhere(pattern: str, ignore_case: bool = False) -> Any | None:
    """Compile what finds something in every text of which `pattern` finds something in a line.

    None, if it would have to tell the ends of a line from those of the text.
    """
    if "\\A" in pattern or "\\z" in pattern or "(?" in pattern:
        return None
    return expression(f"(?m){pattern}", ignore_case)


def paths(pattern: str) -> Any:
    """Compile a pattern of paths: `*`, `?`, `[a-z]`, `{a,b}`, `**` for any number of folders."""
    return expression(f"(?s)^(?:{_translated(pattern)})$")


def split(pattern: str) -> tuple[str, str]:
    """Return the folders that a pattern names literally, and the pattern below them."""
    names = pattern.split("/")
    literal = 0
    while literal < len(names) - 1 and not _MAGIC & set(names[literal]):
        literal += 1
    start = "/".join(names[:literal])
    return (start or "/" if pattern.startswith("/") else start), "/".join(names[literal:])


def _translated(pattern: str) -> str:
    written: list[str] = []
    at = braces = 0
    while at < len(pattern):
        char = pattern[at]
        if char == "*":
            expression_, at = _stars(pattern, at)
            written.append(expression_)
            continue
        if char == "[" and (end := _class_end(pattern, at)) > 0:
            written.append(_class(pattern[at + 1 : end]))
            at = end + 1
            continue
        if char == "{":
            braces += 1
            written.append("(?:")
        elif char == "}" and braces:
            braces -= 1
            written.append(")")
        elif char == "," and braces:
            written.append("|")
        else:
            written.append("[^/]" if char == "?" else re2.escape(char))
        at += 1
    if braces:
        raise ToolError("The pattern opens a brace that it does not close")
    return "".join(written)


def _stars(pattern: str, at: int) -> tuple[str, int]:
    end = at
    while end < len(pattern) and pattern[end] == "*":
        end += 1
    begins = at == 0 or pattern[at - 1] in "/{,"
    if end - at >= 2 and begins:
        if pattern[end : end + 1] == "/":
            return "(?:[^/]+/)*", end + 1
        if end == len(pattern) or pattern[end] in ",}":
            return ".*", end
    return "[^/]*", end


def _class_end(pattern: str, at: int) -> int:
    """Find the bracket that closes a class, in which a first one stands for itself."""
    return pattern.find("]", at + (3 if pattern.startswith("[!", at) else 2))


def _class(inside: str) -> str:
    negated = inside.startswith("!") and len(inside) > 1
    inside = inside[1:] if negated else inside
    escaped = inside.replace("\\", "\\\\").replace("[", "\\[").replace("^", "\\^")
    return f"[^/{escaped}]" if negated else f"[{escaped}]"
