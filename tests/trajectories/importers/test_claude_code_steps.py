"""What a step holds: tokens, text, calls and their results, media."""

import base64
import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stenograph.trajectories.atif.format import ContentPart, MediaSource, Metrics, ObservationResult
from stenograph.trajectories.importers.claude_code import read
from stenograph.trajectories.importers.draft import SessionDraft
from trajectories.importers.claude_code_lines import ROOT, SESSION, USAGE, Log, call, said, text

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def metrics(usage: Any, **fields: Any) -> Metrics | None:
    log = Log()
    log.user("Hello")
    log.answer("m1", text("Hi"), usage=usage, **fields)
    return log.read().steps[1].step.metrics


def only_result(draft: SessionDraft) -> ObservationResult:
    (step,) = [step for step in draft.steps if step.step.observation]
    assert step.step.observation is not None
    (result,) = step.step.observation.results
    return result


def result_of(content: Any, structured: Any = None, **others: bytes) -> ObservationResult:
    log = Log()
    log.user("Run")
    log.answer("m1", call("c1", command="cat file"))
    extra = {} if structured is None else {"toolUseResult": structured}
    log.result("c1", content, **extra)
    return only_result(log.read(**others))


def test_prompt_tokens_include_what_the_cache_held() -> None:
    """Fault 22."""
    found = metrics(USAGE)
    assert found is not None
    assert (found.prompt_tokens, found.cached_tokens, found.completion_tokens) == (115, 100, 7)
    assert found.extra == {"cache_creation_input_tokens": 5, "cache_write_tokens": 5}


@pytest.mark.parametrize("usage", [None, {}, {"input_tokens": None}, "oops", {"input_tokens": "1"}])
def test_unknown_tokens_are_absent(usage: Any) -> None:
    """Faults 22 and 45."""
    assert metrics(usage) is None


def test_zero_is_zero() -> None:
    """Faults 43 and 51."""
    zeros = {**USAGE, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
    found = metrics(zeros, costUSD=0)
    assert found is not None
    assert (found.prompt_tokens, found.cached_tokens, found.cost_usd) == (10, 0, 0.0)


def test_cache_counts_that_are_not_told_stay_unknown() -> None:
    found = metrics({"input_tokens": 20, "output_tokens": 25})
    assert found == Metrics(prompt_tokens=20, completion_tokens=25)


@pytest.mark.parametrize("count", [-1, 1.5, True, 2**63])
def test_a_count_that_is_none_is_unknown(count: Any) -> None:
    found = metrics({"input_tokens": count, "output_tokens": 25})
    assert found == Metrics(completion_tokens=25)


def test_usage_is_taken_once_from_the_line_with_most_output() -> None:
    log = Log()
    log.user("Hello")
    log.answer("m1", text("a"), usage={**USAGE, "output_tokens": 1})
    log.answer("m1", call("c1"), usage={**USAGE, "output_tokens": 42})
    log.result("c1")
    log.answer("m1", call("c2"), usage={**USAGE, "output_tokens": 42})
    log.result("c2")
    draft = log.read()
    (step,) = [step for step in draft.steps if step.part == "agent"]
    assert step.step.metrics is not None
    assert step.step.metrics.completion_tokens == 42
    assert [one.tool_call_id for one in step.step.tool_calls or []] == ["c1", "c2"]
    assert step.step.llm_call_count == 1


def test_lines_without_a_message_id_are_calls_of_their_own() -> None:
    log = Log()
    log.user("Hello")
    log.answer(None, text("one"))
    log.answer(None, text("two"))
    assert said(log.read()) == [("prompt", "Hello"), ("agent", "one"), ("agent", "two")]


def test_every_model_call_is_a_step() -> None:
    """Fault 19."""
    log = Log()
    log.user("Go")
    for n in range(23):
        log.answer(f"m{n}", call(f"c{n}"))
        log.result(f"c{n}")
    assert len(log.read().steps) == 24


def test_text_is_joined_where_something_stood_between() -> None:
    log = Log()
    log.user("Hello")
    log.answer("m1", text("See "), text("here"), call("c1"), text("Then this"))
    step = log.read().steps[1].step
    assert step.message == "See here\n\nThen this"
    assert step.extra is not None
    assert step.extra["claude_code"]["blocks"] == ["text", "text", "tool_use", "text"]


def test_thinking_without_text_is_kept_natively_and_is_no_reasoning() -> None:
    log = Log()
    log.user("Hello")
    log.answer("m1", {"type": "thinking", "thinking": "", "signature": "c2ln"}, text("Hi"))
    step = log.read().steps[1]
    assert step.step.reasoning_content is None
    assert step.reasoning_enabled is True
    assert json.loads(step.reasoning_trace or "")[0]["signature"] == "c2ln"
    assert "c2ln" not in json.dumps(step.step.extra)


def test_a_result_that_is_an_object_is_text_and_stays_an_object() -> None:
    """Fault 1."""
    result = result_of({"status": "closed", "n": 3})
    assert result.content == '{"n":3,"status":"closed"}'
    assert result.extra == {"tool_result": {"status": "closed", "n": 3}}


def test_a_result_without_text_survives() -> None:
    """Fault 2."""
    result = result_of(None, {"ok": True})
    assert (result.source_call_id, result.content) == ("c1", None)
    assert result.extra == {"claude_code": {"ok": True}}


def test_images_of_a_result_become_media() -> None:
    """Fault 27."""
    source = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(PIXEL).decode()}
    log = Log()
    log.user("Look")
    log.answer("m1", call("c1", "Read"))
    log.result("c1", [text("B"), {"type": "image", "source": source}])
    draft = log.read()
    path = f"media/{hashlib.sha256(PIXEL).hexdigest()[:32]}.png"
    assert only_result(draft).content == [
        ContentPart(type="text", text="B"),
        ContentPart(type="image", source=MediaSource(media_type="image/png", path=path)),
    ]
    assert [(m.path, m.media_type, m.data) for m in draft.media] == [(path, "image/png", PIXEL)]


