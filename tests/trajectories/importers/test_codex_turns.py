"""Turns of a Codex log: who spoke, how it ended, what was rewound, compacted or copied."""

import json
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stenograph.errors import InvalidInputError
from stenograph.trajectories.atif.format import Step
from stenograph.trajectories.importers.codex import identity, looks_like, read
from stenograph.trajectories.importers.draft import SessionDraft
from trajectories.importers.codex_lines import AFTER, BEFORE, OTHER, THREAD, Log, tokens


def shape(draft: SessionDraft) -> list[tuple[str, str]]:
    return [(step.part, str(step.step.message)) for step in draft.steps]


def task(log: Log, prompt: str, answer: str | None, turn_id: str = AFTER) -> None:
    log.event("task_started", turn_id=turn_id)
    log.line("turn_context", turn_id=turn_id, model="gpt-a")
    log.message("user", prompt)
    if answer is not None:
        log.message("assistant", answer)
        log.event("task_complete", turn_id=turn_id)


# Who speaks


@pytest.mark.parametrize(
    "text",
    [
        "<environment_context>\n<cwd>/a</cwd>\n</environment_context>",
        "# AGENTS.md instructions for /a\n\n<INSTRUCTIONS>\nBe kind\n</INSTRUCTIONS>",
        "<user_instructions>\nBe kind\n</user_instructions>",
    ],
)
def test_what_the_program_says_for_the_user_is_no_message(text: str) -> None:
    log = Log()
    log.message("developer", "Be brief", "Be right")
    log.message("user", text, id="msg_2")
    log.message("user", "Hi")
    log.message("assistant", "Hello")
    draft = log.read()
    assert [step.part for step in draft.steps] == ["system", "prompt", "agent"]
    first = draft.steps[0].step
    assert not isinstance(first.message, str)
    assert [part.text for part in first.message] == ["Be brief", "Be right", text]
    assert (first.extra or {})["codex"]["items"] == [
        {"role": "developer", "parts": 2},
        {"role": "user", "parts": 1, "id": "msg_2"},
    ]


def test_what_the_log_says_of_a_message_counts_before_its_text() -> None:
    log = Log()
    about = "internal_chat_message_metadata_passthrough"
    typed = {"content_item_metadata": [{"provenance": {"type": "user"}}]}
    put_in = {"content_item_metadata": [{"provenance": {"type": "harness"}}]}
    log.message("user", "<environment_context> is what I want to ask about", **{about: typed})
    log.message("assistant", "It is …")
    log.message("user", "Looks like a person", **{about: put_in})
    assert [part for part, _ in shape(log.read())] == ["prompt", "agent", "system"]


def test_a_message_into_a_running_task_is_a_steer() -> None:
    log = Log()
    log.event("task_started")
    log.message("user", "Go")
    log.call("c1")
    log.output("c1")
    log.message("user", "Faster")
    log.message("assistant", "Done")
    log.event("task_complete")
    task(log, "Next", "Fine")
    draft = log.read()
    assert shape(draft) == [
        ("prompt", "Go"),
        ("agent", ""),
        ("steer", "Faster"),
        ("agent", "Done"),
        ("prompt", "Next"),
        ("agent", "Fine"),
    ]
    assert {step.origin for step in draft.steps} == {"person"}


def test_a_report_of_a_subagent_is_no_turn() -> None:
    report = '<subagent_notification>\n{"agent_path":"a"}\n</subagent_notification>'
    log = Log()
    log.event("task_started")
    log.message("user", "Go")
    log.message("user", report)
    log.message("assistant", "Done")
    log.event("task_complete")
    log.message("user", report)
    draft = log.read()
    assert [(s.part, s.origin) for s in draft.steps] == [
        ("prompt", "person"),
        ("steer", "child"),
        ("agent", "person"),
        ("system", "person"),
    ]


