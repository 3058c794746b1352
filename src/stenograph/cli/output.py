"""What commands print: JSON for programs, tables and lines for people."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec


def emit(value: Any) -> None:
    """Print a value as one line of JSON."""
    sys.stdout.write(msgspec.json.encode(value).decode() + "\n")


def line(text: str) -> None:
    """Print a line for a person."""
    sys.stdout.write(text + "\n")


def fail(message: str) -> None:
    """Print an error as one line on standard error."""
    sys.stderr.write("steno: " + " ".join(message.split()) + "\n")


def table(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Print rows in columns that line up; nothing is cut off, and what is None stays empty."""
    cells = [[name.upper() for name in columns]]
    cells += [["" if row[name] is None else str(row[name]) for name in columns] for row in rows]
    widths = [max(len(row[column]) for row in cells) for column in range(len(columns))]
    for row in cells:
        line("  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip())