@pytest.mark.parametrize(
    "source",
    [
        None,
        {"type": "base64", "media_type": "image/png", "data": "%%%"},
        {"type": "base64", "media_type": "image/tiff", "data": "AAAA"},
        {"type": "url", "url": "https://example.com/a.png"},
    ],
)
def test_an_image_that_cannot_be_taken_leaves_a_word(source: Any) -> None:
    content = result_of([{"type": "image", "source": source}]).content
    assert isinstance(content, str)
    assert content.startswith("[image ")


def test_only_the_call_that_failed_is_marked() -> None:
    """Fault 14: two calls of one tool."""
    log = Log()
    log.user("Both")
    log.answer("m1", call("c1", "f"), call("c2", "f"))
    log.result("c2", "Exit code 3\nno", is_error=True, toolUseResult="Error: Exit code 3\nno")
    log.result("c1", "ok")
    step = log.read().steps[1]
    assert step.failed_calls == {"c2"}
    assert step.step.observation is not None
    assert [result.extra for result in step.step.observation.results] == [
        None,
        {"is_error": True, "claude_code": {"exit_code": 3}},
    ]
    assert step.result_times == {
        "c1": "2026-03-02T10:00:04.000Z",
        "c2": "2026-03-02T10:00:03.000Z",
    }


def test_a_result_of_no_call_is_kept_beside() -> None:
    """Fault 8."""
    log = Log()
    log.user("Hello")
    log.result("gone", "x")
    draft = log.read()
    step = draft.steps[1]
    assert step.part == "system"
    assert only_result(draft).source_call_id is None
    assert only_result(draft).content == "x"
    assert (step.step.extra or {})["claude_code"]["tool_use_id"] == "gone"
    assert len(draft.warnings) == 1


def test_a_result_that_names_no_call_is_not_guessed() -> None:
    """Fault 6."""
    log = Log()
    log.user("Both")
    log.answer("m1", call("c1", "read", p="x"), call("c2", "read", p="x"))
    log.result("c1", "one")
    log.result(None, "two")
    draft = log.read()
    assert draft.steps[1].step.observation is not None
    assert [r.content for r in draft.steps[1].step.observation.results] == ["one"]
    assert draft.steps[2].part == "system"


def test_structured_results_are_kept_where_they_say_more() -> None:
    structured = {
        "stdout": "a line",
        "stderr": "",
        "interrupted": False,
        "durationMs": 12,
        "file": {"content": "1\ta line", "numLines": 1},
        "originalFile": "x" * 100,
        "structuredPatch": [{"lines": ["y" * 5000]}],
    }
    assert result_of("a line\n", structured).extra == {
        "claude_code": {"durationMs": 12, "file": {"numLines": 1}, "left_out": ["structuredPatch"]}
    }
    same = {"stdout": "a line", "stderr": "", "interrupted": False}
    assert result_of("a line\n", same).extra is None


