"""ATIF documents as drafts: placed, and otherwise as they came."""

import hashlib
import json

import msgspec
import pytest
from hypothesis import given, settings

from stenograph.errors import InvalidInputError
from stenograph.trajectories.atif.format import Trajectory
from stenograph.trajectories.atif.writing import UNRESOLVED, encode, normal_form
from stenograph.trajectories.importers.atif import read
from stenograph.trajectories.importers.draft import SessionDraft
from strategies.atif import trajectories
from trajectories.atif.documents import (
    CALL,
    agent,
    audio,
    document,
    image,
    results,
    system,
    user,
)


def taken(*steps, files=None, **root) -> SessionDraft:
    return read(json.dumps(document(*steps, **root)).encode(), files=files)


def parts(*steps) -> list[str]:
    return [step.part for step in taken(*steps).steps]


def rebuilt(draft: SessionDraft, version: str) -> Trajectory:
    """The document a draft was made of, from nothing but the draft."""
    root = {k: v for k, v in draft.document.items() if k != "schema_version"}
    return msgspec.convert(
        {
            "schema_version": version,
            "agent": msgspec.to_builtins(draft.agent),
            "steps": [msgspec.to_builtins(step.step) for step in draft.steps],
            "session_id": draft.session_id,
            "trajectory_id": draft.trajectory_id,
            **root,
        },
        Trajectory,
    )


@settings(max_examples=100, deadline=None)
@given(trajectories())
def test_a_draft_holds_everything_that_was_in_the_document(made):
    data = encode(made)
    draft = read(data, name="trajectory.json")
    normal = normal_form(made)

    def compare(draft: SessionDraft, expected: Trajectory, original: Trajectory) -> None:
        mine = rebuilt(draft, expected.schema_version)
        mine.subagent_trajectories = expected.subagent_trajectories
        assert mine == expected
        assert draft.document["schema_version"] == original.schema_version
        children = expected.subagent_trajectories or []
        assert len(draft.children) == len(children)
        originals = original.subagent_trajectories or []
        for one, other, third in zip(draft.children, children, originals, strict=True):
            compare(one, other, third)

    compare(draft, normal, made)
    assert draft.originals == {"trajectory.json": data}


def answered(**fields) -> dict:
    return results({"source_call_id": "c1", "content": "ok"}, **fields)


def test_a_message_opens_a_turn():
    assert parts(system(), user(), agent(), user(), agent()) == [
        "system",
        "prompt",
        "agent",
        "prompt",
        "agent",
    ]


def test_a_message_to_an_agent_at_work_is_a_steer():
    """Its calls are answered, so it goes on by itself; and it did."""
    assert parts(user(), answered(), user(), agent())[2] == "steer"
    assert parts(user(), answered(), system(), user(), user(), agent())[3:5] == ["steer", "steer"]


@pytest.mark.parametrize(
    "last",
    [
        agent(),
        agent(tool_calls=[]),
        agent(tool_calls=[CALL]),
        results({"source_call_id": "c1"}, calls=(CALL, {**CALL, "tool_call_id": "c2"})),
        agent(observation={"results": [{"content": "x"}]}),
    ],
)
def test_a_message_to_an_agent_that_waits_opens_a_turn(last):
    assert parts(user(), last, user(), agent())[2] == "prompt"


def test_a_message_nothing_came_after_opens_a_turn():
    assert parts(user(), answered(), user()) == ["prompt", "agent", "prompt"]


def test_compaction_is_a_system_step():
    """Fault 29: what it put in place of the context stays, and so does all before it."""
    compaction = system(
        extra={"context_management": {"type": "compaction", "boundary": "replace"}},
        observation={"results": [{"content": "SUM"}]},
    )
    draft = taken(user(), compaction, user(), agent())
    assert [step.part for step in draft.steps] == ["prompt", "system", "prompt", "agent"]
    assert draft.steps[1].step.observation.results[0].content == "SUM"


def test_only_the_call_that_failed_is_failed():
    """Fault 14: two calls of one tool; fault 17: a child's failure is the child's."""
    two = (CALL, {**CALL, "tool_call_id": "c2"})
    broken = results(
        {"source_call_id": "c1", "content": "ok"},
        {"source_call_id": "c2", "content": "no", "extra": {"is_error": True}},
        calls=two,
    )
    assert taken(broken).steps[0].failed_calls == {"c2"}
    child = document(broken, trajectory_id="k")
    parent = results({"source_call_id": "c1", "subagent_trajectory_ref": [{"trajectory_id": "k"}]})
    draft = taken(parent, subagent_trajectories=[child])
    assert draft.steps[0].failed_calls == frozenset()
    assert draft.children[0].steps[0].failed_calls == {"c2"}


