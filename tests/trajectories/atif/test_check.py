"""What is refused, with its pointer, and what is only warned about (atif.md sections 1 to 6)."""

import json

import pytest

from stenograph.errors import InvalidInputError
from stenograph.trajectories.atif.check import parse, problems
from trajectories.atif.documents import CALL, agent, audio, document, image, results, system, user


def pointers(value) -> list[str]:
    return [problem.pointer for problem in problems(value)]


def warned(value) -> list[str]:
    return parse(json.dumps(value).encode()).warnings


def child(trajectory_id="k", **root) -> dict:
    return document(**{"trajectory_id": trajectory_id, **root})


def refers(*refs, **fields) -> dict:
    return results({"source_call_id": "c1", "subagent_trajectory_ref": list(refs)}, **fields)


REFUSED = {
    "not an object": ([], [""]),
    "label missing": ({**document(), "schema_version": None}, ["/schema_version"]),
    "label of another shape (fault 30)": (document(version="atif/1"), ["/schema_version"]),
    "label without the name (faults 30, 55)": (document(version="1.4"), ["/schema_version"]),
    "label without the name, 1.7": (document(version="1.7"), ["/schema_version"]),
    "next major": (document(version="ATIF-v2.0"), ["/schema_version"]),
    "label in other digits": (document(version="ATIF-v1.٧"), ["/schema_version"]),
    "label with a line end": (document(version="ATIF-v1.7\n"), ["/schema_version"]),
    "label that is a number": (document(version=1.7), ["/schema_version"]),
    "null step, no agent (fault 15)": (
        {"schema_version": "ATIF-v1.7", "steps": [None]},
        ["/agent", "/steps/0"],
    ),
    "every step is looked at (fault 15)": (
        document(None, {"source": "user"}, "x", agent(message=1)),
        ["/steps/0", "/steps/1/message", "/steps/2", "/steps/3/message"],
    ),
    "types and rules together": (
        document(None, user(timestamp="noon")),
        ["/steps/0", "/steps/1/timestamp"],
    ),
    "no steps (fault 55)": ({**document(), "steps": []}, ["/steps"]),
    "steps no array": ({**document(), "steps": {}}, ["/steps"]),
    "session id missing up to 1.6": (
        document(version="ATIF-v1.6", session_id=None),
        ["/session_id"],
    ),
    "numbering from 0": (document(user(step_id=0)), ["/steps/0/step_id"]),
    "a hole in the numbering": (document(user(), user(step_id=3)), ["/steps/1/step_id"]),
    "number as text": (document(user(step_id="1")), ["/steps/0/step_id"]),
    "number as float": (document(user(step_id=1.0)), ["/steps/0/step_id"]),
    "number as true": (document(user(step_id=True)), ["/steps/0/step_id"]),
    "unknown source": (document(user(source="tool")), ["/steps/0/source"]),
    "null message": (document(user(message=None)), ["/steps/0/message"]),
    "unknown fields, escaped": (
        {**document(user(**{"a/b": 1})), "m~n": 2},
        ["/steps/0/a~1b", "/m~0n"],
    ),
    "metrics of a wrong type (fault 9)": (document(agent(metrics="oops")), ["/steps/0/metrics"]),
    "tokens of a wrong type (fault 9)": (
        document(agent(metrics={"prompt_tokens": "abc"})),
        ["/steps/0/metrics/prompt_tokens"],
    ),
    "tokens as float and true": (
        document(agent(metrics={"prompt_tokens": 2.0, "cached_tokens": True})),
        ["/steps/0/metrics/prompt_tokens", "/steps/0/metrics/cached_tokens"],
    ),
    "cost as true": (
        document(agent(metrics={"cost_usd": True})),
        ["/steps/0/metrics/cost_usd"],
    ),
    "cost beyond any float": (
        document(agent(metrics={"cost_usd": 10**400})),
        ["/steps/0/metrics/cost_usd"],
    ),
    "negative counts": (
        document(agent(metrics={"prompt_tokens": -1, "cost_usd": -0.5})),
        ["/steps/0/metrics/prompt_tokens", "/steps/0/metrics/cost_usd"],
    ),
    "cost that is no number": (
        document(agent(metrics={"cost_usd": float("nan")})),
        ["/steps/0/metrics/cost_usd"],
    ),
    "negative totals (fault 55)": (
        document(final_metrics={"total_steps": -1}),
        ["/final_metrics/total_steps"],
    ),
    "agent-only fields, even empty": (
        document(user(tool_calls=[], metrics={}), system(model_name="m", reasoning_effort=0.5)),
        [
            "/steps/0/tool_calls",
            "/steps/0/metrics",
            "/steps/1/model_name",
            "/steps/1/reasoning_effort",
        ],
    ),
    "metrics and reasoning without a model call": (
        document(agent(llm_call_count=0, metrics={}, reasoning_content="")),
        ["/steps/0/metrics", "/steps/0/reasoning_content"],
    ),
    "negative call count": (document(agent(llm_call_count=-1)), ["/steps/0/llm_call_count"]),
    "arguments as text": (
        document(agent(tool_calls=[{**CALL, "arguments": "{}"}])),
        ["/steps/0/tool_calls/0/arguments"],
    ),
    "a result for no call of this step": (
        document(agent(tool_calls=[CALL]), results({"source_call_id": "c1"}, calls=())),
        ["/steps/1/observation/results/0/source_call_id"],
    ),
    "a result for a call where there are none (fault 55)": (
        document(agent(observation={"results": [{"source_call_id": "c1"}]})),
        ["/steps/0/observation/results/0/source_call_id"],
    ),
    "a lone reference": (
        document(results({"subagent_trajectory_ref": {"trajectory_id": "k"}})),
        ["/steps/0/observation/results/0/subagent_trajectory_ref"],
    ),
    "a reference to nothing": (
        document(refers({})),
        ["/steps/0/observation/results/0/subagent_trajectory_ref/0"],
    ),
    "a reference to a session alone, since 1.7": (
        document(refers({"session_id": "x"})),
        ["/steps/0/observation/results/0/subagent_trajectory_ref/0"],
    ),
    "text part without text, with a source": (
        document(user(message=[{"type": "text", "source": image()["source"]}])),
        ["/steps/0/message/0/text", "/steps/0/message/0/source"],
    ),
    "image part with a text, without a source": (
        document(user(message=[{"type": "image", "text": "x"}])),
        ["/steps/0/message/0/text", "/steps/0/message/0/source"],
    ),
    "extra on a part": (
        document(user(message=[{"type": "text", "text": "x", "extra": {}}])),
        ["/steps/0/message/0/extra"],
    ),
    "unknown part": (
        document(user(message=[{"type": "video"}])),
        ["/steps/0/message/0/type"],
    ),
    "an image that is sound, and the reverse": (
        document(user(message=[image(media_type="audio/wav"), audio(media_type="image/png")])),
        ["/steps/0/message/0/source/media_type", "/steps/0/message/1/source/media_type"],
    ),
    "image types have one spelling": (
        document(user(message=[image(media_type="IMAGE/PNG")])),
        ["/steps/0/message/0/source/media_type"],
    ),
    "durations": (
        document(user(message=[image(duration_sec=1), audio(duration_sec=-1)])),
        ["/steps/0/message/0/source/duration_sec", "/steps/0/message/1/source/duration_sec"],
    ),
    "a media path that leads out, in a result of a child (fault 53)": (
        document(
            refers({"trajectory_id": "k"}),
            subagent_trajectories=[
                child(steps=[{"step_id": 1, **results({"content": [image("../../etc/passwd")]})}])
            ],
        ),
        ["/subagent_trajectories/0/steps/0/observation/results/0/content/0/source/path"],
    ),
    "a child without an id": (
        document(subagent_trajectories=[document()]),
        ["/subagent_trajectories/0/trajectory_id"],
    ),
    "two children of one id": (
        document(subagent_trajectories=[child(), child()]),
        ["/subagent_trajectories/1/trajectory_id"],
    ),
    "a child of an unknown version": (
        document(subagent_trajectories=[child(schema_version="1.7")]),
        ["/subagent_trajectories/0/schema_version"],
    ),
    "types and rules inside children": (
        document(
            subagent_trajectories=[
                child(steps=[None, {"step_id": 2, **user(timestamp="x")}], agent=[])
            ]
        ),
        [
            "/subagent_trajectories/0/agent",
            "/subagent_trajectories/0/steps/0",
            "/subagent_trajectories/0/steps/1/timestamp",
        ],
    ),
}


