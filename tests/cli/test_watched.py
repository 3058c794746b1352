"""What a person sees of a call's output: each line once, as it comes or when it is there."""

import io

import pytest
from rich.console import Console

from stenograph.cli import watched
from stenograph.cli.watched import View

CALL = {"turn_id": "t", "task_key": "r2t0", "name": "bash"}


def shown(capsys, *frames, result=None):
    view = View()
    for text in frames:
        view.show("tool_output", {"data": {**CALL, "text": text, "characters": len(text)}})
    if result is not None:
        view.show("tool", {"data": {**CALL, "status": "completed", "result": result}})
    return capsys.readouterr().out.splitlines()


def test_whole_lines_are_shown_as_they_come_and_once(capsys):
    lines = shown(capsys, "one\n", "one\ntw", "one\ntwo\nthr", result="one\ntwo\nthree\n")
    assert lines == ["  one", "  two", "✓ bash", "  three"]


def test_a_window_that_has_moved_on_goes_on(capsys):
    numbers = [f"{n}\n" for n in range(1_000)]
    first, second = "".join(numbers[:600]), "".join(numbers[500:603])
    assert shown(capsys, first, second)[-3:] == ["  600", "  601", "  602"]


def test_of_many_lines_the_last_are_shown(capsys):
    lines = shown(capsys, "".join(f"{n}\n" for n in range(50)))
    assert lines == [f"  {n}" for n in range(44, 50)]


def test_a_call_that_was_quick_shows_its_result(capsys):
    assert shown(capsys, result="a\nb\n") == ["✓ bash", "  a", "  b"]


@pytest.fixture
def terminal(monkeypatch):
    """What a terminal of 30 columns is sent."""
    sent = io.StringIO()
    wide = Console(file=sent, force_terminal=True, width=30, no_color=True, soft_wrap=True)
    monkeypatch.setattr(watched, "Console", lambda **_: wide)
    return sent


def test_how_far_a_call_is_stands_on_a_terminal_until_it_is_further(terminal):
    view = View()
    for done, more in (
        (1.0, {"total": 4.0, "message": "a message of\x1b[2J many words"}),
        (2.5, {}),
    ):
        view.show("tool_progress", {"data": {**CALL, "progress": done, **more}})
    view.show("tool", {"data": {**CALL, "status": "completed", "result": "done"}})
    first, second, rest = plain(terminal).split("\r\x1b[2K")
    assert first == "  bash 1/4 a message of[2J m…"
    assert second == "  bash 2.5"
    assert rest == "✓ bash\n  done\n"


def test_a_line_that_redraws_itself_is_seen_as_it_stands(terminal):
    view = View()
    view.show("tool_output", {"data": {**CALL, "text": "begun\n 10%\r 20%\r", "characters": 16}})
    view.show("tool_output", {"data": {**CALL, "text": "begun\nover\n", "characters": 11}})
    assert plain(terminal) == "  begun\n  20%\r\x1b[2K  over\n"


def test_where_there_is_no_terminal_only_whole_lines_are_shown(capsys):
    view = View()
    view.show("tool_progress", {"data": {**CALL, "progress": 1.0}})
    view.show("tool_output", {"data": {**CALL, "text": "half", "characters": 4}})
    assert capsys.readouterr().out == ""


def plain(terminal):
    """What was sent, without its styles."""
    return terminal.getvalue().replace("\x1b[2m", "").replace("\x1b[0m", "")
