"""The output of a command, in memory that does not grow with it."""

from collections.abc import Callable
from dataclasses import dataclass, field

from stenograph.engine.tools.result import decoded

#: Bytes at the end that are kept whatever came before: errors are said last.
_TAIL = 64 << 10


@dataclass(slots=True)
class Capture:
    """Keeps the first bytes and the last ones, `limit` in all; `total` counts them all.

    `watch` hears each chunk as it comes.
    """

    limit: int
    watch: Callable[[bytes], None] | None = field(default=None, repr=False)
    total: int = 0
    _head: bytearray = field(default_factory=bytearray)
    _tail: bytearray = field(default_factory=bytearray)

    def add(self, chunk: bytes) -> None:
        """Take what the command wrote next."""
        self.total += len(chunk)
        if self.watch is not None:
            self.watch(chunk)
        room = self.limit - self._tail_size - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:]
        # Cut in strides: not all of the tail is moved for each chunk.
        if len(self._tail) > 4 * self._tail_size:
            del self._tail[: -self._tail_size]

    @property
    def truncated(self) -> bool:
        """Whether something was left out."""
        return self.total > self.limit

    def text(self) -> tuple[str, bool]:
        """Return it as text, and whether it was something else."""
        if not self.truncated:
            return decoded(bytes(self._head + self._tail))
        tail = bytes(self._tail[-self._tail_size :])
        first, odd = decoded(bytes(self._head), cut=True)
        last, odd_too = decoded(_from_character(tail))
        missing = self.total - len(self._head) - len(tail)
        return f"{first}\n[… {missing} bytes left out …]\n{last}", odd or odd_too

    @property
    def _tail_size(self) -> int:
        return min(_TAIL, self.limit // 2)


def _from_character(data: bytes) -> bytes:
    """Drop what is left of a character at the beginning, three bytes at most."""
    start = 0
    while start < min(3, len(data)) and data[start] & 0xC0 == 0x80:
        start += 1
    return data[start:]