def test_agents_write_to_each_other() -> None:
    """Multi-agent v2: a task comes as a message from above, a report as one from below."""
    log = Log(parent_thread_id=OTHER)
    log.event("task_started")
    log.line(
        "inter_agent_communication", author="/root", recipient="/root/a", content="Count the files"
    )
    log.call("c1")
    log.output("c1")
    log.item("agent_message", author="/root/a/b", recipient="/root/a", content="Two")
    log.message("assistant", "Two")
    log.event("task_complete")
    draft = log.read()
    assert [(s.part, s.origin) for s in draft.steps if s.step.source == "user"] == [
        ("prompt", "agent"),
        ("steer", "child"),
    ]
    assert draft.parent_key == OTHER


# How turns end


def test_a_turn_that_was_interrupted() -> None:
    log = Log()
    log.event("task_started")
    log.message("user", "Go")
    log.call("c1")
    log.event("turn_aborted", reason="interrupted")
    log.message("user", "<turn_aborted>\nThe user interrupted\n</turn_aborted>")
    task(log, "Again", "Done")
    draft = log.read()
    assert draft.turn_ends == {0: ("canceled", "interrupted")}
    assert [part for part, _ in shape(draft)] == ["prompt", "agent", "system", "prompt", "agent"]


def test_a_turn_that_failed_and_one_that_went_on() -> None:
    log = Log()
    log.event("task_started")
    log.message("user", "Go")
    log.event("error", message="usage limit", codex_error_info="usage_limit_exceeded")
    log.event("task_complete")
    log.event("task_started")
    log.message("user", "Go")
    log.event("error", message="busy")
    log.message("assistant", "Here I am")
    log.event("task_complete")
    draft = log.read()
    assert draft.turn_ends == {0: ("failed", "usage limit")}
    assert draft.steps[1].part == "system"
    own = (draft.steps[1].step.extra or {})["codex"]
    assert own == {"kind": "error", "codex_error_info": "usage_limit_exceeded"}


def test_a_program_that_was_killed_and_started_again() -> None:
    log = Log()
    task(log, "Go", None)
    log.call("c1")
    task(log, "Go on", "Done")
    task(log, "More", None)
    log.message("user", "Hello?")
    task(log, "Once more", None)
    ended = ("canceled", "log_ended")
    assert log.read().turn_ends == {0: ended, 2: ended, 3: ended}


def test_an_answer_is_one_before_the_program_says_so() -> None:
    """Else a log that is read a moment too early would have its turn canceled for good."""
    log = Log()
    task(log, "Go", None)
    log.message("assistant", "Done")
    assert log.read().turn_ends == {}
    log.message("user", "Wait")
    assert log.read().turn_ends == {0: ("canceled", "log_ended")}


def test_a_log_without_tasks_that_breaks_off() -> None:
    log = Log()
    log.message("user", "Go")
    log.message("assistant", "Done")
    log.message("user", "Go on")
    log.call("c1")
    log.message("user", "Hello?")
    log.message("assistant", "Yes")
    log.message("user", "And?")
    ended = ("canceled", "log_ended")
    assert log.read().turn_ends == {1: ended, 3: ended}


def test_a_task_without_a_prompt_ends_no_turn_of_another() -> None:
    log = Log()
    task(log, "Go", "Done")
    log.event("task_started")
    log.line("compacted", message="Sum")
    log.event("turn_aborted", reason="interrupted")
    assert log.read().turn_ends == {}


# Rewinds, compactions, forks


def test_turns_that_were_taken_back_are_a_branch_that_was_left() -> None:
    log = Log()
    task(log, "One", "1")
    task(log, "Two", "2")
    task(log, "Three", None)
    log.event("turn_aborted", reason="interrupted")
    log.event("thread_rolled_back", num_turns=2)
    task(log, "Two, better", "2!")
    draft = log.read()
    assert [text for _, text in shape(draft)] == ["One", "1", "Two, better", "2!"]
    assert draft.turn_ends == {}
    (branch,) = draft.abandoned
    assert branch.turn == 1
    assert [s.step.message for s in branch.steps] == ["Two", "2", "Three"]


