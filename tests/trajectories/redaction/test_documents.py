"""Masking of whole documents: every string, keys and numbers, with references kept."""

import json
import re
from pathlib import Path

import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from stenograph.trajectories.atif.format import (
    Agent,
    ContentPart,
    MediaSource,
    Metrics,
    Observation,
    ObservationResult,
    Step,
    SubagentTrajectoryRef,
    ToolCall,
    Trajectory,
)
from stenograph.trajectories.redaction import Redactor
from strategies.secrets import (
    around,
    json_values,
    known_credentials,
    long_runs,
    own_credentials,
    secret_values,
    strings_in,
    without_markers,
)

CORPUS = Path(__file__).parents[4] / "shared" / "corpus"
LONG = "call-" + "0f" * 20


def document(draw, strings):
    """A document with a string of `strings` in every place that can hold one."""

    def one():
        return draw(strings)

    call, child = one(), one()
    extra = st.dictionaries(strings, json_values(strings), max_size=2)
    part = ContentPart(type="text", text=one())
    image = ContentPart(type="image", source=MediaSource(media_type="image/png", path=one()))
    nested = Trajectory(
        schema_version="ATIF-v1.7",
        trajectory_id=child,
        agent=Agent(name=one(), version=one()),
        steps=[Step(step_id=1, source="user", message=one())],
    )
    result = ObservationResult(
        source_call_id=call,
        content=one(),
        subagent_trajectory_ref=[
            SubagentTrajectoryRef(trajectory_id=child, trajectory_path=one(), session_id=one())
        ],
        extra=draw(extra),
    )
    step = Step(
        step_id=1,
        source="agent",
        timestamp="2026-01-02T03:04:05Z",
        message=[part, image],
        model_name=one(),
        reasoning_effort=one(),
        reasoning_content=one(),
        tool_calls=[
            ToolCall(
                tool_call_id=call, function_name=one(), arguments=draw(extra), extra=draw(extra)
            ),
            ToolCall(
                tool_call_id=one(),
                function_name="f",
                arguments={},
                extra={"parent_tool_call_id": call},
            ),
        ],
        observation=Observation(results=[result]),
        metrics=Metrics(prompt_tokens=12345678, cost_usd=0.25, logprobs=[-0.5], extra=draw(extra)),
    )
    tools = [{"function": {"name": one(), "description": one(), "parameters": draw(extra)}}]
    return Trajectory(
        schema_version="ATIF-v1.7",
        session_id=one(),
        agent=Agent(name=one(), version=one(), tool_definitions=tools, extra=draw(extra)),
        steps=[step],
        notes=one(),
        continued_trajectory_ref=one(),
        subagent_trajectories=[nested],
        extra=draw(extra),
    )


PLAIN = st.text("abc é\n\"\\{}[]:=./'", max_size=8)


@given(st.lists(secret_values, min_size=1, max_size=2), st.data())
@settings(max_examples=40, deadline=None)
def test_no_secret_survives_anywhere(secrets, data):
    # A secret that is part of a field's name stands in every document.
    fields = msgspec.json.encode(document(data.draw, st.just(""))).decode()
    assume(not any(secret.strip() in fields for secret in secrets))
    strings = st.one_of(PLAIN, st.sampled_from(secrets).flatmap(around))
    masked = Redactor(secrets, "ephemeral").struct(document(data.draw, strings))
    for text in strings_in(msgspec.to_builtins(masked)):
        assert not [secret for secret in secrets if secret.strip() in without_markers(text)]


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_no_credential_or_run_survives_anywhere(data):
    values = [data.draw(known_credentials)[1], data.draw(own_credentials), data.draw(long_runs)]
    strings = st.one_of(PLAIN, st.sampled_from(values).flatmap(around))
    masked = Redactor([], "standard").struct(document(data.draw, strings))
    encoded = msgspec.json.encode(masked).decode()
    assert not re.search(r"[A-Za-z0-9_-]{40}", encoded)
    for text in strings_in(json.loads(encoded)):
        assert not [value for value in values if value in text]


