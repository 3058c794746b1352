"""Genuine logs of Codex against what the model server saw (`../shared/corpus/codex`)."""

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from stenograph.trajectories.atif.format import ObservationResult, ToolCall
from stenograph.trajectories.importers.codex import identity, looks_like, read
from stenograph.trajectories.importers.draft import SessionDraft, StepDraft

CORPUS = Path(__file__).parents[3].parent / "shared" / "corpus"
CASES = sorted(path.name for path in (CORPUS / "codex").glob("*"))

pytestmark = pytest.mark.skipif(not CASES, reason="the corpus of genuine logs is not here")


def logs(case: str) -> list[Path]:
    return sorted((CORPUS / "codex" / case / "sessions").rglob("*.jsonl"))


def meta(case: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((CORPUS / "codex" / case / "meta.json").read_bytes())
    loaded["calls"] = [
        call if isinstance(call, dict) else from_row(*call) for call in loaded["calls"]
    ]
    return loaded


def from_row(
    lane: str, step: int, usage: object, text: str, thinking: str, tools: list[str], key: str
) -> dict[str, Any]:
    """The long case writes its calls as rows, with the ids of the tools alone."""
    made = [{"id": tool} for tool in tools]
    return {"lane": lane, "text": text, "thinking": thinking, "tools": made, "resp_id": key}


def responses(draft: SessionDraft) -> list[StepDraft]:
    return [step for step in draft.steps if step.part == "agent"]


def asked(step: StepDraft) -> list[ToolCall]:
    """The calls that the model itself made, without those of its scripts."""
    every = step.step.tool_calls or []
    return [call for call in every if "parent_tool_call_id" not in (call.extra or {})]


def results(step: StepDraft) -> dict[str | None, ObservationResult]:
    observation = step.step.observation
    return {r.source_call_id: r for r in observation.results} if observation else {}


def text_of(result: ObservationResult) -> str:
    if isinstance(result.content, str):
        return result.content
    return "\n".join(part.text or "" for part in result.content or [])


def lanes(case: str) -> dict[str, SessionDraft]:
    """The threads by the names the server gave them, found by the ids of its responses."""
    lane_of = {call["resp_id"]: call["lane"] for call in meta(case)["calls"]}
    drafts = [read(path.read_bytes(), path.name) for path in logs(case)]
    return {lane_of[responses(draft)[0].key or ""]: draft for draft in drafts}


@pytest.mark.parametrize("case", CASES)
def test_model_calls_are_those_the_server_answered(case: str) -> None:
    truth = meta(case)
    for lane, draft in lanes(case).items():
        answered = [call for call in truth["calls"] if call["lane"] == lane]
        assert [step.key for step in responses(draft)] == [call["resp_id"] for call in answered]
        for step, call in zip(responses(draft), answered, strict=True):
            assert step.step.message == call["text"]
            thought = call["thinking"] or []
            thoughts = [thought] if isinstance(thought, str) else thought
            assert (step.step.reasoning_content or "") == "\n\n".join(thoughts)
            assert bool(step.reasoning_trace) == bool(thoughts)
            assert step.step.llm_call_count == 1
            assert step.step.model_name in truth["model"]
            assert step.provider_id == "loop"
            assert [one.tool_call_id for one in asked(step)] == [t["id"] for t in call["tools"]]
            for one, tool in zip(asked(step), call["tools"], strict=True):
                if "name" in tool:
                    assert one.function_name == tool["name"]
                    given = tool["input"]
                    whole = {"input": given} if isinstance(given, str) else given
                    assert one.arguments == whole
    counts = {lane: len(responses(draft)) for lane, draft in lanes(case).items()}
    assert counts == truth["truth"]["model_calls_by_lane"]


@pytest.mark.parametrize("case", CASES)
def test_tokens_add_up_by_lane(case: str) -> None:
    truth = meta(case)["truth"]["tokens_by_lane"]
    assert truth.keys() == lanes(case).keys()
    for lane, draft in lanes(case).items():
        sums: Counter[str] = Counter()
        for step in responses(draft):
            metrics = step.step.metrics
            assert metrics is not None
            assert metrics.extra is not None
            assert metrics.prompt_tokens is not None
            assert metrics.cached_tokens is not None
            assert step.cache_write_tokens == metrics.extra["cache_write_tokens"]
            assert step.reasoning_tokens == metrics.extra["reasoning_tokens"]
            sums["calls"] += 1
            sums["input_total_incl_cache"] += metrics.prompt_tokens
            sums["input_uncached"] += metrics.prompt_tokens - metrics.cached_tokens
            sums["cache_read"] += metrics.cached_tokens
            sums["cache_creation"] += step.cache_write_tokens or 0
            sums["output"] += metrics.completion_tokens or 0
            sums["reasoning_in_output"] += step.reasoning_tokens or 0
        assert sums == truth[lane]


@pytest.mark.parametrize("case", CASES)
def test_results_are_what_the_model_was_sent(case: str) -> None:
    sent = {entry["id"]: entry for entry in meta(case)["tool_results"]}
    seen: set[str | None] = set()
    for draft in lanes(case).values():
        for step in responses(draft):
            for call in asked(step):
                if (found := results(step).get(call.tool_call_id)) is None:
                    continue
                seen.add(call.tool_call_id)
                entry = sent[call.tool_call_id]
                digest = hashlib.sha256(text_of(found).encode()).hexdigest()
                assert digest == entry["sha256"]
                assert "is_error" not in (found.extra or {})
    assert seen == sent.keys()


@pytest.mark.parametrize("case", CASES)
def test_every_result_lies_with_its_call_in_call_order(case: str) -> None:
    for draft in lanes(case).values():
        for step in responses(draft):
            made = [call.tool_call_id for call in step.step.tool_calls or []]
            assert list(results(step)) == [call_id for call_id in made if call_id in results(step)]
            assert step.result_times.keys() == results(step).keys()


@pytest.mark.parametrize("case", CASES)
def test_the_counts_of_the_whole(case: str) -> None:
    truth, by_lane = meta(case)["truth"], lanes(case)
    steps = [step for draft in by_lane.values() for step in responses(draft)]
    assert len(by_lane) - 1 == truth["subagents"]
    assert sum(len(asked(step)) for step in steps) == truth["tool_calls"]
    ordered = sorted(steps, key=lambda step: step.step.timestamp or "")
    thoughts = [s.step.reasoning_content for s in ordered if s.step.reasoning_content]
    found = [text for joined in thoughts for text in joined.split("\n\n")]
    if isinstance(truth["reasoning_texts"], list):
        assert found == truth["reasoning_texts"]
    else:
        digest = hashlib.sha256("\n".join(found).encode()).hexdigest()
        assert digest == truth["reasoning_texts"]["sha256_joined_by_newline"]
    if truth["final_answer"] is not None:
        assert responses(by_lane["main"])[-1].step.message == truth["final_answer"]


@pytest.mark.parametrize("case", CASES)
def test_turns_are_what_people_said(case: str) -> None:
    draft = lanes(case)["main"]
    said = [s.step.message for s in draft.steps if s.step.source == "user" and s.origin == "person"]
    assert said == meta(case)["user_turns"]
    killed = {len(said) - 1: ("canceled", "log_ended")} if case == "l_killed" else {}
    assert draft.turn_ends == killed


@pytest.mark.parametrize("case", CASES)
def test_a_draft_says_whose_it_is_and_keeps_the_bytes(case: str) -> None:
    for path in logs(case):
        data = path.read_bytes()
        draft = read(data, path.name)
        assert looks_like(data[:300])
        assert identity(data) == (draft.key, draft.parent_key)
        assert draft.key in path.name
        assert draft.trajectory_id == draft.key
        assert draft.originals == {path.name: data}
        assert (draft.agent.name, draft.agent.version) == ("codex", "0.171.0")
        assert draft.warnings == []
        keys = [step.key for step in draft.steps]
        assert None not in keys
        assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("case", CASES)
def test_the_system_prompt_is_first_and_context_is_no_message(case: str) -> None:
    for draft in lanes(case).values():
        first, context, third, *others = draft.steps
        assert (first.part, context.part, third.part) == ("system", "system", "prompt")
        assert str(first.step.message).startswith("You are ")
        texts = [part.text or "" for part in context.step.message if not isinstance(part, str)]
        assert any(text.startswith("<permissions instructions>") for text in texts)
        assert texts[-1].startswith("<environment_context>")
        items = (context.step.extra or {})["codex"]["items"]
        assert sum(item["parts"] for item in items) == len(texts)
        assert not any(step.part == "system" for step in others)


@pytest.mark.parametrize("case", CASES)
def test_encrypted_reasoning_is_in_the_trace_alone(case: str) -> None:
    for draft in lanes(case).values():
        for step in draft.steps:
            assert "encrypted_content" not in json.dumps(step.step.extra)
            assert "encrypted_content" in (step.reasoning_trace or "encrypted_content")


def test_exit_codes_and_failures_are_facts_beside_the_content() -> None:
    steps = responses(lanes("c_parallel")["main"])
    codes = [[(r.extra or {})["exit_code"] for r in results(step).values()] for step in steps]
    assert codes == [[0, 0], [0, 1, 0], []]
    failing = asked(steps[1])[1].tool_call_id
    assert [step.failed_calls for step in steps] == [set(), {failing}, set()]
    own = (results(steps[1])[failing].extra or {})["codex"]
    assert own["status"] == "failed"
    assert own["cwd"] == "file:///home/d1/repo/codex/c_parallel"
    assert "aggregated_output" not in own


def test_calls_of_a_script_stand_under_it() -> None:
    """The server saw two calls; the log shows the three that their scripts made."""
    first, second, _ = responses(lanes("d2_codemode")["main"])
    script = asked(second)[0].tool_call_id
    made = [call for call in second.step.tool_calls or [] if call not in asked(second)]
    assert [call.arguments for call in made] == [{"cmd": "echo p1"}, {"cmd": "echo p2; exit 4"}]
    assert {call.function_name for call in made} == {"exec_command"}
    assert [call.extra for call in made] == [{"parent_tool_call_id": script}] * 2
    found = [results(second)[call.tool_call_id] for call in made]
    assert [result.content for result in found] == ["p1\n", "p2\n"]
    assert [(result.extra or {})["exit_code"] for result in found] == [0, 4]
    assert second.failed_calls == {made[1].tool_call_id}
    assert len(first.step.tool_calls or []) == 2


def test_tools_that_the_log_defines_are_the_agents() -> None:
    tools = lanes("d2_codemode")["main"].agent.tool_definitions or []
    functions = [tool["function"]["name"] for tool in tools if tool["type"] == "function"]
    assert {"wait", "spawn_agent", "sleep"} <= set(functions)
    assert [tool["name"] for tool in tools if tool["type"] == "custom"] == ["exec"]


def test_a_subagent_is_named_by_the_call_that_started_it() -> None:
    by_lane = lanes("d_subagent")
    main, child = by_lane["main"], by_lane["sub1"]
    assert (child.parent_key, child.session_id) == (main.key, main.key)
    assert (main.parent_key, child.title) == (None, "Hubble")
    refs = [
        (step.key, [ref.trajectory_id for ref in result.subagent_trajectory_ref])
        for step in responses(main)
        for result in results(step).values()
        if result.subagent_trajectory_ref
    ]
    assert refs == [(responses(main)[0].key, [child.key])]
    assert [s.origin for s in child.steps if s.part == "prompt"] == ["agent"]
    (report,) = [step for step in main.steps if step.part == "steer"]
    assert report.origin == "child"
    assert "zero files" in str(report.step.message)


def test_public_logs_of_other_versions() -> None:
    folder = CORPUS / "public" / "claude-code-log"
    old = read((folder / "codex-rollout-11111111.jsonl").read_bytes(), "rollout.jsonl")
    assert [step.part for step in old.steps] == ["prompt"] + ["agent"] * 4
    assert old.steps[0].step.message == "List the synthetic files."
    assert old.steps[-1].step.message == "The synthetic files are alpha.txt and beta.txt."
    assert old.steps[1].step.reasoning_content == "I will inspect the synthetic directory."
    made = [
        (c.function_name, results(s)[c.tool_call_id].content) for s in old.steps for c in asked(s)
    ]
    assert made == [
        ("exec_command", "./alpha.txt\n./beta.txt"),
        ("apply_patch", "Done!"),
        ("mcp__synthetic__lookup", '{"status":"ok"}'),
    ]
    assert all(step.step.metrics is None for step in old.steps)
    assert (old.turn_ends, old.kept_aside) == ({}, {"future_synthetic_record": 1})

    broken = read((folder / "codex-malformed-rollout-66666666.jsonl").read_bytes(), "r.jsonl")
    assert [step.step.message for step in broken.steps] == ["Safe line before malformed input."]
    assert broken.turn_ends == {0: ("canceled", "log_ended")}
    assert broken.kept_aside == {"unreadable": 1}
    assert broken.warnings == ["r.jsonl: line 3 could not be read"]