@pytest.mark.parametrize("count", [0, -1, 99, "2", None])
def test_a_rewind_further_than_the_start_takes_what_is_there(count: Any) -> None:
    log = Log()
    task(log, "One", "1")
    log.event("thread_rolled_back", num_turns=count)
    draft = log.read()
    assert len(draft.steps) == (0 if count == 99 else 2)
    assert len(draft.abandoned) == (1 if count == 99 else 0)


@pytest.mark.parametrize(
    ("payload", "content"),
    [
        ({"message": "What we did"}, "What we did"),
        ({"message": "What we did", "replacement_history": [{}]}, "What we did"),
        (
            {
                "message": "",
                "replacement_history": [
                    {"type": "message", "content": [{"type": "input_text", "text": "Go"}]},
                    {"type": "compaction", "encrypted_content": "gAAA"},
                ],
            },
            "Go",
        ),
    ],
)
def test_a_compaction_is_one_step_with_what_is_left(payload: Any, content: str) -> None:
    log = Log()
    task(log, "Go", "Done")
    log.line("compacted", **payload)
    log.event("context_compacted")
    task(log, "On", "Fine")
    draft = log.read()
    step = draft.steps[2].step
    assert (draft.steps[2].part, step.source) == ("system", "system")
    assert (step.extra or {})["context_management"] == {
        "type": "compaction",
        "boundary": "replace",
    }
    assert step.observation is not None
    assert [result.content for result in step.observation.results] == [content]
    assert "gAAA" not in repr(draft.steps)
    assert draft.kept_aside == {"context_compacted": 1}


def forked(turn_id: str | None, **started: Any) -> Log:
    log = Log(forked_from_id=OTHER)
    log.meta(id=OTHER, cli_version="0.1")
    begun = {} if turn_id is None else {"turn_id": turn_id}
    log.event("task_started", **begun, **started)
    log.line("turn_context", model="gpt-a", **begun)
    log.message("user", "Before")
    log.message("assistant", "Old")
    log.count(tokens(1_000, 10), tokens(1_000, 10))
    log.event("task_complete", **begun)
    return log


def test_what_a_fork_brought_along_is_copied_and_not_charged() -> None:
    """Faults 11 and 33: the copies are context, and the total goes on from theirs."""
    log = forked(BEFORE)
    task(log, "Now", None, AFTER)
    log.message("assistant", "New")
    log.count(tokens(1_800, 30))
    log.event("task_complete", turn_id=AFTER)
    draft = log.read()
    assert [s.step.is_copied_context for s in draft.steps] == [True, True, None, None]
    metrics = [s.step.metrics for s in draft.steps if s.part == "agent"]
    assert metrics[0] is None
    assert metrics[1] is not None
    assert (metrics[1].prompt_tokens, metrics[1].completion_tokens) == (800, 20)
    assert (draft.key, draft.agent.version) == (THREAD, "0.171.0")
    assert draft.document == {"extra": {"codex": {"forked_from_id": OTHER}}}
    assert draft.warnings == []


def test_a_fork_without_a_turn_of_its_own_is_all_copied() -> None:
    draft = forked(BEFORE).read()
    assert [s.step.is_copied_context for s in draft.steps] == [True, True]


def test_a_fork_in_the_middle_of_a_turn() -> None:
    log = Log(forked_from_id=OTHER)
    task(log, "Do both", None, BEFORE)
    log.call("c1", "spawn_agent")
    task(log, "Your half", "Done", AFTER)
    draft = log.read()
    assert [s.step.is_copied_context for s in draft.steps] == [True, True, None, None]
    assert draft.turn_ends == {0: ("canceled", "forked")}


def test_an_older_fork_is_told_by_when_its_tasks_were_started() -> None:
    made = 1_772_445_600  # 2026-03-02T10:00:00Z
    log = forked(None, started_at=made - 60)
    log.event("task_started", started_at=made + 5)
    log.message("user", "Now")
    log.message("assistant", "New")
    assert [s.step.is_copied_context for s in log.read().steps] == [True, True, None, None]


