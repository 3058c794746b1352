"""What a tool gives back, before the engine or a worker passes it on."""

import codecs
from collections.abc import Collection
from dataclasses import dataclass

from stenograph.engine import results
from stenograph.engine.toolbox import ToolOutcome, ToolStatus

#: What the model is told of a call that printed nothing: providers want some text.
SILENT = "[no output]"
#: The note of an output with bytes that are no text.
BINARY = "not all of this is text"


class ToolError(Exception):
    """A call that cannot be done; its message is written for the model."""


@dataclass(frozen=True, slots=True)
class Result:
    """A call's end. `notes` say what the text itself does not (an exit status, what is missing).

    `truncated`: more was there than the limits let through. `binary`: not all of it was text, and
    U+FFFD stands for the rest. `preview`: what the model is told, where the tool knows better than
    the notes with the beginning and the end of the text.
    """

    status: ToolStatus
    text: str
    notes: tuple[str, ...] = ()
    truncated: bool = False
    binary: bool = False
    preview: str | None = None

    def outcome(self, secrets: Collection[str] = ()) -> ToolOutcome:
        """Return it for the engine: the notes first, so that no cut loses them, and none of the
        `secrets` halved."""
        notes = "".join(f"[{note}]\n" for note in self.notes)
        binary = f"[{BINARY}]\n" if self.binary else ""
        output = results.storable(binary + notes + self.text)
        told = output if self.preview is None else results.storable(binary + self.preview)
        return ToolOutcome(self.status, output, results.preview(told, secrets) or SILENT)


def failed(reason: str) -> Result:
    """Return the end of a call that could not be done."""
    return Result("failed", reason)


def decoded(data: bytes, cut: bool = False) -> tuple[str, bool]:
    """Return bytes as text, and whether they are something else.

    `cut`: they may end within a character, which is then left out.
    """
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(data, final=not cut)
    except UnicodeDecodeError:
        return data.decode(errors="replace"), True
    return text, "\x00" in text
