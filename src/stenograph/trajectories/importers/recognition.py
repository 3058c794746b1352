"""Whose log a file is, by its content: names and folders are no evidence."""

import re
from typing import Literal, TypeAlias, get_args

import msgspec
from msgspec import Raw, Struct

from stenograph.trajectories.importers import claude_code, codex

Format: TypeAlias = Literal["atif", "claude-code", "codex"]

FORMATS: tuple[str, ...] = get_args(Format)

_VERSION = re.compile(rb'"schema_version"\s*:\s*"(?i:atif)')
#: The first line of what the programs print with `--json` or `--output-format stream-json`.
_STREAM = re.compile(
    rb'\{"type":"thread\.started"|\{"type":"(?:system|assistant|user|result)".*"session_id":'
)
#: Control characters that no text file begins with.
_BINARY = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")


class _Document(Struct):
    schema_version: Raw = Raw()
    agent: Raw = Raw()
    steps: Raw = Raw()


def recognise(start: bytes) -> tuple[Format | None, str | None]:
    """Return the format of a file that begins like this, or why it is none.

    `start` holds at least the first line, and the whole of a document that is spread over lines
    (`is_document`).
    """
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not text:
        return None, "it is empty"
    if codex.looks_like(text):
        return "codex", None
    if claude_code.looks_like(text):
        return "claude-code", None
    if text.startswith(b"{"):
        if _VERSION.search(text) or _is_trajectory(text):
            return "atif", None
        if _STREAM.match(text):
            return None, "it is what the program printed (its JSON stream), not its log"
    if _BINARY.search(text[:1_000]):
        return None, "it is no text"
    return None, "it is neither a log of Claude Code or Codex nor an ATIF document"


def is_document(start: bytes) -> bool:
    """Whether a file that begins like this is JSON spread over lines, not a line per value."""
    first, newline, _ = start.removeprefix(b"\xef\xbb\xbf").lstrip().partition(b"\n")
    if not first.startswith(b"{"):
        return False
    try:
        msgspec.json.decode(first, type=Raw)
    except (msgspec.DecodeError, RecursionError):
        return True
    return not newline


def _is_trajectory(text: bytes) -> bool:
    """Whether this is an ATIF document in all but the name of its version."""
    for part in (text, text.partition(b"\n")[0]):
        try:
            found = msgspec.json.decode(part, type=_Document)
        except (msgspec.DecodeError, RecursionError):
            continue
        return bool(found.steps) and bool(found.agent or found.schema_version)
    return False