def test_where_nothing_tells_a_copy_it_is_a_guess_and_said() -> None:
    log = Log(forked_from_id=OTHER)
    log.message("user", "Before")
    log.lines[-1]["timestamp"] = "2026-03-02T10:00:00.040Z"
    log.message("user", "Now")
    log.message("assistant", "New")
    draft = log.read()
    assert [s.step.is_copied_context for s in draft.steps] == [True, None, None]
    assert len(draft.warnings) == 1


# Identity, other forms, damage


def test_a_log_is_recognised_by_its_content() -> None:
    whole = Log(base_instructions={"text": "x" * 500}).bytes()
    assert looks_like(whole)
    assert looks_like(whole[:200])
    assert looks_like(b"\xef\xbb\xbf" + whole)
    assert looks_like(b'{"type":"event_msg","payload":{"type":"user_message"}}')
    assert not looks_like(b'{"type":"thread.started","thread_id":"x"}')
    assert not looks_like(json.dumps({"type": "user", "message": whole.decode()}).encode())
    assert not looks_like(b'{"schema_version":"ATIF-v1.7","steps":[]}')
    assert not looks_like(b"")


def test_whose_log_it_is() -> None:
    assert identity(Log(parent_thread_id=OTHER).bytes()) == (THREAD, OTHER)
    source = {"subagent": {"thread_spawn": {"parent_thread_id": OTHER, "agent_nickname": "Ada"}}}
    older = Log(source=source)
    older.message("user", "Go")
    assert identity(older.bytes()) == (THREAD, OTHER)
    assert (older.read().parent_key, older.read().title) == (OTHER, "Ada")
    assert identity(b'{"type":"event_msg","payload":{}}') == (None, None)


def test_a_log_without_its_first_line_is_known_by_its_name() -> None:
    log = Log()
    log.message("user", "Hi")
    rest = log.bytes().partition(b"\n")[2]
    name = f"rollout-2026-03-02T10-00-00-{OTHER}.jsonl"
    assert read(rest, name).key == OTHER
    grown = rest + rest
    assert read(rest, "x.jsonl").key == read(grown, "x.jsonl").key


def test_the_oldest_logs_have_no_envelope() -> None:
    lines: list[dict[str, Any]] = [
        {"id": OTHER, "timestamp": "2025-05-01T10:00:00.000Z", "instructions": "Be brief"},
        {"record_type": "state"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Go"}]},
        {
            "type": "function_call",
            "name": "shell",
            "arguments": '{"command":["ls"]}',
            "call_id": "c",
        },
        {"type": "function_call_output", "call_id": "c", "output": '{"output":"x"}'},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "x"}]},
    ]
    data = b"\n".join(json.dumps(line).encode() for line in lines)
    draft = read(data, "rollout.jsonl")
    assert looks_like(data)
    assert (draft.key, draft.started_at) == (OTHER, "2025-05-01T10:00:00.000Z")
    assert [part for part, _ in shape(draft)] == ["system", "prompt", "agent", "agent"]
    assert draft.kept_aside == {"state": 1}


@pytest.mark.parametrize("at", [None, 0, "yesterday", "2026-03-02T10:00:60Z"])
def test_a_time_that_cannot_be_read_is_unknown(at: Any) -> None:
    log = Log()
    log.message("user", "Hi")
    log.lines[1]["timestamp"] = at
    assert log.read().steps[0].step.timestamp is None


@pytest.mark.parametrize("data", [b"", b"\n\n", b"no json", b"[]", b'{"a":1}', Log().bytes()])
def test_where_there_is_nothing_to_read_it_says_so(data: bytes) -> None:
    with pytest.raises(InvalidInputError) as refused:
        read(data, "x.jsonl")
    assert refused.value.code == "invalid_format"
    assert "x.jsonl" in refused.value.message


