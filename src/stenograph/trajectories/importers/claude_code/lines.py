"""The lines of a log as values: what each says of itself, before anything is made of it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from stenograph.clock import parse_iso
from stenograph.errors import InvalidInputError
from stenograph.trajectories.atif.format import Json
from stenograph.trajectories.atif.reading import read_json, read_lines

#: An older shape, one JSON document: `{"loglines": [line, …]}`.
WRAPPED = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{\s*"loglines"\s*:\s*\[')


@dataclass(frozen=True, slots=True)
class Line:
    """One line: an object with a `type`, at `number` (from 1) in its file."""

    number: int
    type: str
    fields: dict[str, Json]

    def text(self, name: str) -> str | None:
        """Return a field that is a non-empty string."""
        value = self.fields.get(name)
        return value if isinstance(value, str) and value else None

    def flag(self, name: str) -> bool:
        return self.fields.get(name) is True

    def object(self, name: str) -> dict[str, Json]:
        """Return a field that is an object; an empty one where it is something else."""
        value = self.fields.get(name)
        return value if isinstance(value, dict) else {}

    @property
    def uuid(self) -> str | None:
        return self.text("uuid")

    @property
    def timestamp(self) -> str | None:
        """The moment as the log writes it; None where it writes none that can be read."""
        value = self.text("timestamp")
        return value if value is not None and parse_iso(value) is not None else None

    @property
    def content(self) -> Json:
        return self.object("message").get("content")

    @property
    def origin(self) -> str | None:
        """Who a message is from, where the log says: `human`, `peer`, `task-notification` …"""
        kind = self.object("origin").get("kind")
        return kind if isinstance(kind, str) else None


@dataclass(slots=True)
class Log:
    """The readable lines of a file, in file order, without repetitions."""

    lines: list[Line] = field(default_factory=list)
    #: Numbers of the lines that hold no JSON object with a type, or that are cut.
    unreadable: list[int] = field(default_factory=list)
    repeated: int = 0
    replaced_characters: int = 0


def read_log(data: bytes) -> Log:
    """Read a file line by line; a broken line is counted and passed over.

    Raises InvalidInputError only where a whole document of the older shape is broken.
    """
    log = Log()
    seen: dict[str, Json] = {}
    for number, value in _document(data, log) if WRAPPED.match(data) else _lines(data, log):
        kind = value.get("type") if isinstance(value, dict) else None
        if not isinstance(kind, str) or not _has_message(kind, value):
            log.unreadable.append(number)
            continue
        line = Line(number, kind, value)
        said = value.get("message", value)
        if line.uuid is not None and seen.setdefault(line.uuid, said) is not said:
            # What was kept over a compaction is written again, under the same uuid.
            again = seen[line.uuid] == said
            log.repeated += again
            if again:
                continue
        log.lines.append(line)
    return log


def _lines(data: bytes, log: Log) -> Iterator[tuple[int, Json]]:
    """Return the values of a JSON Lines file with their line numbers."""
    for number, text in read_lines(data):
        try:
            read = read_json(text, replace_invalid=True)
        except InvalidInputError:
            log.unreadable.append(number)
            continue
        log.replaced_characters += read.replaced_characters
        yield number, read.value


def _document(data: bytes, log: Log) -> Iterator[tuple[int, Json]]:
    """Return the lines of the older shape, numbered by their place in the list."""
    read = read_json(data, replace_invalid=True)
    log.replaced_characters += read.replaced_characters
    lines = read.value.get("loglines") if isinstance(read.value, dict) else None
    yield from enumerate(lines if isinstance(lines, list) else [], 1)


def _has_message(kind: str, value: dict[str, Json]) -> bool:
    return kind not in ("user", "assistant") or isinstance(value.get("message"), dict)
