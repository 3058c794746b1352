"""What became of the calls that this worker began, until the server has acknowledged it.

One small file a call, so that a worker that was killed says `uncertain` of what it had begun, or
gives its result again. Not for the loss of power: then the lease runs out, and the server says
`resumed`. Values of the call's environment are masked in the files, not in memory: a result that
is sent again after a kill differs in that.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from stenograph import clock
from stenograph.worker.state import replace
from stenograph.worker.wire import Settlement

#: Results without an owner that are kept, for calls that may be claimed again.
_MOST = 32
#: After which nobody asks for a result any more, in microseconds.
_AGE = clock.DAY


class Entry(msgspec.Struct, frozen=True):
    """A call that was begun under a claim; `settlement` is what came of it, once that is known."""

    task: str
    claim_id: str
    session_id: str
    tool: str
    at: int
    settlement: Settlement | None = None


@dataclass(frozen=True, slots=True)
class Journal:
    """The calls by their task; `load` reads what a former process left."""

    folder: Path
    entries: dict[str, Entry] = field(default_factory=dict, repr=False)

    def keep(self, entry: Entry, mask: Callable[[str], str]) -> None:
        """Keep a call as it now stands; `mask` is for the text that goes to the disk."""
        self.entries.pop(entry.task, None)
        self.entries[entry.task] = entry
        if told := entry.settlement:
            preview = None if told.preview is None else mask(told.preview)
            written = Settlement(told.status, mask(told.output), preview)
            entry = msgspec.structs.replace(entry, settlement=written)
        replace(self._file(entry.task), msgspec.json.encode(entry))

    def drop(self, task: str) -> None:
        """Forget a call."""
        if self.entries.pop(task, None) is not None:
            self._file(task).unlink(missing_ok=True)

    def tidy(self, but: str) -> None:
        """Forget the oldest results, so that not too many are kept besides one call's."""
        known = [task for task, entry in self.entries.items() if entry.settlement and task != but]
        for task in known[:-_MOST]:
            self.drop(task)

    def clear(self) -> None:
        """Forget everything."""
        for file in self.folder.iterdir():
            file.unlink()
        self.entries.clear()

    def _file(self, task: str) -> Path:
        return self.folder / f"{hashlib.sha256(task.encode()).hexdigest()[:32]}.json"


def load(folder: Path) -> Journal:
    """Open the journal of a folder; what is too old, or was not written to its end, is dropped."""
    folder.mkdir(mode=0o700, exist_ok=True)
    found = []
    for file in folder.iterdir():
        try:
            entry = msgspec.json.decode(file.read_bytes(), type=Entry)
        except msgspec.DecodeError:
            entry = None
        if entry is None or file.name.startswith(".") or entry.at < clock.now() - _AGE:
            file.unlink()
        else:
            found.append(entry)
    found.sort(key=lambda entry: entry.at)
    return Journal(folder, {entry.task: entry for entry in found})
