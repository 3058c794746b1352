"""Model calls of a Codex log: which items are one call, its tokens, its tools and their results."""

import base64
import json
from typing import Any

import pytest

from stenograph.trajectories.atif.format import ContentPart, ObservationResult, ToolCall
from stenograph.trajectories.importers.draft import SessionDraft, StepDraft
from trajectories.importers.codex_lines import Log, tokens

PNG = b"\x89PNG\r\n\x1a\n" + bytes(8)


def agents(draft: SessionDraft) -> list[StepDraft]:
    return [step for step in draft.steps if step.part == "agent"]


def prompts(draft: SessionDraft) -> list[int | None]:
    return [s.step.metrics.prompt_tokens if s.step.metrics else None for s in agents(draft)]


def call_of(draft: SessionDraft) -> ToolCall:
    ((call,),) = [step.step.tool_calls for step in agents(draft) if step.step.tool_calls]
    return call


def result_of(draft: SessionDraft) -> ObservationResult:
    ((result,),) = [s.step.observation.results for s in draft.steps if s.step.observation]
    return result


def log_with(kind: str, output: Any, **call: Any) -> Log:
    log = Log()
    log.message("user", "Go")
    log.item(kind, call_id="c1", **call)
    log.item(f"{kind}_output", call_id="c1", output=output)
    return log


# Tokens


def test_zero_is_zero_and_unknown_is_absent() -> None:
    """Fault 43: cached 0 became null."""
    log = Log()
    log.message("user", "Hello")
    log.message("assistant", "Hi")
    log.count(tokens(10, 5, cached_input_tokens=0), tokens(10, 5, cached_input_tokens=0))
    (step,) = agents(log.read())
    metrics = step.step.metrics
    assert metrics is not None
    assert (metrics.prompt_tokens, metrics.cached_tokens, metrics.completion_tokens) == (10, 0, 5)
    assert metrics.extra is None
    assert (step.cache_write_tokens, step.reasoning_tokens) == (None, None)


def test_a_call_without_tokens_has_no_metrics() -> None:
    """Fault 22, as Codex has it: a second message without usage."""
    log = Log()
    log.message("user", "Hello")
    log.message("assistant", "Hi")
    assert prompts(log.read()) == [None]


