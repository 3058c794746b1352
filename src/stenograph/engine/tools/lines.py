"""The lines of a file, none of them longer than memory should hold."""

from collections.abc import Iterator
from typing import BinaryIO

#: Bytes of a line that are looked at in one piece.
LONGEST = 1 << 20


def pieces(file: BinaryIO, longest: int = LONGEST) -> Iterator[tuple[int, bytes]]:
    """Yield a file's lines with their numbers from 1; a longer one comes in several pieces."""
    number = 1
    while piece := file.readline(longest):
        yield number, piece
        if piece.endswith(b"\n"):
            number += 1
