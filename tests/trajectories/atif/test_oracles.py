"""Two other readers of ATIF, and where they let pass what is refused here."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles import atif_package, harbor
from stenograph.errors import InvalidInputError
from stenograph.trajectories.atif.check import parse, problems
from stenograph.trajectories.atif.writing import encode, normal_form
from strategies.atif import trajectories, values
from trajectories.atif.documents import CALL, agent, document, image, results, user


@settings(max_examples=150, deadline=None)
@given(trajectories())
def test_what_is_accepted_here_goes_out_valid_everywhere(made):
    parsed = parse(encode(made))
    data = encode(normal_form(parsed.trajectory))
    assert harbor.validate(data) == []
    assert atif_package.validate(data) == []
    assert harbor.load(data).to_json_dict() == json.loads(data)


@st.composite
def spoiled(draw):
    """A document in which one place, anywhere outside free data, holds something else."""
    value = json.loads(encode(draw(trajectories(max_depth=1))))
    holder, key = draw(st.sampled_from(list(places(value))))
    if draw(st.booleans()) and isinstance(holder, dict):
        del holder[key]
    else:
        holder[key] = draw(values | st.sampled_from([[], {}, [{}], [None], "agent", 10**400]))
    return value


def places(value):
    for key, member in value.items() if isinstance(value, dict) else enumerate(value):
        yield value, key
        if isinstance(member, dict | list) and key not in ("extra", "arguments"):
            yield from places(member)


@settings(max_examples=300, deadline=None)
@given(spoiled())
def test_a_spoiled_document_is_refused_or_valid_everywhere(value):
    """Whatever is in it: never another error, and never something Harbor would not take."""
    try:
        parsed, told = parse(json.dumps(value).encode()), []
    except InvalidInputError as error:
        parsed, told = None, error.details["problems"]
    assert told == [{"pointer": p.pointer, "message": p.message} for p in problems(value)]
    if parsed is not None:
        assert harbor.validate(encode(normal_form(parsed.trajectory))) == []


def step(**fields) -> dict:
    return document(user(**fields))


#: Refused here: (document, whether Harbor refuses it, whether `atif` does).
PROBES = {
    "no version": ({**document(), "schema_version": None}, True, True),
    "version without its name": (document(version="1.7"), True, False),
    "another major": (document(version="ATIF-v2.0"), True, False),
    "no steps": ({**document(), "steps": []}, True, False),
    "null step": (document(None), True, True),
    "step number as text": (step(step_id="1"), False, False),
    "step number as float": (step(step_id=1.0), False, False),
    "step number as true": (step(step_id=True), False, False),
    "wrong step number": (step(step_id=9), True, True),
    "no ISO time": (step(timestamp="noon"), True, True),
    "calls on a user step": (step(tool_calls=[]), True, True),
    "unknown field": (step(mood="calm"), True, True),
    "metrics as text": (document(agent(metrics="oops")), True, True),
    "negative tokens": (document(agent(metrics={"prompt_tokens": -1})), False, False),
    "negative cost": (document(agent(metrics={"cost_usd": -1.0})), False, False),
    "tokens as text": (document(agent(metrics={"prompt_tokens": "12"})), False, False),
    "negative step total": (document(final_metrics={"total_steps": -1}), True, False),
    "negative token total": (document(final_metrics={"total_prompt_tokens": -1}), False, False),
    "result for a call that is not there": (
        document(results({"source_call_id": "gone"})),
        True,
        True,
    ),
    "result for a call where there are none": (
        document(agent(observation={"results": [{"source_call_id": "c1"}]})),
        True,
        False,
    ),
    "metrics without a model call": (document(agent(llm_call_count=0, metrics={})), True, True),
    "arguments as text": (
        document(agent(tool_calls=[{**CALL, "arguments": "{}"}])),
        True,
        True,
    ),
    "reference to a session alone": (
        document(results({"subagent_trajectory_ref": [{"session_id": "s"}]})),
        True,
        True,
    ),
    "no session id in 1.6": (document(version="ATIF-v1.6", session_id=None), False, False),
    "child without an id": (document(subagent_trajectories=[document()]), True, True),
    "image path that leads out": (step(message=[image("../a.png")]), False, False),
    "absolute image path": (step(message=[image("/etc/passwd")]), False, False),
    "image type in capitals": (step(message=[image(media_type="IMAGE/PNG")]), True, True),
    "text part without text": (step(message=[{"type": "text"}]), True, True),
}


@pytest.mark.parametrize(("value", "by_harbor", "by_atif"), PROBES.values(), ids=PROBES.keys())
def test_where_the_others_are_laxer(value, by_harbor, by_atif):
    assert problems(value) != []
    assert bool(harbor.validate(value)) == by_harbor
    assert bool(atif_package.validate(value)) == by_atif


#: Taken here, as a genuine older file or a newer one, and refused by the others.
STRICTER = {
    "a session alone in 1.6": document(
        results({"subagent_trajectory_ref": [{"session_id": "x"}]}), version="ATIF-v1.6"
    ),
    "a later 1.x": document(version="ATIF-v1.9", weather="blue"),
}


@pytest.mark.parametrize("value", STRICTER.values(), ids=STRICTER.keys())
def test_what_only_we_take_goes_out_so_that_all_take_it(value):
    assert harbor.validate(value) != []
    assert atif_package.validate(value) != []
    data = encode(normal_form(parse(json.dumps(value).encode()).trajectory))
    assert harbor.validate(data) == atif_package.validate(data) == []


def test_harbor_looks_for_media_beside_the_document(tmp_path):
    value = step(message=[image("a.png")])
    assert harbor.validate(value) == []
    assert len(harbor.validate(value, tmp_path)) == 1
    (tmp_path / "a.png").write_bytes(b"")
    assert harbor.validate(value, tmp_path) == []
