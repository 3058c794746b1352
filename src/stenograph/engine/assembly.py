"""What an input brings to its turn's requests: a context of its own, files, passages, limits.

An assembled context is the history (`history`), of which the input may want less; a raw one is the
input's instructions and entries, and nothing else.
"""

from collections.abc import Sequence
from dataclasses import replace

from stenograph.conversations import wishes as wishing
from stenograph.conversations.attachment import Content
from stenograph.conversations.wishes import CallPart, Entry, ResultPart, TextPart, Wishes, fill
from stenograph.engine import fitting
from stenograph.engine.models.request import (
    Image,
    Message,
    Part,
    Reasoning,
    Settings,
    Text,
    ToolCall,
    ToolResult,
    aside,
)
from stenograph.engine.models.request import system as instruct
from stenograph.engine.units import Unit

#: Characters of a text file that a model is told; the record keeps all of it.
_SHOWN = 200_000


def asked(text: str, files: Sequence[Content] = (), role: str = "user") -> Message:
    """Return what somebody said, with the files that came with it."""
    said = (Text(text), *map(_shown, files))
    return Message("user", said) if role == "user" else Message(role, said)  # type: ignore[arg-type]


def _shown(file: Content) -> Part:
    """Return a file as a model is told it: a picture, a text, or that there is one."""
    if file.is_image:
        return Image(file.content_type, file.data)
    about = f'filename="{file.filename}" content_type="{file.content_type}"'
    if file.text is None:
        return Text(f"<attachment {about}>({len(file.data)} bytes that are no text)</attachment>")
    return Text(f"<attachment {about}>\n{fitting.middle_out(file.text, _SHOWN)}\n</attachment>")


def opening(prompt: str, wishes: Wishes, files: Sequence[Content]) -> tuple[Message, ...]:
    """Return the messages that open a turn: what was asked, behind what came to be read with it;
    of a raw context, its entries."""
    if wishes.is_raw and wishes.entries is not None:
        told = [_entry(entry, wishes) for entry in wishes.entries]
        return (*told[:-1], _with(told[-1], files), *_apart(told[-1], files))
    passages = [_passage(it.title, fill(it.text, wishes.variables)) for it in wishes.inline]
    said = (aside("This came to be read with what follows.\n\n" + "\n\n".join(passages)),)
    return (*(said if passages else ()), asked(prompt, files))


def _passage(title: str | None, text: str) -> str:
    return f"<passage>\n{text}\n</passage>" if title is None else (
        f'<passage title="{title}">\n{text}\n</passage>'
    )  # fmt: skip


def _with(last: Message, files: Sequence[Content]) -> Message:
    return Message("user", (*last.parts, *map(_shown, files))) if last.role == "user" else last


def _apart(last: Message, files: Sequence[Content]) -> tuple[Message, ...]:
    """Return the files for an entry that cannot hold them."""
    if last.role == "user" or not files:
        return ()
    return (Message("user", tuple(map(_shown, files))),)


def _entry(entry: Entry, wishes: Wishes) -> Message:
    parts: list[Part] = []
    for part in entry.told:
        match part:
            case TextPart():
                parts.append(Text(fill(part.text, wishes.variables)))
            case CallPart():
                parts.append(ToolCall(part.id, part.name, part.arguments))
            case ResultPart():
                parts.append(ToolResult(part.id, part.name, part.output, part.is_error))
            case _:
                parts.append(Reasoning(part.text))
    return Message(entry.role, tuple(parts))


def instructions(usual: str | None, wishes: Wishes) -> tuple[Message, ...]:
    """Return the instructions of a request: the session's, or those of a raw context."""
    text = fill(wishes.instructions or "", wishes.variables) if wishes.is_raw else usual
    return (instruct(text),) if text else ()


def replayed(told: Sequence[Unit], wishes: Wishes) -> tuple[Unit, ...]:
    """Leave reasoning out of earlier turns as the input wishes. The running turn's own stays, for
    providers ask for it back with the results of its calls."""
    mode = wishes.reasoning_replay
    if mode in (None, "all"):
        return tuple(told)
    turns = [unit for unit in told if unit.kind == "turn"]
    kept = turns[-1:] if mode == "last_turn" else []
    return tuple(
        _unreasoned(unit) if unit.kind == "turn" and unit not in kept else unit for unit in told
    )


def _unreasoned(unit: Unit) -> Unit:
    messages = tuple(
        Message(it.role, tuple(part for part in it.parts if not isinstance(part, Reasoning)))
        for it in unit.messages
    )
    return replace(unit, messages=messages)


def limited(told: Sequence[Unit], wishes: Wishes, window: int) -> tuple[tuple[Unit, ...], int]:
    """Leave out what was said before beyond the limits of the input, whole turns and the oldest
    first; returns the rest, and how many units it lost."""
    limits = wishes.history
    if limits is None:
        return tuple(told), 0
    entries = 2**31 if limits.max_entries is None else limits.max_entries
    share = limits.token_budget_share
    tokens = 2**62 if share is None else int(window * share)
    before = [unit for unit in told if unit.kind in ("summary", "turn")]
    kept: list[Unit] = []
    for unit in reversed(before):
        entries -= len(unit.messages)
        tokens -= fitting.length(unit.messages)
        if entries < 0 or tokens < 0:
            break
        kept.append(unit)
    lost = len(before) - len(kept)
    if not lost:
        return tuple(told), 0
    stays = {id(unit) for unit in kept}
    # What was counted for an earlier turn's request was counted with what is left out here.
    rest = (
        replace(unit, used=None) if id(unit) in stays else unit
        for unit in told
        if id(unit) in stays or unit.kind not in ("summary", "turn")
    )
    return tuple(rest), lost


def settings(wishes: Wishes, usual: Settings) -> Settings:
    """Return how a model is asked, with the configuration of the input."""
    given = wishes.configuration
    if given is None:
        return usual
    return replace(
        usual,
        max_tokens=given.max_tokens,
        temperature=given.temperature,
        parallel_tool_calls=given.parallel_tool_calls,
    )


def options(wishes: Wishes) -> dict[str, int | float | bool]:
    """Return the configuration of the input, as a sealed request keeps it."""
    given = wishes.configuration or wishing.Configuration()
    found = {
        "max_tokens": given.max_tokens,
        "temperature": given.temperature,
        "parallel_tool_calls": given.parallel_tool_calls,
    }
    return {name: value for name, value in found.items() if value is not None}
