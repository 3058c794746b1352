"""ATIF going out: hygiene (atif.md section 9), and the form documents are compared in."""

import json

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from stenograph.trajectories.atif.check import parse, problems
from stenograph.trajectories.atif.format import Step, ToolCall, Trajectory
from stenograph.trajectories.atif.writing import (
    UNRESOLVED,
    emit_version,
    encode,
    normal_form,
    plain,
)
from strategies.atif import trajectories, with_surrogates
from trajectories.atif.documents import agent, audio, document, image, results, user

EXAMPLES = settings(max_examples=100, deadline=None)


def trajectory(*steps, **root) -> Trajectory:
    return msgspec.convert(document(*steps, **root), Trajectory)


def without_nulls(value):
    """A document without schema nulls, by the schema's own words: not inside free data."""
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    if not isinstance(value, dict):
        return value
    free = ("extra", "arguments", "tool_definitions")
    return {
        key: member if key in free else without_nulls(member)
        for key, member in value.items()
        if member is not None
    }


@EXAMPLES
@given(trajectories())
def test_what_is_written_is_read_as_the_same(made):
    data = encode(made)
    assert parse(data).trajectory == made
    value = json.loads(data)
    assert without_nulls(value) == value


@EXAMPLES
@given(trajectories())
def test_explicit_nulls_mean_absent(made):
    """The same document with every absent field written as null is read as the same."""

    def spelled_out(struct):
        if isinstance(struct, list):
            return [spelled_out(item) for item in struct]
        if not isinstance(struct, msgspec.Struct):
            return struct
        return {name: spelled_out(getattr(struct, name)) for name in struct.__struct_fields__}

    assert parse(json.dumps(spelled_out(made)).encode()).trajectory == made


@EXAMPLES
@given(trajectories())
def test_normal_form_is_within_the_format_and_settled(made):
    before = encode(made)
    normal = normal_form(made)
    assert encode(made) == before
    assert normal_form(normal) == normal
    assert problems(json.loads(encode(normal))) == []
    assert parse(encode(normal)).version == emit_version(made)


@EXAMPLES
@given(with_surrogates())
def test_lone_surrogates_never_leave(value):
    parsed = parse(json.dumps(value).encode())
    assert parsed.replaced_characters > 0
    assert encode(parsed.trajectory).decode()
    unread = msgspec.convert(value, Trajectory)
    if unread.schema_version == parsed.version:
        assert json.loads(encode(unread)) == json.loads(encode(parsed.trajectory))


def test_nulls_in_free_data_are_data():
    step = Step(step_id=1, source="agent", message="", extra={"a": None})
    step.tool_calls = [ToolCall(tool_call_id="c", function_name="f", arguments={"x": None})]
    assert json.loads(encode(step)) == {
        "step_id": 1,
        "source": "agent",
        "message": "",
        "tool_calls": [{"tool_call_id": "c", "function_name": "f", "arguments": {"x": None}}],
        "extra": {"a": None},
    }


def test_integers_keep_every_digit():
    made = trajectory(agent(metrics={"prompt_tokens": 2**70}), extra={"n": 2**64 + 1})
    assert json.loads(encode(made))["extra"] == {"n": 2**64 + 1}
    assert parse(encode(made)).trajectory.steps[0].metrics.prompt_tokens == 2**70


def test_a_lone_text_part_is_a_string_and_nothing_else_is():
    """Fault 52: Harbor's SFT export breaks on an array of one text."""
    text, picture = {"type": "text", "text": "x"}, image()
    made = trajectory(
        user(message=[text]),
        user(message=[text, text]),
        user(message=[picture]),
        user(message=[]),
        results({"content": [text]}, {"content": None}),
    )
    normal = json.loads(encode(normal_form(made)))["steps"]
    assert [s["message"] for s in normal[:4]] == ["x", [text, text], [picture], []]
    assert normal[4]["observation"]["results"] == [{"content": "x"}, {}]
    assert plain("x") == "x"
    assert plain(None) is None


def test_1_8_is_only_for_audio_wherever_it_is():
    below = document(results({"content": [audio()]}), trajectory_id="k")
    assert emit_version(trajectory(user(message=[image()]), version="ATIF-v1.8")) == "ATIF-v1.7"
    made = trajectory(subagent_trajectories=[below])
    assert emit_version(made) == "ATIF-v1.8"
    labels = {normal_form(made).schema_version}
    labels |= {child.schema_version for child in normal_form(made).subagent_trajectories}
    assert labels == {"ATIF-v1.8"}


SESSION_ONLY = {"session_id": "run-2", "extra": {"why": "summary"}}
WITH_PATH = {"trajectory_path": "b.json"}


def ref_result(*refs, **root):
    step = results({"content": "done", "subagent_trajectory_ref": list(refs)})
    made = trajectory(step, version="ATIF-v1.6", **root)
    return json.loads(encode(normal_form(made)))["steps"][0]["observation"]["results"][0]


def test_a_reference_to_a_session_alone_stays_as_an_unresolved_edge():
    assert ref_result(SESSION_ONLY, WITH_PATH) == {
        "content": "done",
        "subagent_trajectory_ref": [WITH_PATH],
        "extra": {UNRESOLVED: [SESSION_ONLY]},
    }
    assert ref_result(SESSION_ONLY) == {"content": "done", "extra": {UNRESOLVED: [SESSION_ONLY]}}


def test_a_reference_to_a_session_names_the_one_child_of_that_session():
    one = document(trajectory_id="k", session_id="run-2")
    two = document(trajectory_id="m", session_id="run-2")
    resolved = {**SESSION_ONLY, "trajectory_id": "k"}
    assert ref_result(SESSION_ONLY, subagent_trajectories=[one]) == {
        "content": "done",
        "subagent_trajectory_ref": [resolved],
    }
    assert "subagent_trajectory_ref" not in ref_result(
        SESSION_ONLY, subagent_trajectories=[one, two]
    )


@settings(max_examples=30)
@given(st.text())
def test_text_is_utf8_whatever_it_is(text):
    """Fault 20: and never in the codec of the locale."""
    data = encode(trajectory(user(message=text)))
    assert json.loads(data.decode("utf-8"))["steps"][0]["message"] == text
