"""What a person sees of a call's output: each line once, as it comes or when it is there."""

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
