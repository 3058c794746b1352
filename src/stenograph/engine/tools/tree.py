"""What lies below a folder, in order, without following links."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from threading import Event

from stenograph.engine.tools.root import Root

#: Not looked into, unless the search starts there.
_SKIPPED = frozenset({".git"})


@dataclass(slots=True)
class Walk:
    """A walk through at most `limit` entries below `start`; `cut` tells whether there were more."""

    root: Root
    start: str
    limit: int
    stop: Event
    cut: bool = field(default=False, init=False)

    def entries(self) -> Iterator[tuple[str, bool]]:
        """Yield each path below the start, relative to it, and whether it is a folder."""
        seen = 0
        folders = [""]
        while folders:
            below = folders.pop()
            inner = []
            for name, is_folder in self._scan(below):
                seen += 1
                if seen > self.limit or self.stop.is_set():
                    self.cut = True
                    return
                path = f"{below}{name}"
                yield path, is_folder
                if is_folder and name not in _SKIPPED:
                    inner.append(f"{path}/")
            folders.extend(reversed(inner))

    def path(self, below: str) -> str:
        """Return the path of an entry from the root."""
        return "/".join([*self.root.parts(self.start), below])

    def _scan(self, below: str) -> list[tuple[str, bool]]:
        try:
            with self.root.folder(f"{self.start}/{below}") as fd, os.scandir(fd) as entries:
                return sorted((one.name, one.is_dir(follow_symlinks=False)) for one in entries)
        except OSError:
            # Gone meanwhile, or not ours to read; where nothing could be read at all, that is told.
            if not below:
                raise
            return []


def printable(path: str) -> str:
    """Return a path as text, U+FFFD in place of bytes that are none."""
    return os.fsencode(path).decode(errors="replace")