@pytest.mark.parametrize(("value", "expected"), REFUSED.values(), ids=REFUSED.keys())
def test_every_fault_is_named_with_its_pointer(value, expected):
    found = problems(value)
    assert sorted(problem.pointer for problem in found) == sorted(expected)
    assert all(problem.message for problem in found)
    if not json_can_say(value):
        return
    with pytest.raises(InvalidInputError) as caught:
        parse(json.dumps(value).encode())
    assert [p["pointer"] for p in caught.value.details["problems"]] == pointers(value)
    assert caught.value.details["problem_count"] == len(expected)


def json_can_say(value) -> bool:
    return "NaN" not in json.dumps(value)


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/etc/passwd",
        "..",
        "../a",
        "a/../../b",
        "a\\..\\b",
        "\\\\host\\a",
        "C:\\a",
        "c:a",
        "%2e%2e/a",
        "%2Fetc/passwd",
        "file:///a",
        "file:a",
        "javascript:x",
        "ftp://h/a",
        "https:a",
        "a\x00b",
        "FILE:///a",
    ],
)
def test_media_paths_that_lead_anywhere_else_are_refused(path):
    assert pointers(document(user(message=[image(path)]))) == ["/steps/0/message/0/source/path"]


@pytest.mark.parametrize(
    "path",
    [
        "a.png",
        "./a.png",
        "media/a b.png",
        "a..b/c...png",
        "media/100%.png",
        "https://h/a.png",
        "s3://bucket/a.png",
        "gs://b/a",
        "data:image/png;base64,iVBORw0=",
        "é/🙂.png",
    ],
)
def test_media_paths_below_the_document_and_urls_are_taken(path):
    assert problems(document(user(message=[image(path)]))) == []


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        ("2025-10-16T14:30:00Z", True),
        ("2025-10-16T14:30:00.123456789Z", True),
        ("2025-10-16", True),
        ("2025-W07-5", True),
        ("2025-10-16T14:30:00", True),
        ("2025-10-16T14:30:00z", False),
        ("2025-10-16T14:30:60Z", False),
        ("2025-02-30T00:00:00Z", False),
        ("", False),
        ("now", False),
    ],
)
def test_times_are_those_python_reads(text, taken):
    assert (
        problems(document(user(timestamp=text))) == []
        if taken
        else pointers(document(user(timestamp=text))) == ["/steps/0/timestamp"]
    )