def test_lines_end_with_a_newline_alone_and_broken_ones_are_counted() -> None:
    log = Log()
    log.message("user", "a\u2028b\u0085c")
    log.lines[-1]["payload"]["content"][0]["text"] += "\ud800"
    data = log.bytes().replace(b"\\u2028", "\u2028".encode()) + b'{"type":\n["x"]\n{"a":1}\n'
    draft = read(data, "r.jsonl")
    assert shape(draft) == [("prompt", "a\u2028b\u0085c\ufffd")]
    assert draft.replaced_characters == 1
    assert draft.kept_aside == {"unreadable": 3}
    assert draft.warnings == ["r.jsonl: line 3 and 2 more could not be read"]


def test_a_line_of_50_megabytes_is_read() -> None:
    log = Log()
    log.message("user", "Go")
    log.call("c1")
    log.output("c1", "x" * 50_000_000)
    step = log.read().steps[-1].step
    assert step.observation is not None
    assert len(str(step.observation.results[0].content)) == 50_000_000


def test_a_line_nested_too_deep_is_left_out() -> None:
    log = Log()
    log.message("user", "Hi")
    deep = b'{"type":"response_item","payload":' + b"[" * 10_000 + b"]" * 10_000 + b"}\n"
    assert read(log.bytes() + deep, "r").kept_aside == {"unreadable": 1}


def busy() -> bytes:
    log = Log(base_instructions={"text": "Be brief"})
    log.event("task_started", turn_id=AFTER)
    log.message("developer", "Mind the gap", id="msg_d")
    log.message("user", "<environment_context>", id="msg_e")
    log.message("user", "Go — 走", id="msg_1")
    log.event("user_message", message="Go — 走")
    log.item("reasoning", id="rs_1", summary=[{"text": "Hm"}], encrypted_content="gAAA")
    log.event("agent_message", message="So")
    log.message("assistant", "So", id="msg_2")
    log.item("custom_tool_call", call_id="s1", name="exec", input="x()", id="ctc_1")
    log.record("resp_1", tokens(10, 5))
    item = {"type": "CommandExecution", "id": "exec-1", "command": ["ls"], "exit_code": 1}
    log.event("item_completed", item=item)
    log.item("custom_tool_call_output", call_id="s1", output=[{"text": "a"}, {"text": "b"}])
    log.count(tokens(10, 5), tokens(10, 5))
    log.message("user", "Faster", id="msg_3")
    log.message("assistant", "Done", id="msg_4")
    log.record("resp_2", tokens(12, 5))
    log.event("task_complete", turn_id=AFTER)
    log.line("compacted", message="Sum", window_id="w1")
    task(log, "On", "Fine")
    log.event("thread_rolled_back", num_turns=1)
    return log.bytes()


BUSY = busy()


@settings(max_examples=150, deadline=None)
@given(st.integers(0, len(BUSY)))
def test_a_log_cut_anywhere_is_read_as_far_as_it_goes(end: int) -> None:
    """What was whole before the cut is the same in both; the last response may still grow."""
    try:
        cut = read(BUSY[:end], "r.jsonl")
    except InvalidInputError:
        assert end < BUSY.index(b"\n")
        return
    whole = read(BUSY, "r.jsonl")
    everything = [*whole.steps, *(step for branch in whole.abandoned for step in branch.steps)]
    known = [step.key for step in everything]
    keys = [step.key for step in [*cut.steps, *(s for b in cut.abandoned for s in b.steps)]]
    assert keys[:-1] == known[: len(keys) - 1]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "content", "item", "id", "text", "info", "tools", "call_id"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)
FIELDS = sorted({name for line in map(json.loads, BUSY.splitlines()) for name in line["payload"]})


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_no_value_anywhere_is_more_than_a_warning(data: st.DataObject) -> None:
    lines = [json.loads(line) for line in BUSY.decode().split("\n") if line]
    for _ in range(data.draw(st.integers(1, 3))):
        payload = data.draw(st.sampled_from(lines))["payload"]
        payload[data.draw(st.sampled_from(FIELDS))] = data.draw(json_values)
    with suppress(InvalidInputError):
        for draft in read(b"\n".join(map(msgspec.json.encode, lines)), "r.jsonl").steps:
            assert msgspec.json.decode(msgspec.json.encode(draft.step), type=Step) == draft.step
