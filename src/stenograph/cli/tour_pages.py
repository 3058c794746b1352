"""How the tour looks on a terminal."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from stenograph.trajectories.recording.session import Recorded

#: Characters of a message that are shown.
EXCERPT = 300
#: Steps of a trajectory that are shown.
SHOWN = 6

_console = Console(highlight=False, soft_wrap=False)


def opening(samples: Path) -> None:
    _console.print(f"\n[bold]Stenograph[/] records the logs in [cyan]{escape(str(samples))}[/] …")


def imported(recorded: Sequence[Recorded]) -> None:
    """Show which sessions the logs became."""
    table = Table(box=None, pad_edge=False, header_style="dim", expand=True)
    for name, width in (("session", 40), ("format", 11), ("turns", 5), ("steps", 5)):
        table.add_column(name, width=width, no_wrap=True)
    table.add_column("title", ratio=1, no_wrap=True, overflow="ellipsis")
    for found in recorded:
        subagent = "  └ " if found.parent_session_id is not None else ""
        table.add_row(
            f"{subagent}{found.session_id}",
            found.format,
            str(found.turns),
            str(found.steps),
            Text(found.title or ""),
        )
    _console.print(Padding(table, (1, 2)))


def live(prompt: str) -> None:
    """Say that an agent is about to work."""
    _console.print()
    _console.rule(
        "[bold]An agent at work: what it thinks, calls and says", align="left", style="dim"
    )
    _line(f"steno run --model dev/thinker --root FOLDER {shlex.quote(prompt)}")
    _console.print()


def messages(curl: str, page: Mapping[str, Any]) -> None:
    """Show a page of the message feed."""
    _heading("1. A page of messages: what was said", curl)
    table = Table(box=None, pad_edge=False, header_style="dim", show_lines=False)
    for name in ("cursor", "kind", "role", "status", "content"):
        table.add_column(name, overflow="fold")
    for item in page["items"]:
        table.add_row(
            str(item["cursor"]),
            item["kind"],
            item["role"],
            item.get("status") or "",
            Text(_excerpt(item["content"])),
        )
    _console.print(Padding(table, (0, 2)))
    more = "more follow" if page["has_next_page"] else "no more yet; keep polling with end_cursor"
    _console.print(f"  [dim]end_cursor {page['end_cursor']}: {more}[/]")


def reasoning(curl: str, page: Mapping[str, Any]) -> None:
    """Show a page of an answer's stored reasoning."""
    _heading("2. A page of stored reasoning: what was thought before the answer", curl)
    for item in page["items"]:
        model = item["model"]
        said = " · ".join(str(v) for v in (item.get("task_key"), model.get("model_ref")) if v)
        text = item["text"] if item["available"] else "(this call left no readable reasoning)"
        style = "" if item["available"] else "dim"
        _console.print(
            Padding(
                Panel(Text(_excerpt(text, 600), style=style), title=Text(said), title_align="left"),
                (0, 2),
            )
        )


def trajectory(curl: str, document: Mapping[str, Any]) -> None:
    """Show the head, the first steps and the totals of an exported trajectory."""
    _heading("3. The trajectory: the whole of it, as one ATIF document", curl)
    agent = document["agent"]
    steps = document["steps"]
    _console.print(
        f"  {document['schema_version']}, {agent['name']} {agent['version']}, {len(steps)} steps,"
        f" {_count(len(document.get('subagent_trajectories') or ()), 'subagent')}",
        markup=False,
    )
    grid = Table.grid(padding=(0, 2))
    for name in ("step_id", "source", "text"):
        grid.add_column(justify="right" if name == "step_id" else "left", overflow="fold")
    for step in steps[:SHOWN]:
        for line in _step(step):
            grid.add_row(*line)
    _console.print(Padding(grid, (1, 2)))
    if len(steps) > SHOWN:
        _console.print(f"  [dim]… {len(steps) - SHOWN} more steps[/]")
    metrics = document.get("final_metrics") or {}
    totals = ", ".join(f"{name} {value}" for name, value in metrics.items() if name != "extra")
    _console.print(f"  [dim]totals:[/] {totals}")


def _step(step: Mapping[str, Any]) -> Iterator[tuple[Text, Text, Text]]:
    """Yield a step as rows: what was thought, said and called."""
    head = (Text(str(step["step_id"]), style="dim"), Text(step["source"], style="bold"))
    rows = []
    if thought := step.get("reasoning_content"):
        rows.append(Text(f"thinks: {_excerpt(thought, 120)}", style="dim italic"))
    message = step["message"]
    text = message if isinstance(message, str) else "(text and media)"
    if text or not step.get("tool_calls"):
        rows.append(Text(_excerpt(text, 120)))
    calls = [call["function_name"] for call in step.get("tool_calls") or ()]
    if calls:
        rows.append(Text(f"calls {', '.join(calls)}", style="cyan"))
    for number, row in enumerate(rows):
        yield (*(head if number == 0 else (Text(), Text())), row)


def more(curls: Mapping[str, str]) -> None:
    """Say how to go on."""
    _console.print()
    _console.rule("[bold]Go on from here", align="left", style="dim")
    for name, curl in curls.items():
        _console.print(f"  [dim]{name}[/]")
        _line(curl)


def serving(url: str, file: Path) -> None:
    """Say where what was shown is served."""
    _console.print(f"  [dim]The README's lines read their ids and keys from[/] {escape(str(file))}")
    _console.print(f"  Serving on [bold]{url}[/] (documentation: {url}/docs); Ctrl-C stops it.")


def ended() -> None:
    """Say that what was shown is no longer served."""
    _console.print("  [dim]This server has stopped; `make run` shows this, and goes on serving.[/]")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _heading(title: str, curl: str) -> None:
    _console.print()
    _console.rule(f"[bold]{title}", align="left", style="dim")
    _line(curl)
    _console.print()


def _line(curl: str) -> None:
    """Print a command on one line, however wide the terminal is, so that it pastes whole."""
    _console.print(Text(curl, style="green"), soft_wrap=True)


def _excerpt(text: str, length: int = EXCERPT) -> str:
    text = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return text if len(text) <= length else f"{text[: length - 1]}…"