@given(st.data(), st.lists(secret_values, max_size=1))
@settings(max_examples=40, deadline=None)
def test_references_hold_and_stay_distinct(data, secrets):
    ids = st.one_of(
        long_runs.map(lambda run: "call_" + run),
        st.sampled_from([*secrets, "redacted-ref-1", "redacted-ref-2", "call_1", "call_2", LONG]),
    )
    before = document(data.draw, st.one_of(PLAIN, ids))
    redactor = Redactor(secrets, "standard")
    after = redactor.struct(before)
    step, old = after.steps[0], before.steps[0]
    call, other = (c.tool_call_id for c in step.tool_calls)
    result = step.observation.results[0]
    assert result.source_call_id == call
    assert step.tool_calls[1].extra["parent_tool_call_id"] == call
    child = after.subagent_trajectories[0].trajectory_id
    assert result.subagent_trajectory_ref[0].trajectory_id == child
    assert (call == other) == (old.tool_calls[0].tool_call_id == old.tool_calls[1].tool_call_id)
    assert redactor.reference(old.tool_calls[0].tool_call_id) == call
    assert redactor.text(call) == call


@given(
    st.lists(
        st.one_of(st.text(max_size=4), long_runs, st.from_regex(r"redacted-ref-\d", fullmatch=True))
    )
)
def test_no_two_names_become_one(names):
    redactor = Redactor(["redacted-ref-3", "abcd"], "standard")
    aliases = {name: redactor.reference(name) for name in names}
    assert len(set(aliases.values())) == len(aliases)
    assert aliases == {name: redactor.reference(name) for name in names}
    assert all(redactor.text(alias) == alias for alias in aliases.values())


@given(st.data())
@settings(max_examples=20, deadline=None)
def test_steps_masked_one_by_one_read_as_masked_together(data):
    strings = st.one_of(PLAIN, long_runs, known_credentials.map(lambda pair: pair[1]))
    whole = document(data.draw, strings)
    whole.steps += document(data.draw, strings).steps
    together, one_by_one = Redactor([], "standard"), Redactor([], "standard")
    assert [one_by_one.struct(step) for step in whole.steps] == together.struct(whole).steps


def test_only_references_get_aliases():
    call = ToolCall(
        tool_call_id=LONG * 2,
        function_name=LONG * 2,
        arguments={"tool_call_id": LONG * 2},
        extra={"parent_tool_call_id": LONG * 2, "other": LONG * 2},
    )
    masked = Redactor([], "standard").struct(call)
    assert masked.tool_call_id == masked.extra["parent_tool_call_id"] == "redacted-ref-1"
    assert masked.function_name == masked.extra["other"] == "[redacted]"
    assert masked.arguments == {"tool_call_id": "[redacted]"}


def test_aliases_count_up_by_first_appearance():
    redactor = Redactor([], "standard")
    first, second = "x" * 40, "y" * 40
    assert redactor.reference(first) == "redacted-ref-1"
    assert redactor.reference("call_1") == "call_1"
    assert redactor.reference(second) == "redacted-ref-2"
    assert redactor.reference(first) == "redacted-ref-1"
    assert Redactor(["redacted"], "standard").reference(first) == "r-1"
    assert Redactor([], "ephemeral").reference(first) == first


def test_fields_keep_the_type_the_schema_gives_them():
    step = Step(
        step_id=2026,
        source="agent",
        timestamp="2026-01-02T03:04:05Z",
        message="2026 agent",
        reasoning_effort=2026.0,
        metrics=Metrics(prompt_tokens=2026, prompt_token_ids=[2026], extra={"n": 2026}),
    )
    masked = Redactor(["2026", "agent"], "standard").struct(step)
    assert (masked.step_id, masked.source, masked.timestamp) == (2026, "agent", step.timestamp)
    assert masked.reasoning_effort == 2026.0
    assert masked.metrics.prompt_tokens == 2026
    assert masked.metrics.prompt_token_ids == [2026]
    assert masked.metrics.extra == {"n": "[redacted-secret]"}
    assert masked.message == "[redacted-secret] [redacted-secret]"
    assert step.message == "2026 agent"
    media = MediaSource(media_type="image/png", path="image.png")
    assert Redactor(["image"], "standard").struct(media).media_type == "image/png"


