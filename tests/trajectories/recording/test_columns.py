"""A step taken apart and put together again is the same step (docs/decisions/0011)."""

import msgspec
from hypothesis import given, settings

from stenograph.trajectories.atif.format import (
    ContentPart,
    Metrics,
    Observation,
    ObservationResult,
    Step,
    ToolCall,
)
from stenograph.trajectories.atif.writing import normal_form
from stenograph.trajectories.recording.columns import join, split
from strategies.atif import trajectories


def through_columns(step: Step, agent_model: str | None = "model-of-the-agent") -> Step:
    columns = split(step, agent_model)
    for call in columns.calls:
        call.answered = call.output is not None  # as the export reads it from the rows
    joined = msgspec.json.encode(join(step.step_id, step.source, columns))
    return msgspec.json.decode(joined, type=Step)


@settings(max_examples=150, deadline=None)
@given(trajectories())
def test_every_step_survives(document):
    for step in normal_form(document).steps:
        assert through_columns(step, document.agent.model_name) == step


def agent(**fields) -> Step:
    return Step(step_id=1, source="agent", message="", **fields)


def call(call_id: str) -> ToolCall:
    return ToolCall(tool_call_id=call_id, function_name="f", arguments={})


def result(call_id: str | None, content: str | None = "x") -> ObservationResult:
    return ObservationResult(source_call_id=call_id, content=content)


def test_results_keep_their_order_and_their_calls():
    """Two answers to one call, an answer to none, and a call without an answer (fault 6, 31)."""
    step = agent(
        tool_calls=[call("a"), call("b"), call("a"), call("c")],
        observation=Observation(
            results=[
                result("b"),
                result(None, "loose"),
                result("a"),
                result("a", None),
                result("a"),
            ]
        ),
    )
    assert through_columns(step) == step


def test_no_observation_is_not_an_empty_one():
    for observation in (None, Observation(results=[])):
        step = agent(tool_calls=[call("a")], observation=observation)
        assert through_columns(step) == step


def test_a_lone_text_part_becomes_a_string():
    """Harbor's training export crashes on a message of one text part (fault 52)."""
    step = agent()
    step.message = [ContentPart(type="text", text="hello")]
    assert through_columns(step).message == "hello"


def test_a_model_that_the_step_did_not_name_is_not_invented():
    assert through_columns(agent(), "m").model_name is None
    assert split(agent(), "m").model == "m"


def test_numbers_over_64_bits_stay_whole():
    step = agent(
        tool_calls=[ToolCall(tool_call_id="a", function_name="f", arguments={"n": 2**80})],
        metrics=Metrics(prompt_tokens=2**70, completion_tokens=1, cost_usd=0.5),
        llm_call_count=2**65,
    )
    assert through_columns(step) == step