@pytest.mark.parametrize(
    ("spelling", "kept"),
    [
        ("audio/mp3", "audio/mpeg"),
        ("AUDIO/X-WAV ", "audio/wav"),
        ("audio/m4a", "audio/mp4"),
        ("audio/flac", "audio/flac"),
    ],
)
def test_audio_types_get_their_one_spelling(spelling, kept):
    data = json.dumps(document(user(message=[audio(spelling)]), version="ATIF-v1.8")).encode()
    assert parse(data).trajectory.steps[0].message[0].source.media_type == kept


@pytest.mark.parametrize("minor", range(9))
def test_every_known_version_is_read(minor):
    data = json.dumps(document(version=f"ATIF-v1.{minor}")).encode()
    parsed = parse(data)
    assert (parsed.version, parsed.warnings) == (f"ATIF-v1.{minor}", [])


@pytest.mark.parametrize("minor", range(7))
def test_up_to_1_6_sessions_have_ids_and_may_be_referred_to_by_them(minor):
    label = f"ATIF-v1.{minor}"
    assert pointers(document(version=label, session_id=None)) == ["/session_id"]
    assert problems(document(refers({"session_id": "x"}), version=label)) == []


def test_a_later_1x_is_read_without_what_is_unknown_and_says_so():
    value = document(user(mood="calm"), version="ATIF-v1.12", weather={"sky": "blue"})
    parsed = parse(json.dumps(value).encode())
    assert parsed.unknown == {"/steps/0/mood": "calm", "/weather": {"sky": "blue"}}
    assert parsed.trajectory.schema_version == "ATIF-v1.12"
    assert any("/steps/0/mood and 1 more" in warning for warning in parsed.warnings)
    assert problems(value) == []