PREVIEW = "<persisted-output>\nOutput too large (1MB). Full output saved to: /home/x/{}\n\nPreview"


def test_a_large_output_is_found_by_its_name() -> None:
    shown = PREVIEW.format("tool-results/b1.txt")
    others = {f"{SESSION}/tool-results/b1.txt": b"whole \xff\xe2\x80\xa8", "other/b1.txt": b"no"}
    log = Log()
    log.user("Run")
    log.answer("m1", call("c1"))
    log.result("c1", shown, toolUseResult={"stdout": "whole"})
    draft = log.read(**others)
    assert only_result(draft).content == shown
    assert only_result(draft).extra == {"claude_code": {"full_output": "whole \ufffd\u2028"}}
    assert draft.replaced_characters == 1


def test_without_the_file_the_longest_part_of_a_large_output_is_kept() -> None:
    stdout = "line\n" * 6000
    found = result_of(PREVIEW.format("tool-results/b1.txt"), {"stdout": stdout})
    assert found.extra == {"claude_code": {"stdout": stdout}}


def test_arguments_that_are_no_object_are_wrapped() -> None:
    log = Log()
    log.user("Run")
    log.answer("m1", {"type": "tool_use", "id": "c1", "name": "f", "input": "raw"})
    (made,) = log.read().steps[1].step.tool_calls or []
    assert made.arguments == {"input": "raw"}


@pytest.mark.parametrize("at", [None, 0, "yesterday", ""])
def test_a_line_without_a_time_stays_in_file_order(at: Any) -> None:
    """Fault 46."""
    log = Log()
    log.user("One")
    log.answer("m1", text("Two"), timestamp=at)
    log.user("Three")
    draft = log.read()
    assert [message for _, message in said(draft)] == ["One", "Two", "Three"]
    assert draft.steps[1].step.timestamp is None


def test_the_epoch_is_a_time() -> None:
    """Fault 40."""
    log = Log()
    log.user("One", timestamp="1970-01-01T00:00:00Z")
    draft = log.read()
    assert draft.steps[0].step.timestamp == draft.started_at == "1970-01-01T00:00:00Z"


def test_lone_surrogates_are_replaced_and_counted() -> None:
    log = Log()
    log.user("a\ud800b \U0001f642")
    draft = log.read()
    assert draft.steps[0].step.message == "a\ufffdb \U0001f642"
    assert draft.replaced_characters == 1


def test_bytes_that_are_no_utf8_are_replaced_and_counted() -> None:
    log = Log()
    log.user("a?b")
    draft = read({ROOT: log.bytes().replace(b"a?b", b"a\xffb")}, ROOT)
    assert (draft.steps[0].step.message, draft.replaced_characters) == ("a\ufffdb", 1)


def test_only_newlines_end_a_line() -> None:
    line = {"type": "user", "uuid": "u1", "message": {"role": "user", "content": "a\u2028b\x85c"}}
    data = json.dumps(line, ensure_ascii=False).encode()
    assert read({ROOT: data + b"\r\n\n"}, ROOT).steps[0].step.message == "a\u2028b\x85c"


def test_broken_lines_are_counted_and_passed_over() -> None:
    log = Log()
    log.user("One")
    log.user("Two")
    first, second = log.bytes().splitlines(keepends=True)
    broken = b'{"type": "user"\nnull\n"x"\n{"type": "user", "message": "error"}\n\xff\xfe\n'
    draft = read({ROOT: first + broken + second}, ROOT)
    assert [message for _, message in said(draft)] == ["One", "Two"]
    assert draft.kept_aside == {"unreadable": 5}
    assert draft.warnings == [f"{ROOT}: line 2 and 4 more could not be read"]


@given(st.permutations([0, 1, 2, 3]))
def test_the_order_of_results_does_not_matter(order: list[int]) -> None:
    log = Log()
    log.user("All")
    log.answer("m1", *(call(f"c{n}") for n in range(4)))
    for n in order:
        log.result(f"c{n}", f"result {n}")
    observation = log.read().steps[1].step.observation
    assert observation is not None
    assert [(r.source_call_id, r.content) for r in observation.results] == [
        (f"c{n}", f"result {n}") for n in range(4)
    ]
