"""The lines of a rollout as values: what each says of itself, before anything is made of it.

`{"timestamp", "ordinal", "type", "payload"}`, where the payload of a `response_item` (what went to
or came from the model) or an `event_msg` (what the program showed) has a `type` of its own. The
oldest logs have no envelope: there the item itself is the line, and the first one is the session.
"""

import re
from dataclasses import dataclass, field

from stenograph.clock import parse_iso
from stenograph.errors import InvalidInputError
from stenograph.trajectories.atif.format import Json
from stenograph.trajectories.atif.reading import read_json, read_lines

_ENVELOPE = re.compile(
    rb'\{[^\n]{0,200}?"type"\s*:\s*"(?:session_meta|response_item|event_msg|turn_context'
    rb'|compacted|token_usage_record|world_state)"\s*,\s*"payload"\s*:\s*\{'
)
_BARE_META = re.compile(rb'\{"id"\s*:\s*"[^"\n]+"\s*,\s*"timestamp"\s*:\s*"[^"\n]+"')
_BARE_ITEMS = ("message", "reasoning", "function_call", "local_shell_call")


@dataclass(frozen=True, slots=True)
class Line:
    """One line, at `number` (from 1) in its file."""

    number: int
    type: str
    payload: dict[str, Json]
    #: The moment as the log writes it; None where it writes none that can be read.
    timestamp: str | None

    @property
    def kind(self) -> str:
        """The type of the payload; of the line, where the payload has none."""
        return self.text("type") or self.type

    def text(self, name: str) -> str | None:
        """Return a field of the payload that is a non-empty string."""
        value = self.payload.get(name)
        return value if isinstance(value, str) and value else None

    def object(self, name: str) -> dict[str, Json]:
        """Return a field of the payload that is an object; an empty one otherwise."""
        value = self.payload.get(name)
        return value if isinstance(value, dict) else {}

    @property
    def about(self) -> dict[str, Json]:
        """What the program notes about an item of the conversation: its turn, who made it."""
        return self.object("internal_chat_message_metadata_passthrough")

    @property
    def turn_id(self) -> str | None:
        value = self.text("turn_id") or self.about.get("turn_id")
        return value if isinstance(value, str) else None


@dataclass(slots=True)
class Log:
    """The readable lines of a file, in file order."""

    lines: list[Line] = field(default_factory=list)
    #: Numbers of the lines that hold no JSON object of a rollout, or that are cut.
    unreadable: list[int] = field(default_factory=list)
    replaced_characters: int = 0


def looks_like(first_bytes: bytes) -> bool:
    """Whether a file that begins like this is a rollout; its first line may be cut.

    The program's own JSON stream (`thread.started`) is not.
    """
    lines = (line for _, line in read_lines(first_bytes))
    return any(_ENVELOPE.match(line) or _is_bare_meta(line) for line in lines)


def _is_bare_meta(line: bytes) -> bool:
    return bool(_BARE_META.match(line)) and b'"instructions"' in line


def identity(first_bytes: bytes) -> tuple[str | None, str | None]:
    """Return a thread's id and that of the thread that started it, from its first whole line."""
    for number, text in read_lines(first_bytes):
        line = _line(number, text, Log())
        if line is not None and line.type == "session_meta":
            return line.text("id"), parent(line)
    return None, None


def parent(meta: Line) -> str | None:
    """Return the id of the thread that started this one. (`session_id` is the root's, no parent.)

    Logs before 0.150 name it only in `source`.
    """
    source: Json = meta.object("source").get("subagent")
    spawn = source.get("thread_spawn") if isinstance(source, dict) else None
    named = spawn.get("parent_thread_id") if isinstance(spawn, dict) else None
    found = meta.text("parent_thread_id") or named
    return found if isinstance(found, str) and found != meta.text("id") else None


def read_log(data: bytes) -> Log:
    """Read a file line by line; a broken line is counted and passed over."""
    log = Log()
    for number, text in read_lines(data):
        line = _line(number, text, log)
        if line is None:
            log.unreadable.append(number)
        else:
            log.lines.append(line)
    return log


def _line(number: int, text: bytes, log: Log) -> Line | None:
    try:
        read = read_json(text, replace_invalid=True)
    except InvalidInputError:
        return None
    value = read.value
    if not isinstance(value, dict):
        return None
    log.replaced_characters += read.replaced_characters
    at = value.get("timestamp")
    timestamp = at if isinstance(at, str) and parse_iso(at) is not None else None
    kind, payload = value.get("type"), value.get("payload")
    if isinstance(kind, str) and isinstance(payload, dict):
        return Line(number, kind, payload, timestamp)
    if kind is None and _is_bare_meta(text):
        return Line(number, "session_meta", value, timestamp)
    if kind in _BARE_ITEMS or (isinstance(kind, str) and kind.endswith("_output")):
        return Line(number, "response_item", value, timestamp)
    if isinstance(value.get("record_type"), str):
        return Line(number, value["record_type"], value, timestamp)
    return None
