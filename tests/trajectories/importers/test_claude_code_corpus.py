"""Genuine logs of Claude Code against what the model server saw (`../shared/corpus/claude`)."""

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from stenograph.trajectories.atif.format import ObservationResult
from stenograph.trajectories.importers.claude_code import looks_like, read, side_files
from stenograph.trajectories.importers.draft import SessionDraft, StepDraft

CORPUS = Path(__file__).parents[3].parent / "shared" / "corpus"
CASES = sorted(path.name for path in (CORPUS / "claude").glob("*"))

pytestmark = pytest.mark.skipif(not CASES, reason="the corpus of genuine logs is not here")


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def drafts_of(folder: Path) -> list[SessionDraft]:
    files = files_of(folder)
    return [
        read({name: files[name] for name in (root, *others)}, root)
        for root, others in side_files(files).items()
    ]


def session(case: str) -> SessionDraft:
    (draft,) = drafts_of(CORPUS / "claude" / case / "projects")
    return draft


def meta(case: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((CORPUS / "claude" / case / "meta.json").read_bytes())
    loaded["calls"] = [
        call if isinstance(call, dict) else from_row(*call) for call in loaded["calls"]
    ]
    return loaded


def from_row(
    lane: str, step: int, usage: object, text: str, thinking: str, tools: list[str], key: str
) -> dict[str, Any]:
    """The long case writes its calls as rows, with the ids of the tools alone."""
    return {
        "lane": lane,
        "aux": None,
        "text": text,
        "thinking": thinking,
        "tools": [{"id": tool} for tool in tools],
        "resp_id": key,
    }


def everyone(draft: SessionDraft) -> list[SessionDraft]:
    return [draft, *(below for child in draft.children for below in everyone(child))]


def responses(draft: SessionDraft) -> list[StepDraft]:
    return [step for step in draft.steps if step.part == "agent"]


def results(draft: SessionDraft) -> list[ObservationResult]:
    return [
        result
        for step in responses(draft)
        if step.step.observation
        for result in step.step.observation.results
    ]


def text_of(result: ObservationResult) -> str:
    if isinstance(result.content, str):
        return result.content
    return "\n".join(part.text or "" for part in result.content or [])


def lanes(case: str) -> dict[str, SessionDraft]:
    """The session and its subagents by the names the server gave them, found by message ids."""
    lane_of = {call["resp_id"]: call["lane"] for call in meta(case)["calls"]}
    return {lane_of[responses(draft)[0].key or ""]: draft for draft in everyone(session(case))}


@pytest.mark.parametrize("case", CASES)
def test_model_calls_are_those_the_server_answered(case: str) -> None:
    truth = meta(case)
    for lane, draft in lanes(case).items():
        answered = [c for c in truth["calls"] if c["lane"] == lane and c["aux"] is None]
        assert [step.key for step in responses(draft)] == [c["resp_id"] for c in answered]
        for step, call in zip(responses(draft), answered, strict=True):
            assert step.step.message == call["text"]
            thought = call["thinking"] or []
            thoughts = [thought] if isinstance(thought, str) else thought
            assert (step.step.reasoning_content or "") == "\n\n".join(thoughts)
            assert step.step.llm_call_count == 1
            made = step.step.tool_calls or []
            assert [one.tool_call_id for one in made] == [tool["id"] for tool in call["tools"]]
            for one, tool in zip(made, call["tools"], strict=True):
                assert one.function_name == tool.get("name", "Bash")
                # The program writes its defaults into the log (`replace_all`).
                assert one.arguments.items() >= tool.get("input", {}).items()
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
            written = metrics.extra["cache_creation_input_tokens"]
            assert step.cache_write_tokens == written == metrics.extra["cache_write_tokens"]
            assert metrics.prompt_tokens is not None
            assert metrics.cached_tokens is not None
            sums["input_total_incl_cache"] += metrics.prompt_tokens
            sums["input_uncached"] += metrics.prompt_tokens - metrics.cached_tokens - written
            sums["cache_read"] += metrics.cached_tokens
            sums["cache_creation"] += written
            sums["output"] += metrics.completion_tokens or 0
        assert sums == {name: truth[lane][name] for name in sums}


@pytest.mark.parametrize("case", CASES)
def test_results_are_what_the_model_was_sent(case: str) -> None:
    sent = meta(case)["tool_results"]
    for lane, draft in lanes(case).items():
        told = {entry["id"]: entry for entry in sent if entry.get("lane", "main") == lane}
        found = {result.source_call_id: result for result in results(draft)}
        assert found.keys() == told.keys()
        for call_id, entry in told.items():
            text = text_of(found[call_id])
            assert hashlib.sha256(text.encode()).hexdigest() == entry["sha256"]
            assert bool((found[call_id].extra or {}).get("is_error")) == entry.get(
                "is_error", False
            )


@pytest.mark.parametrize("case", CASES)
def test_every_result_lies_with_its_call_in_call_order(case: str) -> None:
    for draft in everyone(session(case)):
        for step in responses(draft):
            made = [call.tool_call_id for call in step.step.tool_calls or []]
            observation = step.step.observation
            answers = [r.source_call_id for r in observation.results] if observation else []
            assert answers == [call_id for call_id in made if call_id in answers]
            assert step.result_times.keys() == set(answers)


@pytest.mark.parametrize("case", CASES)
def test_the_counts_of_the_whole(case: str) -> None:
    truth, drafts = meta(case)["truth"], everyone(session(case))
    steps = [step for draft in drafts for step in responses(draft)]
    assert len(drafts) - 1 == truth["subagents"]
    assert sum(len(s.step.tool_calls or []) for s in steps) == truth["tool_calls"]
    flagged = [r for d in drafts for r in results(d) if (r.extra or {}).get("is_error")]
    assert len(flagged) == truth["tool_errors_flagged"]
    ordered = sorted((s for s in steps), key=lambda s: s.step.timestamp or "")
    thoughts = [s.step.reasoning_content for s in ordered if s.step.reasoning_content]
    found = [text for joined in thoughts for text in joined.split("\n\n")]
    if isinstance(truth["reasoning_texts"], list):
        assert found == truth["reasoning_texts"]
    else:
        digest = hashlib.sha256("\n".join(found).encode()).hexdigest()
        assert digest == truth["reasoning_texts"]["sha256_joined_by_newline"]
    last = responses(drafts[0])[-1]
    if truth["final_answer"] is not None:
        assert last.step.message == truth["final_answer"]


@pytest.mark.parametrize("case", CASES)
def test_turns_are_what_people_said(case: str) -> None:
    """A local command (`/compact`) is typed by a person too, but is no turn of the agent."""
    draft = session(case)
    prompts = [s.step.message for s in draft.steps if s.part == "prompt" and s.origin == "person"]
    assert prompts == [said for said in meta(case)["user_turns"] if not said.startswith("/")]
    assert not [step for step in draft.steps if step.part == "steer"]


@pytest.mark.parametrize("case", CASES)
def test_keys_are_unique_and_originals_are_complete(case: str) -> None:
    draft = session(case)
    kept: dict[str, bytes] = {}
    for one in everyone(draft):
        keys = [step.key for step in one.steps]
        assert None not in keys
        assert len(set(keys)) == len(keys)
        kept |= one.originals
    assert kept == files_of(CORPUS / "claude" / case / "projects")


@pytest.mark.parametrize("case", CASES)
def test_identity_is_kept_and_native_material_stays_apart(case: str) -> None:
    for draft in everyone(session(case)):
        assert draft.agent.name == "claude-code"
        assert draft.agent.version == "2.1.197"
        for step in draft.steps:
            own = (step.step.extra or {})["claude_code"]
            assert "signature" not in json.dumps(own)
            if step.part == "agent":
                assert own["uuids"]
                assert own["requestId"].startswith("req_")
                assert step.provider_id == "anthropic"
                assert bool(step.reasoning_trace) == bool(
                    {"thinking", "redacted_thinking"} & set(own["blocks"])
                )


def test_a_subagent_hangs_under_the_call_that_started_it() -> None:
    draft = session("d_subagent")
    refs = {
        result.source_call_id: result.subagent_trajectory_ref[0].trajectory_id
        for result in results(draft)
        if result.subagent_trajectory_ref
    }
    assert refs == {
        "toolu_8f4293cce5ad4298a9da7145": "af4abbf9f1eced4ed",
        "toolu_fb284fafe4554a988319406e": "aa341d36e0f0cf4bc",
        "toolu_cfb94424e65e4bbea42fcf75": "af06097f70608e8d6",
    }
    noted = [(result.extra or {})["claude_code"]["agentId"] for result in results(draft)]
    assert noted == list(refs.values())
    assert sorted(refs.values()) == sorted(c.trajectory_id or "" for c in draft.children)
    assert [child.title for child in draft.children] == ["count files", "job two", "job three"]
    assert {child.session_id for child in draft.children} == {draft.key}
    assert {s.origin for c in draft.children for s in c.steps if s.part == "prompt"} == {"agent"}
    assert not any(step.failed_calls for step in responses(draft))  # fault 17: the child's alone


def test_a_background_subagent_reports_and_nobody_spoke() -> None:
    draft = session("d2_subagent_bg")
    first, report = [step for step in draft.steps if step.part == "prompt"]
    assert (first.origin, report.origin) == ("person", "child")
    own = (report.step.extra or {})["claude_code"]
    assert own["tool_use_id"] == "toolu_e8dd48aa2f3f46e19b4c06b5"
    assert own["task_id"] == draft.children[0].key
    launched = results(draft)[0]
    assert text_of(launched).startswith("Async agent launched")
    assert launched.subagent_trajectory_ref is not None


def test_large_outputs_are_kept_whole_beside_what_the_model_saw() -> None:
    draft = session("f_longout")
    found = [(r.extra or {})["claude_code"] for r in results(draft)]
    wholes = sorted(
        data.decode() for name, data in draft.originals.items() if "tool-results" in name
    )
    assert sorted(facts["full_output"] for facts in found) == wholes
    assert len(found[0]["full_output"]) == 1_188_894
    assert all("stdout" not in facts for facts in found)  # its first 30,000 characters, again


def test_compaction_is_one_system_step_with_the_summary_as_its_content() -> None:
    draft = session("g_compact")
    (compaction,) = [s for s in draft.steps if "context_management" in (s.step.extra or {})]
    assert compaction.part == "system"
    extra = compaction.step.extra or {}
    assert extra["context_management"] == {"type": "compaction", "boundary": "replace"}
    assert extra["claude_code"]["preTokens"] == 1962
    observation = compaction.step.observation
    assert observation is not None
    (summary,) = observation.results
    assert summary.source_call_id is None
    assert "SUMMARY-MARKER-7f3a" in text_of(summary)
    assert draft.turn_ends == {}
    placeholder = next(s for s in draft.steps if s.step.message == "No response requested.")
    assert placeholder.part == "system"  # written by the program, asked of no model


def test_a_killed_session_ends_canceled_and_its_call_without_result() -> None:
    draft = session("l_killed")
    assert draft.turn_ends == {0: ("canceled", "log_ended")}
    assert responses(draft)[-1].failed_calls == {"toolu_a19162f1d95a4c1ba3d70f87"}
    assert responses(draft)[0].failed_calls == frozenset()


@pytest.mark.parametrize("case", [case for case in CASES if case != "l_killed"])
def test_other_sessions_were_completed(case: str) -> None:
    assert all(draft.turn_ends == {} for draft in everyone(session(case)))


def test_redacted_thinking_is_kept_natively_only() -> None:
    first, cut, _ = responses(session("n_redacted"))
    assert first.step.reasoning_content == "Thinking block A.\n\nThinking block B."
    assert json.loads(first.reasoning_trace or "")[2]["data"] == "ZmFrZS1yZWRhY3RlZA=="
    assert (cut.step.extra or {})["stop_reason"] == "max_tokens"
    assert cut.reasoning_trace is None
    assert cut.reasoning_enabled is None


def test_odd_characters_survive() -> None:
    draft = session("i_unicode")
    by_call = [text_of(result) for result in results(draft)]
    assert "10%\r50%\r100%" in by_call[0]
    assert "line\u2028sep" in by_call[0]
    assert "nul:\x00:end bad:\ufffd\ufffd:end ctl:\x01\x02\x08:end" in by_call[1]
    assert draft.replaced_characters == 0  # the program had replaced the bytes itself
    facts = (results(draft)[2].extra or {})["claude_code"]
    assert facts["full_output"] == "x" * 200_000 + "\n"


def test_what_is_no_step_is_counted() -> None:
    assert session("k_long").kept_aside == {
        "queue-operation": 2,
        "attachment": 42,
        "last-prompt": 22,
    }


PUBLIC = {
    "claude-code-log/edge_cases.jsonl": (4, 4),
    "claude-code-log/representative_messages.jsonl": (4, 5),
    "claude-code-log/session_b.jsonl": (2, 1),
    "claude-code-log/todowrite_examples.jsonl": (2, 6),
    "claude-code-transcripts/sample_session.json": (5, 15),
    "claude-code-transcripts/sample_session.jsonl": (2, 3),
}


@pytest.mark.parametrize("name", PUBLIC)
def test_public_samples_are_read(name: str) -> None:
    data = (CORPUS / "public" / name).read_bytes()
    assert looks_like(data[:4096])
    draft = read({name: data}, name)
    prompts = [step for step in draft.steps if step.part == "prompt"]
    assert (len(prompts), len(responses(draft))) == PUBLIC[name]


def test_only_logs_of_claude_code_look_like_them() -> None:
    for path in CORPUS.glob("claude/*/projects/**/*.jsonl"):
        assert looks_like(path.read_bytes()[:2048]), path
    for path in [*CORPUS.glob("codex/*/sessions/**/*.jsonl"), *CORPUS.glob("*/*/stdout")]:
        assert not looks_like(path.read_bytes()[:65536]), path
    for path in CORPUS.glob("*/*/meta.json"):
        assert not looks_like(path.read_bytes()), path