@pytest.mark.parametrize("claim", [{"is_error": False}, {"is_error": "yes"}, {}, None])
def test_nothing_else_is_a_failure(claim):
    assert taken(results({"source_call_id": "c1", "extra": claim})).steps[0].failed_calls == set()


@pytest.mark.parametrize(
    ("extra", "written", "reasoning"),
    [
        ({"cache_write_tokens": 3, "reasoning_tokens": 4}, 3, 4),
        ({"cache_creation_input_tokens": 5, "reasoning_output_tokens": 0}, 5, 0),
        ({"cache_write_tokens": "3", "reasoning_tokens": True}, None, None),
        ({"cache_write_tokens": -1, "reasoning_tokens": 2**63}, None, None),
        ({}, None, None),
    ],
)
def test_cache_writes_and_reasoning_are_counted_where_the_document_says(extra, written, reasoning):
    (step,) = taken(agent(metrics={"extra": extra})).steps
    assert (step.cache_write_tokens, step.reasoning_tokens) == (written, reasoning)
    assert step.step.metrics.extra == extra


def test_no_end_is_invented():
    """Fault 18: steps at 0 and 100 s say nothing of how long the first took."""
    first = answered(timestamp="1970-01-01T00:00:00Z")
    draft = taken(first, agent(timestamp="1970-01-01T00:01:40Z"))
    assert draft.started_at == "1970-01-01T00:00:00Z"
    assert draft.turn_ends == {}
    assert draft.steps[0].result_times == {}


def test_a_document_is_known_by_the_best_name_it_has():
    assert taken(trajectory_id="t").key == "t"
    assert taken().key == "s"
    data = json.dumps(document(session_id=None)).encode()
    assert read(data).key == hashlib.sha256(data).hexdigest()[:32]


def test_children_are_sessions_of_their_own():
    """Fault 28: a child that is embedded and named by its id alone is taken whole."""
    grandchild = document(user(), trajectory_id="g", session_id=None)
    child = document(user(), agent(), trajectory_id="k", subagent_trajectories=[grandchild])
    parent = results({"source_call_id": "c1", "subagent_trajectory_ref": [{"trajectory_id": "k"}]})
    draft = taken(user(), parent, subagent_trajectories=[child])
    (below,) = draft.children
    assert (below.key, below.trajectory_id, below.children[0].key) == ("k", "k", "g")
    assert [step.part for step in below.steps] == ["prompt", "agent"]
    assert [draft.steps[0].origin, below.steps[0].origin] == ["person", "agent"]


def test_a_reference_nothing_resolves_is_kept():
    ref = {"session_id": "other"}
    draft = taken(results({"subagent_trajectory_ref": [ref]}), version="ATIF-v1.4")
    (found,) = draft.steps[0].step.observation.results
    assert found.extra == {UNRESOLVED: [ref]}
    assert any("unresolved" in warning for warning in draft.warnings)


def test_media_come_from_the_files_beside_the_document():
    """Fault 27: the bytes are kept, each under the path its steps name, where it is needed."""
    inner = results({"content": [audio(path="b.wav")]})
    child = document(inner, trajectory_id="k")
    draft = taken(
        user(message=[image("./media/a.png"), image("./media/a.png"), image("https://h/x.png")]),
        subagent_trajectories=[child],
        files={"media/a.png": b"A", "b.wav": b"B", "c.png": b"C"},
    )
    assert [(m.path, m.media_type, m.data) for m in draft.media] == [
        ("./media/a.png", "image/png", b"A")
    ]
    assert [(m.path, m.data) for m in draft.children[0].media] == [("b.wav", b"B")]


def test_media_that_are_missing_are_told():
    draft = taken(user(message=[image("a.png"), image("data:image/png;base64,iVBORw0=")]))
    assert draft.media == []
    assert any("1 media files" in warning for warning in draft.warnings)


def test_what_a_newer_version_brought_lies_aside():
    draft = taken(user(mood="calm"), version="ATIF-v1.9")
    assert draft.document["unknown_fields"] == {"/steps/0/mood": "calm"}


def test_warnings_and_replacements_reach_the_person():
    draft = taken(user(message="\ud800"), final_metrics={"total_steps": 3})
    assert draft.replaced_characters == 1
    assert any("total_steps" in warning for warning in draft.warnings)


def test_what_is_no_document_is_refused():
    with pytest.raises(InvalidInputError) as caught:
        taken(agent(metrics="oops"))
    assert caught.value.details["problems"][0]["pointer"] == "/steps/0/metrics"
