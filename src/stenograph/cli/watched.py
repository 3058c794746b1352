"""A session as it is watched in a terminal: what the agent thinks, says and does, as it happens."""

import sys
from collections.abc import Mapping
from typing import Any

import msgspec
from rich.console import Console
from rich.control import Control
from rich.segment import ControlType
from rich.text import Text

#: Characters of a call's arguments and of its result that are shown.
_SHOWN = 200
_LINES = 6
#: Takes a line away that has not ended.
_CLEARED = Control(ControlType.CARRIAGE_RETURN, (ControlType.ERASE_IN_LINE, 2))
_ENDS = {
    "completed": ("✓", "green"),
    "failed": ("✗", "red"),
    "timed_out": ("✗", "red"),
    "uncertain": ("?", "yellow"),
    "canceled": ("-", "yellow"),
    "skipped": ("-", "yellow"),
}


class View:
    """Shows a session's events. With `raw`, each goes out as a line of JSON instead.

    What was shown while it was said is not shown again when it is there as a whole.
    """

    def __init__(self, *, raw: bool = False, quiet: bool = False) -> None:
        self._raw = raw
        self._quiet = quiet
        self._console = Console(highlight=False, soft_wrap=True, file=sys.stdout)
        #: What is being said: "text" or "reasoning"; None: the line is empty.
        self._saying: str | None = None
        self._was_told = False
        self._has_aside = False
        #: The calls that were shown as begun.
        self._begun: set[str] = set()
        #: What of the calls' output was shown while they worked.
        self._shown: dict[str, str] = {}
        self.reply: str | None = None

    def show(self, kind: str, event: Mapping[str, Any]) -> None:
        """Show one event of a stream, of the type `kind`."""
        if self._raw:
            if "seq" in event:
                sys.stdout.write(msgspec.json.encode(event).decode() + "\n")
                sys.stdout.flush()
            return
        data = event.get("data") or {}
        match kind:
            case "reasoning_delta" | "text_delta":
                self._tell("reasoning" if kind == "reasoning_delta" else "text", data["text"])
                self._was_told = True
            case "stream_reset":
                self._line(f"({data.get('reason', 'retry')}: once more)", "yellow")
                self._was_told = False
            case "assistant":
                self._answered(data, event.get("text"))
            case "tool":
                self._called(data)
            case "tool_output":
                self._writes(data)
            case "tool_progress":
                self._aside(f"{data.get('name') or ''} {_how_far(data)}")
            case "message" if (data.get("kind"), data.get("source")) == ("message", "subagent"):
                self._line("a subagent has reported", "dim")

    def _answered(self, data: Mapping[str, Any], text: str | None) -> None:
        if not self._was_told:
            self._tell("reasoning", data.get("reasoning") or "")
            self._tell("text", text or "")
        self._end()
        self._was_told = False
        self.reply = text or self.reply

    def _called(self, data: Mapping[str, Any]) -> None:
        name, status = data.get("name") or "", data.get("status")
        key = _key(data)
        if status in ("running", "dispatched") and key not in self._begun:
            self._begun.add(key)
            arguments = msgspec.json.encode(data.get("arguments") or {}).decode()
            self._line(f"→ {name} {_short(arguments)}", "cyan")
        elif status in _ENDS:
            sign, style = _ENDS[status]
            result = data.get("result") or data.get("error") or ""
            self._line(f"{sign} {name}", style)
            lines = _since(self._shown.pop(key, ""), result).rstrip().splitlines()
            for line in lines[:_LINES]:
                self._line(f"  {_short(line)}", "dim")
            if len(lines) > _LINES:
                self._line(f"  … {len(lines) - _LINES} more lines", "dim")

    def _writes(self, data: Mapping[str, Any]) -> None:
        """Show the last of the whole lines that a call has written since the last time."""
        key = _key(data)
        text = data["text"][: data["text"].rfind("\n") + 1]
        for line in _since(self._shown.get(key, ""), text).splitlines()[-_LINES:]:
            self._line(f"  {_short(line)}", "dim")
        self._shown[key] = text or self._shown.get(key, "")
        # What redraws its line is seen as it stands.
        self._aside(data["text"][len(text) :].rstrip("\r").rpartition("\r")[2])

    def ask(self, name: str, arguments: str) -> str:
        """Ask whether a call may be made; returns what was typed."""
        self._line(f"? {name} {_short(arguments)}", "yellow")
        return input("  May it? [y/N, or why not] ")

    def end(self, session: Mapping[str, Any]) -> None:
        """Say how the session stands, what it took, and what it cost."""
        if self._raw:
            sys.stdout.write(msgspec.json.encode({"session": session}).decode() + "\n")
            return
        self._end()
        usage, cost = session["usage"], session["cost_usd"]
        tokens = f"{usage['input_tokens'] or 0:,} in, {usage['output_tokens'] or 0:,} out"
        money = "cost unknown" if cost is None else f"${cost:.4f}"
        how = session["outcome"] or session["status"]
        why = session["reason_code"] or session["error_class"]
        self._line(f"{how}{f' ({why})' if why else ''} · {tokens} · {money}", "bold")
        self._line(f"session {session['session_id']}", "dim")

    def _tell(self, what: str, text: str) -> None:
        if not text or (self._quiet and what == "reasoning"):
            return
        if self._saying not in (what, None):
            self._end()
        self._clear()
        self._saying = what
        style = "dim italic" if what == "reasoning" else ""
        self._console.print(Text(_printable(text), style=style), end="")

    def _end(self) -> None:
        if self._saying is not None:
            self._console.print()
            self._saying = None

    def _aside(self, text: str) -> None:
        """Show a line, on a terminal, until the next one."""
        if self._quiet or not self._console.is_terminal or self._saying is not None:
            return
        self._clear()
        if words := _printable(text).split():
            line = Text(f"  {' '.join(words)}", style="dim")
            line.truncate(self._console.width - 1, overflow="ellipsis")
            self._console.print(line, end="")
            self._has_aside = True

    def _clear(self) -> None:
        if self._has_aside:
            self._console.control(_CLEARED)
            self._has_aside = False

    def _line(self, text: str, style: str) -> None:
        self._end()
        self._clear()
        if not self._quiet or style == "bold":
            self._console.print(Text(_printable(text), style=style))


def _since(before: str, text: str) -> str:
    """Return what stands in a text behind another one; the end of either may be all there is."""
    mark = before[-_SHOWN:]
    at = text.rfind(mark)
    if not mark:
        return text
    return "" if at < 0 else text[at + len(mark) :]


def _how_far(data: Mapping[str, Any]) -> str:
    done, total, message = data["progress"], data.get("total"), data.get("message")
    numbers = f"{done:g}" if total is None else f"{done:g}/{total:g}"
    return f"{numbers} {message}" if message else numbers


def _key(data: Mapping[str, Any]) -> str:
    return f"{data.get('turn_id')} {data.get('task_key')}"


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def _printable(text: str) -> str:
    """Take away what would steer the terminal: a model's words are not to be trusted with it."""
    return "".join(c for c in text if c in "\n\t" or c.isprintable() or c.isspace())
