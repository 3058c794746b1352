"""The lines of a file, read in pieces of bounded size."""

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


def blocks(file: BinaryIO, size: int) -> Iterator[tuple[int, bytes]]:
    """Yield whole lines by the `size` bytes and a rest, with the number of the first.

    Of a line that is longer than two blocks, a block is a part.
    """
    number = 1
    while block := file.read(size):
        block += file.readline(size)
        yield number, block
        number += block.count(b"\n")
