"""How long a history is, what of it is kept, cut, left out: without a database."""

import pytest

from stenograph.engine import fitting, summing
from stenograph.engine.history import Unit
from stenograph.engine.models.catalog import parse
from stenograph.engine.models.request import Message, Text, ToolResult, results, system, user
from stenograph.engine.models.windows import UNKNOWN, window


def said(kind, text, at=0, **more):
    return Unit(kind, (user(text),), at, **more)


def names(units):
    return [unit.messages[0].text.strip() for unit in units]


WORD = "x" * 350  # a hundred tokens and one


def test_what_was_counted_is_the_truth_and_what_came_since_is_estimated():
    call = (Message("assistant", (Text("a"),)), results(ToolResult("1", "read", WORD)))
    counted = Unit("round", call, 1, task_id=7, used=5_000, behind=1)
    units = [said("turn", WORD * 50), counted, said("steer", WORD)]
    assert fitting.total(units) == 5_000 + 2 * (4 + 101)
    assert fitting.measure(units) == 7
    assert fitting.total(units, counted=False) == 4 + 5_001 + (4 + 1) + 2 * (4 + 101)
    # Letters that take more bytes are more tokens.
    assert fitting.tokens("é" * 350) == 201


def test_the_newest_is_kept_and_the_last_round_whatever_its_length():
    units = [
        Unit("system", (system("s"),)), said("summary", "sum"), said("turn", "t1" + WORD),
        said("turn", "t2" + WORD), said("prompt", "p"), said("round", "r1" + WORD, 4),
        said("steer", "st", 5), said("round", "r2" + WORD * 9, 6),
    ]  # fmt: skip
    tight, roomy = fitting.split(units, 0), fitting.split(units, 1_180)
    assert [unit.kind for unit in tight.replaced] == ["summary", "turn", "turn", "round", "steer"]
    assert [unit.kind for unit in tight.kept] == ["system", "prompt", "round"]
    assert [unit.kind for unit in roomy.replaced] == ["summary", "turn"]
    assert [unit.at for unit in roomy.kept if unit.kind == "round"] == [4, 6]


def test_turns_are_left_out_before_rounds_and_the_last_round_never():
    units = [
        said("turn", "t1" + WORD), said("turn", "t2" + WORD), said("prompt", "p"),
        said("round", "r1" + WORD, 1), said("round", "r2" + WORD, 2),
    ]  # fmt: skip
    kept, lost = fitting.trimmed(units, 400)
    assert (lost, [unit.kind for unit in kept]) == (
        1, ["note", "turn", "prompt", "round", "round"],
    )  # fmt: skip
    kept, lost = fitting.trimmed(units, 10)
    assert (lost, [unit.kind for unit in kept]) == (3, ["note", "prompt", "round"])
    assert names(kept)[0] == (
        "[stenograph] Left out here, as there is no room for them:"
        " 2 earlier turns and 1 rounds of the running turn."
    )
    assert fitting.trimmed(kept, 10)[1] == 0
    assert fitting.trimmed(units, 10_000) == (tuple(units), 0)


def test_a_result_is_cut_in_its_middle():
    long = results(ToolResult("1", "read", "a" * 3_000 + "b" * 3_000))
    [unit] = fitting.shortened([Unit("round", (user("before" * 999), long))], 4_000)
    assert unit.messages[0].text == "before" * 999  # only results are cut
    output = unit.messages[1].parts[0].output
    assert output.startswith("aaa")
    assert output.endswith("bbb")
    assert "[… 2500 characters left out …]" in output
    assert len(output) < 3_600


@pytest.mark.parametrize("size", [3_000, 800])
def test_of_a_record_that_is_too_long_the_end_is_summed_up_and_the_prompt_is_there(size):
    units = [said("turn", f"t{n} {WORD * 4}") for n in range(9)]
    units += [said("prompt", f"p {WORD}"), said("round", f"r1 {WORD * 2}", 3)]
    instruction, record = summing.request(units, size)
    assert instruction.role == "system"
    assert "more was said before" in record.text
    assert "t0" not in record.text
    assert record.text.index("p ") < record.text.index("r1 ")
    assert fitting.tokens(record.text) < size


@pytest.mark.parametrize(
    ("name", "tokens"),
    [
        ("anthropic/claude-sonnet-4-5", 200_000),
        ("google/gemini-2.5-pro", 1_048_576),
        ("openai/no-such-model", UNKNOWN),
        ("ollama/qwen3", UNKNOWN),
        ("dev/small", 200_000),
    ],
)
def test_a_window_is_what_the_price_list_says(name, tokens):
    assert window(parse(name)) == tokens


def test_the_window_of_a_dev_model_stands_in_its_scene():
    prompt = '```dev-scene\nwindow = 777\n[[round]]\nsay = "x"\n```'
    assert window(parse("dev/small"), prompt) == 777
    assert window(parse("dev/small"), "[dev:no-such-scene]") == 200_000