@given(json_values(st.one_of(PLAIN, st.sampled_from(["abcd", "1234", "a" * 41, "password"]))))
@settings(max_examples=150)
def test_values_keep_their_form_and_are_masked_once(value):
    redactor = Redactor(["abcd", "1234"], "standard")
    masked = redactor.value(value)
    assert redactor.value(masked) == masked
    assert shape(masked) == shape(value)


def shape(value):
    if isinstance(value, dict):
        return {"members": [shape(item) for item in value.values()]}
    return [shape(item) for item in value] if isinstance(value, list) else None


def test_keys_stay_distinct():
    value = {"abcd": 1, "[redacted-secret]": 2, "ABCD": 3, "x-abcd": 4}
    masked = Redactor(["abcd", "ABCD"], "ephemeral").value(value)
    assert masked == {
        "[redacted-secret]-2": 1,
        "[redacted-secret]": 2,
        "[redacted-secret]-3": 3,
        "x-[redacted-secret]": 4,
    }
    assert list(masked.values()) == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("value", "masked"),
    [
        (1234567, "[redacted-secret]"),
        (-0.123456, "[redacted-secret]"),
        (10**40, "[redacted]"),
        (10**38, 10**38),
        (12.5, 12.5),
        (True, True),
        (None, None),
    ],
)
def test_numbers(value, masked):
    redactor = Redactor(["123456"], "standard")
    assert redactor.value({"n": [value]}) == {"n": [masked]}
    assert sum(redactor.counts.values()) == (masked != value)


@pytest.mark.parametrize(
    ("value", "masked"),
    [
        ({"password": "correct horse"}, {"password": "[redacted-credential]"}),
        ({"x-api-key": "swordfish"}, {"x-api-key": "[redacted-credential]"}),
        ({"api_key": 12345678}, {"api_key": "[redacted-credential]"}),
        ({"Authorization": "Basic abcdefgh"}, {"Authorization": "Basic [redacted-credential]"}),
        ({"password": {"type": "string"}}, {"password": {"type": "string"}}),
        ({"token": "hello"}, {"token": "hello"}),
        ({"password": "{{ password }}"}, {"password": "{{ password }}"}),
        ({"password": "hunter2"}, {"password": "[redacted-secret]"}),
    ],
)
def test_values_under_credential_names(value, masked):
    redactor = Redactor(["hunter2"], "standard")
    assert redactor.value(value) == masked
    assert redactor.value(masked) == masked
    assert not redactor.clean(msgspec.json.encode(value))


def test_any_depth_is_walked():
    value = "hunter2"
    for _ in range(5000):
        value = {"a": [value]}
    masked = Redactor(["hunter2"], "standard").value(value)
    for _ in range(5000):
        masked = masked["a"][0]
    assert masked == "[redacted-secret]"


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus of genuine logs is not here")
@pytest.mark.parametrize("program", ["claude", "codex"])
def test_planted_secrets_of_a_genuine_log_go(program):
    case = CORPUS / program / "j_secrets"
    truth = json.loads((case / "meta.json").read_text())
    planted = truth["truth"]["secrets_planted"].values()
    redactor = Redactor([], "standard")
    for line in (case / "stdout").read_text().splitlines():
        masked = json.dumps(redactor.value(json.loads(line)), ensure_ascii=False)
        assert not [secret for secret in planted if json.dumps(secret)[1:-1] in masked]
    for secret in planted:
        assert secret not in redactor.text(f"it is {secret}")
    assert "hunter2fake" not in redactor.text(truth["truth"]["secrets_planted"]["db_url"])