def test_a_later_1x_is_held_to_every_other_rule():
    value = document(user(mood="calm", step_id=5), version="ATIF-v1.9")
    assert pointers(value) == ["/steps/0/step_id"]


def test_each_document_of_a_tree_has_its_own_version():
    """A child of a known version keeps its unknown fields, to be refused, below a newer parent."""
    newer = child(schema_version="ATIF-v1.9", weather=1)
    known = child(trajectory_id="m", weather=1)
    value = document(version="ATIF-v1.9", subagent_trajectories=[newer, known])
    assert pointers(value) == ["/subagent_trajectories/1/weather"]


def test_results_without_calls_are_taken_in_order():
    """Fault 31: most real files have results that no call names."""
    value = document(agent(observation={"results": [{"content": "x"}, {"content": "y"}]}))
    parsed = parse(json.dumps(value).encode())
    assert [r.content for r in parsed.trajectory.steps[0].observation.results] == ["x", "y"]
    assert parsed.warnings == []


def test_extra_on_a_call_is_taken():
    """Fault 18: 1.7 brought it; a reader of 1.6 refused it."""
    call = {**CALL, "extra": {"x": 1}}
    assert warned(document(agent(tool_calls=[call]))) == []


WARNED = {
    "copies with metrics (fault 11)": (
        document(
            *[agent(is_copied_context=True, metrics={"prompt_tokens": 100})] * 2,
            agent(metrics={"prompt_tokens": 50}),
        ),
        "/steps/0/metrics and 1 more: a copied step",
    ),
    "steps that do not add up (fault 12)": (
        document(*[user()] * 4, final_metrics={"total_steps": 3}),
        "/final_metrics/total_steps: says 3",
    ),
    "totals that the steps contradict": (
        document(agent(metrics={"prompt_tokens": 5}), final_metrics={"total_prompt_tokens": 6}),
        "/final_metrics/total_prompt_tokens: says 6, the steps add up to 5",
    ),
    "a cost that the steps contradict": (
        document(agent(metrics={"cost_usd": 0.1}), final_metrics={"total_cost_usd": 0.2}),
        "/final_metrics/total_cost_usd",
    ),
    "more cached than sent": (
        document(agent(metrics={"prompt_tokens": 1, "cached_tokens": 2})),
        "/steps/0/metrics/cached_tokens",
    ),
    "one call id twice in a step": (
        document(agent(tool_calls=[CALL, CALL])),
        "/steps/0/tool_calls/1/tool_call_id: this step",
    ),
    "one call id in two steps": (
        document(agent(tool_calls=[CALL]), agent(tool_calls=[CALL])),
        "/steps/1/tool_calls/0/tool_call_id: an earlier step",
    ),
    "a reference that leads nowhere": (
        document(refers({"trajectory_id": "gone"})),
        "/steps/0/observation/results/0/subagent_trajectory_ref/0: no document",
    ),
    "a session alone, up to 1.6": (
        document(refers({"session_id": "x"}), version="ATIF-v1.6"),
        "stays unresolved",
    ),
    "a child nobody refers to": (
        document(subagent_trajectories=[child()]),
        "/subagent_trajectories/0: no step",
    ),
    "a child with its parent's id": (
        document(
            refers({"trajectory_id": "k"}), trajectory_id="k", subagent_trajectories=[child()]
        ),
        "/subagent_trajectories/0/trajectory_id: a child has",
    ),
    "audio before 1.8": (document(user(message=[audio()])), "ATIF-v1.7 has no audio"),
    "call counts before 1.7": (
        document(agent(llm_call_count=1), version="ATIF-v1.2"),
        "ATIF-v1.2 has no llm_call_count: 1.7",
    ),
    "parts before 1.6": (
        document(user(message=[]), version="ATIF-v1.5"),
        "ATIF-v1.5 has no content in parts",
    ),
}


@pytest.mark.parametrize(("value", "expected"), WARNED.values(), ids=WARNED.keys())
def test_what_readers_survive_is_kept_and_told(value, expected):
    (warning,) = warned(value)
    assert expected in warning