def test_totals_that_go_on_after_a_resume_are_charged_once() -> None:
    """Fault 33: 1,000 before, 1,800 after; the second task took 800."""
    log = Log()
    for said, total in (("One", 1_000), ("Two", 1_800)):
        log.message("user", said)
        log.message("assistant", "Done")
        log.count(tokens(total, total // 10))
    assert prompts(log.read()) == [1_000, 800]
    assert [s.step.metrics.completion_tokens for s in agents(log.read()) if s.step.metrics] == [
        100,
        80,
    ]


def test_a_total_that_begins_anew_is_taken_whole() -> None:
    log = Log()
    for said, total in (("One", 1_000), ("Two", 300)):
        log.message("user", said)
        log.message("assistant", "Done")
        log.count(tokens(total, 1))
    assert prompts(log.read()) == [1_000, 300]


def test_a_count_that_is_shown_again_ends_no_call() -> None:
    log = Log()
    log.message("user", "Hello")
    log.message("assistant", "Hi")
    for _ in range(3):
        log.count(tokens(10, 5), tokens(10, 5))
    log.event("token_count", info=None, rate_limits={})
    log.count(tokens(10, 5), {"total_tokens": 900})  # an estimate, after a compaction
    log.message("user", "Again")
    log.message("assistant", "Hi again")
    log.count(tokens(30, 6), tokens(20, 1))
    log.count(None, tokens(20, 1))
    assert prompts(log.read()) == [10, 20]


def test_records_count_and_their_events_do_not() -> None:
    log = Log()
    log.message("user", "Hello")
    log.message("assistant", "Hi", id="msg_1")
    log.record("resp_1", tokens(10, 5))
    log.record("resp_1", tokens(10, 5))
    log.count(tokens(10, 5), tokens(10, 5))
    log.count(tokens(17, 5), tokens(7, 0))
    draft = log.read()
    assert prompts(draft) == [10]
    assert [step.key for step in agents(draft)] == ["resp_1"]


def test_a_call_that_left_nothing_in_the_log_was_paid_for_all_the_same() -> None:
    log = Log()
    log.message("user", "Hello")
    log.record("resp_1", tokens(10, 0))
    log.message("assistant", "Hi")
    log.record("resp_2", tokens(12, 3))
    draft = log.read()
    assert prompts(draft) == [10, 12]
    assert [step.step.message for step in agents(draft)] == ["", "Hi"]


@pytest.mark.parametrize("usage", [None, "x", [], {"input_tokens": "9"}, {"input_tokens": -1}])
def test_usage_of_a_wrong_type_is_unknown(usage: Any) -> None:
    log = Log()
    log.message("user", "Hello")
    log.message("assistant", "Hi")
    log.line("token_usage_record", response_id="resp_1", usage=usage)
    log.event("token_count", info={"total_token_usage": usage, "last_token_usage": usage})
    assert prompts(log.read()) == [None]


# Which items are one call


@pytest.mark.parametrize("counted_first", [True, False])
def test_older_logs_count_before_or_after_the_outputs(counted_first: bool) -> None:
    log = Log()
    log.message("user", "Go")
    for number in (1, 2):
        log.item("reasoning", summary=[{"type": "summary_text", "text": f"T{number}"}])
        log.call(f"c{number}a")
        log.call(f"c{number}b")
        total = tokens(100 * number, number)
        if counted_first:
            log.count(total, tokens(100, 1))
        log.output(f"c{number}b")
        log.output(f"c{number}a")
        if not counted_first:
            log.count(total, tokens(100, 1))
    log.message("assistant", "Done")
    log.count(tokens(300, 3), tokens(100, 1))
    draft = log.read()
    assert prompts(draft) == [100, 100, 100]
    assert [len(step.step.tool_calls or []) for step in agents(draft)] == [2, 2, 0]
    assert [step.step.reasoning_content for step in agents(draft)] == ["T1", "T2", None]


def test_without_any_count_an_output_ends_a_call() -> None:
    log = Log()
    log.message("user", "Go")
    log.message("assistant", "First")
    log.call("c1")
    log.output("c1")
    log.call("c2")
    log.output("c2")
    log.message("assistant", "Done")
    assert [step.step.message for step in agents(log.read())] == ["First", "", "Done"]


def test_what_events_repeat_is_counted_once() -> None:
    log = Log()
    log.message("user", "Hi")
    log.event("user_message", message="Hi")
    for number in (1, 2):
        log.event("agent_reasoning", text="Hm")
        log.event(
            "item_completed",
            item={"type": "Reasoning", "id": f"rs_{number}", "summary_text": ["Hm"]},
        )
        log.item("reasoning", summary=[{"type": "summary_text", "text": "Hm"}])
        log.event("agent_message", message="Same words")
        log.event(
            "item_completed",
            item={"type": "AgentMessage", "content": [{"type": "Text", "text": "Same words"}]},
        )
        log.message("assistant", "Same words")
        log.record(f"resp_{number}", tokens(1, 1))
    draft = log.read()
    assert [step.step.message for step in draft.steps] == ["Hi", "Same words", "Same words"]
    assert [step.step.reasoning_content for step in agents(draft)] == ["Hm", "Hm"]


def test_what_only_events_tell_is_not_lost() -> None:
    log = Log()
    log.event("user_message", message="Hi")
    log.event("agent_reasoning", text="Hm")
    log.event("agent_message", message="Hello")
    log.event("item_completed", item={"type": "UserMessage", "content": [{"text": "And now?"}]})
    log.event(
        "item_completed",
        item={"type": "AgentMessage", "id": "msg_9", "content": [{"type": "Text", "text": "So"}]},
    )
    draft = log.read()
    assert [step.step.message for step in draft.steps] == ["Hi", "Hello", "And now?", "So"]
    assert agents(draft)[0].step.reasoning_content == "Hm"
    assert agents(draft)[1].key == "msg_9"


def test_failed_attempts_are_a_fact_of_the_call_that_came_through() -> None:
    """Fault 4: they are no calls and no messages."""
    log = Log()
    log.message("user", "Go")
    log.event("stream_error", message="503")
    log.event("stream_error", message="500")
    log.message("assistant", "Done")
    draft = log.read()
    assert [step.part for step in draft.steps] == ["prompt", "agent"]
    assert (agents(draft)[0].step.extra or {})["codex"]["failed_attempts"] == 2


def test_model_and_effort_are_those_of_the_turn() -> None:
    log = Log()
    log.line("turn_context", model="gpt-a", effort="high", cwd="/a")
    log.message("user", "One")
    log.message("assistant", "1")
    settings = {"reasoning_effort": "low"}
    log.line("turn_context", model="gpt-b", collaboration_mode={"settings": settings}, cwd="/a")
    log.message("user", "Two")
    log.message("assistant", "2")
    steps = [step.step for step in agents(log.read())]
    assert [(s.model_name, s.reasoning_effort) for s in steps] == [
        ("gpt-a", "high"),
        ("gpt-b", "low"),
    ]
    assert ["cwd" in (s.extra or {})["codex"] for s in steps] == [True, False]


# Tools


def test_arguments_are_an_object_or_kept_as_they_came() -> None:
    made = {
        '{"a": 1}': ({"a": 1}, None),
        "": ({}, None),
        "[1, 2]": ({"input": "[1, 2]"}, "[1, 2]"),
        "{broken": ({"input": "{broken"}, "{broken"),
        '{"a": NaN}': ({"input": '{"a": NaN}'}, '{"a": NaN}'),
    }
    for raw, (arguments, kept) in made.items():
        call = call_of(log_with("function_call", "x", name="f", arguments=raw).read())
        assert call.arguments == arguments
        assert (call.extra or {}).get("codex", {}).get("raw_arguments") == kept


def test_free_text_and_actions_are_arguments_too() -> None:
    custom = call_of(log_with("custom_tool_call", "x", name="apply_patch", input='{"a": 1}').read())
    assert (custom.function_name, custom.arguments) == ("apply_patch", {"input": '{"a": 1}'})
    action = {"type": "exec", "command": ["ls"], "timeout_ms": 10}
    shell = call_of(log_with("local_shell_call", "x", action=action, status="completed").read())
    assert (shell.function_name, shell.arguments) == ("local_shell", action)


def test_a_search_on_the_web_is_answered_within_the_model() -> None:
    log = Log()
    log.message("user", "Search")
    action = {"type": "search", "query": "atif"}
    log.item("web_search_call", id="ws_1", status="completed", action=action)
    log.message("assistant", "Found it")
    (step,) = agents(log.read())
    assert [(c.tool_call_id, c.function_name, c.arguments) for c in step.step.tool_calls or []] == [
        ("ws_1", "web_search", action)
    ]
    assert result_of(log.read()).content is None
    assert step.failed_calls == frozenset()


def test_a_search_for_tools_brings_tools() -> None:
    log = Log()
    log.message("user", "Go")
    log.item("tool_search_call", call_id="c1", execution="client", arguments={"query": "cal"})
    log.item("tool_search_output", call_id="c1", status="completed", tools=[{"name": "calendar"}])
    assert call_of(log.read()).arguments == {"query": "cal"}
    assert result_of(log.read()).content == '[{"name":"calendar"}]'


@pytest.mark.parametrize(
    ("output", "content", "extra"),
    [
        ("plain", "plain", None),
        ({"content": "older", "success": True}, "older", None),
        ({"content": "no", "success": False}, "no", {"is_error": True}),
        ([{"type": "input_text", "text": "one"}], "one", None),
        ({"status": "closed", "n": 3}, '{"n":3,"status":"closed"}', None),
        ("Process exited with code 7\nOutput:\nx", None, {"exit_code": 7}),
        ("Exit code: -1\nWall time: 0 seconds\nOutput:\nx", None, {"exit_code": -1}),
        ("Output:\nProcess exited with code 9", None, None),
        ("I said Exit code: 9", None, None),
        ('{"output":"x","metadata":{"exit_code":2}}', None, {"exit_code": 2}),
    ],
)
def test_outputs_of_every_form(output: Any, content: str | None, extra: Any) -> None:
    result = result_of(log_with("function_call", output, name="f", arguments="{}").read())
    assert result.content == (output if content is None else content)
    assert result.extra == extra


def test_several_texts_and_images_stay_apart() -> None:
    """Fault 27: an image is an image, and comes back with the same bytes."""
    url = "data:image/png;base64," + base64.b64encode(PNG).decode()
    output = [
        {"type": "input_text", "text": "B"},
        {"type": "input_image", "image_url": url},
        {"type": "input_image", "image_url": "https://example.com/a.png"},
        {"type": "input_image", "image_url": "data:image/png;base64,***"},
    ]
    draft = log_with("function_call", output, name="view_image", arguments="{}").read()
    content = result_of(draft).content
    assert isinstance(content, list)
    assert content[0] == ContentPart(type="text", text="B")
    assert content[1].source is not None
    assert [part.text for part in content[2:]] == [
        "[image https://example.com/a.png]",
        "[image image/png]",
    ]
    ((path, data),) = [(media.path, media.data) for media in draft.media]
    assert (content[1].source.path, data) == (path, PNG)
    assert draft.warnings == ["An image could not be read; it is only in the original file"]


def test_a_call_without_a_result_is_kept() -> None:
    log = Log()
    log.message("user", "Go")
    log.call("c1")
    log.call("c2")
    log.output("c2")
    (step,) = agents(log.read())
    assert [call.tool_call_id for call in step.step.tool_calls or []] == ["c1", "c2"]
    assert result_of(log.read()).source_call_id == "c2"
    assert step.failed_calls == {"c1"}


def test_a_result_without_a_call_is_kept_as_a_step() -> None:
    """Fault 8: no call is invented, the id stays beside it."""
    log = Log()
    log.output("gone", "x")
    log.item("function_call_output", output="y")
    draft = log.read()
    assert [step.part for step in draft.steps] == ["system", "system"]
    results = [s.step.observation.results[0] for s in draft.steps if s.step.observation]
    assert [(r.source_call_id, r.content) for r in results] == [(None, "x"), (None, "y")]
    assert (draft.steps[0].step.extra or {})["codex"]["call_id"] == "gone"
    assert len(draft.warnings) == 2


def test_of_two_equal_calls_only_the_certain_one_is_answered() -> None:
    """Fault 6."""
    log = Log()
    log.message("user", "Go")
    log.call("c1", "read", '{"p":"x"}')
    log.call("c2", "read", '{"p":"x"}')
    log.output("c2", "known")
    log.item("function_call_output", output="whose?")
    draft = log.read()
    assert [
        (r.source_call_id, r.content)
        for s in draft.steps
        if s.step.observation
        for r in s.step.observation.results
    ] == [("c2", "known"), (None, "whose?")]


def test_one_failure_is_that_calls_alone() -> None:
    """Fault 14: two calls of one tool."""
    log = Log()
    log.message("user", "Go")
    log.call("c1", "f")
    log.call("c2", "f")
    log.output("c1", {"content": "ok", "success": True})
    log.output("c2", {"content": "bad", "success": False})
    (step,) = agents(log.read())
    assert step.failed_calls == {"c2"}


def test_steps_of_lines_that_are_passed_over_leave_no_hole() -> None:
    """Fault 44: a number is given when a step is written, so there is none to be left out."""
    log = Log()
    log.message("user", "Hi")
    log.item("ghost_snapshot", ghost_commit={})
    log.line("world_state", full=True)
    log.message("assistant", "Hello")
    draft = log.read()
    assert [step.step.step_id for step in draft.steps] == [0, 0]
    assert draft.kept_aside == {"ghost_snapshot": 1, "world_state": 1}


def test_an_older_log_tells_of_its_work_in_events() -> None:
    log = Log()
    log.message("user", "Go")
    log.call("c1")
    log.call("c2", "mcp__a__b")
    log.event("exec_command_end", call_id="c1", exit_code=3, cwd="/a", stdout="x" * 9_000)
    log.event("mcp_tool_call_end", call_id="c2", result={"Ok": {"isError": True}})
    log.output("c1", "raw text")
    log.output("c2", "bad")
    (step,) = agents(log.read())
    assert step.step.observation is not None
    assert [r.extra for r in step.step.observation.results] == [
        {"exit_code": 3, "codex": {"cwd": "/a"}},
        {"is_error": True},
    ]
    assert step.failed_calls == {"c1", "c2"}


def test_a_thread_that_was_started_is_referred_to_wherever_the_log_names_it() -> None:
    log = Log()
    log.message("user", "Go")
    log.call("c1", "spawn_agent")
    log.call("c2", "spawn_agent")
    log.call("c3", "wait_agent")
    log.output("c1", json.dumps({"agent_id": "thread-a", "nickname": "Hubble"}))
    for call_id, tool, thread in (
        ("c1", "spawn_agent", "thread-a"),
        ("c2", "spawn_agent", "thread-b"),
        ("c3", "wait", "thread-a"),
    ):
        item = {"type": "CollabAgentToolCall", "id": call_id, "tool": tool}
        log.event("item_completed", item=item | {"receiver_thread_ids": [thread]})
    log.output("c2", json.dumps({"task_name": "/root/b"}))
    log.output("c3", "{}")
    (step,) = agents(log.read())
    assert step.step.observation is not None
    refs = [r.subagent_trajectory_ref for r in step.step.observation.results]
    assert [[ref.trajectory_id for ref in some or []] for some in refs] == [
        ["thread-a"],
        ["thread-b"],
        [],
    ]


def work(item_id: str, command: str) -> dict[str, Any]:
    return {
        "type": "CommandExecution",
        "id": item_id,
        "command": ["/bin/bash", "-lc", command],
        "aggregated_output": f"{command} ran\n",
        "exit_code": 0,
        "status": "completed",
    }


def script(log: Log, call_id: str) -> None:
    log.item("custom_tool_call", call_id=call_id, name="exec", input="tools.exec_command()")


def parents(draft: SessionDraft) -> list[tuple[str, str | None]]:
    calls = [call for step in agents(draft) for call in step.step.tool_calls or []]
    return [(c.tool_call_id, (c.extra or {}).get("parent_tool_call_id")) for c in calls]


def test_work_after_a_script_gave_way_is_still_its_own() -> None:
    log = Log()
    log.message("user", "Go")
    script(log, "s1")
    log.record("resp_1", tokens(1, 1))
    log.item("custom_tool_call_output", call_id="s1", output="still running")
    log.call("w1", "wait")
    log.event("item_completed", item=work("exec-1", "ls"))
    log.output("w1", "done")
    assert parents(log.read()) == [("s1", None), ("exec-1", "s1"), ("w1", None)]


def test_work_of_two_scripts_at_once_is_given_to_neither() -> None:
    log = Log()
    log.message("user", "Go")
    script(log, "s1")
    script(log, "s2")
    log.event("item_completed", item=work("exec-1", "ls"))
    log.item("custom_tool_call_output", call_id="s1", output="x")
    log.event("item_completed", item=work("exec-2", "pwd"))
    item = {"type": "McpToolCall", "id": "exec-3", "tool": "look", "arguments": {"q": 1}}
    log.event("item_completed", item=item | {"result": {"content": []}, "status": "failed"})
    draft = log.read()
    assert parents(draft) == [
        ("s1", None),
        ("s2", None),
        ("exec-2", "s2"),
        ("exec-3", "s2"),
        ("exec-1", None),
    ]
    (step,) = agents(draft)
    assert step.step.tool_calls is not None
    looked = step.step.tool_calls[3]
    assert (looked.function_name, looked.arguments) == ("look", {"q": 1})
    assert step.failed_calls == {"s2", "exec-3"}


def test_a_command_that_no_model_asked_for_is_no_call() -> None:
    log = Log()
    log.message("user", "Go")
    log.event("item_completed", item=work("user-1", "ls"))
    log.message("assistant", "Done")
    draft = log.read()
    assert parents(draft) == []
    assert draft.kept_aside == {"CommandExecution": 1}