def test_a_reference_may_name_a_child_of_a_document_above():
    """Harbor resolves against the root; the RFC says parent. Either way it is there."""
    inner = child("inner", steps=[{"step_id": 1, **refers({"trajectory_id": "sister"})}])
    first = refers({"trajectory_id": "inner"}, {"trajectory_id": "sister"})
    assert warned(document(first, subagent_trajectories=[inner, child("sister")])) == []


def test_totals_with_or_without_children_are_both_taken():
    """Fault 41: producers differ in whether a parent's totals hold its children's."""
    step = agent(metrics={"prompt_tokens": 40})
    below = child(steps=[{"step_id": 1, **step}])
    own = refers({"trajectory_id": "k"}, metrics={"prompt_tokens": 100})
    for total, expected in ((100, 0), (140, 0), (139, 1)):
        value = document(
            own, subagent_trajectories=[below], final_metrics={"total_prompt_tokens": total}
        )
        assert len(warned(value)) == expected


def test_a_total_with_an_unknown_part_cannot_be_contradicted():
    steps = agent(metrics={"prompt_tokens": 5}), agent()
    assert warned(document(*steps, final_metrics={"total_prompt_tokens": 9})) == []


def test_notes_may_explain_another_number_of_steps():
    assert warned(document(notes="cut", final_metrics={"total_steps": 30})) == []


def nested(levels: int) -> dict:
    value = child("0")
    for level in range(1, levels + 1):
        value = child(str(level), subagent_trajectories=[value])
    return value


def test_children_lie_up_to_32_levels_deep():
    assert problems(nested(32)) == []
    assert len(problems(nested(33))) == 1


@pytest.mark.parametrize("levels", [33, 60, 150, 600])
def test_deeper_documents_are_refused_not_fatal(levels):
    data = b'{"schema_version":"ATIF-v1.7","agent":{"name":"","version":""},"trajectory_id":"k",'
    data += b'"steps":[{"step_id":1,"source":"user","message":""}]'
    whole = (data + b',"subagent_trajectories":[') * levels + data + b"}" + b"]}" * levels
    with pytest.raises(InvalidInputError, match="deep"):
        parse(whole)


@pytest.mark.parametrize("place", ["extra", "arguments", "definitions"])
def test_free_data_of_any_sane_depth_is_kept_and_deeper_is_refused(place):
    def holding(levels: int) -> bytes:
        value = {"a": 1}
        for _ in range(levels - 1):
            value = {"a": [value]} if levels % 2 else {"a": value}
        root = document()
        if place == "extra":
            root["extra"] = value
        elif place == "arguments":
            root["steps"].append({"step_id": 2, **agent(tool_calls=[{**CALL, "arguments": value}])})
        else:
            root["agent"]["tool_definitions"] = [value]
        return json.dumps(root).encode()

    assert parse(holding(40)).warnings == []
    for levels in (102, 201, 5000):
        with pytest.raises(InvalidInputError, match="deep"):
            parse(holding(levels) if levels < 900 else _deep(levels))


def _deep(levels: int) -> bytes:
    """What the standard library cannot write."""
    return (
        json.dumps(document(extra={"x": 0}))
        .encode()
        .replace(b'"x": 0', b'"x": ' + b"[" * levels + b"]" * levels)
    )


def test_lone_surrogates_are_counted_and_told():
    value = document(user(message="\ud800 \udc00"), extra={"\udfff": 1})
    parsed = parse(json.dumps(value).encode())
    assert parsed.replaced_characters == 3
    assert parsed.trajectory.steps[0].message == "\ufffd \ufffd"
    assert parsed.trajectory.extra == {"\ufffd": 1}
    assert any("3 lone surrogates" in warning for warning in parsed.warnings)


def test_what_is_no_json_is_refused_as_such():
    for data in (b"", b'{"schema_version":', b'{"a": NaN}', b"\xff"):
        with pytest.raises(InvalidInputError) as caught:
            parse(data)
        assert "problems" not in caught.value.details


def test_an_error_carries_no_more_problems_than_a_person_can_use():
    with pytest.raises(InvalidInputError, match="and 4999 more") as caught:
        parse(json.dumps(document(*[None] * 5000)).encode())
    assert len(caught.value.details["problems"]) == 100
    assert caught.value.details["problem_count"] == 5000
