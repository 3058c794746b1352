"""Which files belong together, subagents, and logs that are cut off anywhere."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stenograph.errors import InvalidInputError
from stenograph.trajectories.importers.claude_code import looks_like, read, side_files
from stenograph.trajectories.importers.draft import SessionDraft
from trajectories.importers.claude_code_lines import ROOT, SESSION, Log, call, text

CORPUS = Path(__file__).parents[3].parent / "shared" / "corpus" / "claude"
LOGS = {path.parts[-4]: path.read_bytes() for path in CORPUS.glob("*/projects/*/*.jsonl")}


def agent_file(agent: str, prompt: str, **fields: str) -> Log:
    log = Log(agentId=agent, isSidechain=True, **fields)
    log.user(prompt)
    log.answer(f"{agent}-m1", text(f"{agent} is done"))
    return log


def path(agent: str, ending: str = "jsonl") -> str:
    return f"{SESSION}/subagents/agent-{agent}.{ending}"


def refs(draft: SessionDraft) -> dict[str | None, str | None]:
    return {
        result.source_call_id: result.subagent_trajectory_ref[0].trajectory_id
        for step in draft.steps
        if step.step.observation
        for result in step.step.observation.results
        if result.subagent_trajectory_ref
    }


def test_side_files_belong_to_the_session_whose_folder_they_are_in() -> None:
    names = [
        "p/a.jsonl",
        "p/a/subagents/agent-1.jsonl",
        "p/a/subagents/agent-1.meta.json",
        "p/a/tool-results/x.txt",
        "p/b.jsonl",
        "p/agent-2.jsonl",
        "q/agent-3.jsonl",
        "q/agent-3.meta.json",
        "q/notes.txt",
    ]
    assert side_files(names) == {
        "p/a.jsonl": [
            "p/a/subagents/agent-1.jsonl",
            "p/a/subagents/agent-1.meta.json",
            "p/a/tool-results/x.txt",
            "p/agent-2.jsonl",
        ],
        "p/b.jsonl": ["p/agent-2.jsonl"],
        "q/agent-3.jsonl": ["q/agent-3.meta.json"],
    }


def test_a_log_is_recognised_by_its_first_line() -> None:
    log = Log()
    log.user("Hello")
    assert looks_like(log.bytes())
    assert looks_like(b"\xef\xbb\xbf" + log.bytes()[:-5] + b"\n" + log.bytes())
    assert looks_like(b'{"type":"summary","summary":"A","leafUuid":"x"}\n')
    assert looks_like(b'{\n "loglines": [\n  {')
    assert not looks_like(b'{"type":"session_meta","payload":{}}')
    assert not looks_like(b'{"type":"user","message":{"role":"user"},"session_id":"x"}')
    assert not looks_like(b'{"schema_version":"ATIF-v1.7","steps":[]}')
    assert not looks_like(b"")


@pytest.mark.parametrize(
    "data",
    [b"", b"\n\n", b"not json", b"[]", b'{"loglines": [', b'{"loglines": []}', b'{"type":"mode"}'],
)
def test_what_is_no_log_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidInputError):
        read({ROOT: data}, ROOT)


def test_a_subagent_is_linked_by_what_the_program_noted() -> None:
    log = Log()
    log.user("Delegate")
    log.answer("m1", call("c1", "Agent", prompt="x"), call("c2", "Agent", prompt="x"))
    log.result("c2", "two")
    log.result("c1", "one")
    draft = log.read(
        **{
            path("a1"): agent_file("a1", "x").bytes(),
            path("a1", "meta.json"): b'{"toolUseId":"c2","description":"Second job"}',
        }
    )
    assert refs(draft) == {"c2": "a1"}
    assert draft.children[0].title == "Second job"
    assert draft.children[0].originals.keys() == {path("a1"), path("a1", "meta.json")}
    assert draft.originals.keys() == {ROOT}
    assert draft.warnings == []


def test_a_subagent_is_linked_by_its_prompt_where_nothing_else_tells() -> None:
    log = Log()
    log.user("Delegate")
    log.answer("m1", call("c1", "Task", prompt="same"), call("c2", "Task", prompt="same"))
    log.result("c1", "one")
    log.result("c2", None)
    agents = {path(name): agent_file(name, "same").bytes() for name in ("a1", "a2")}
    draft = log.read(**agents)
    assert refs(draft) == {"c1": "a1", "c2": "a2"}
    observation = draft.steps[1].step.observation
    assert observation is not None
    assert [r.content for r in observation.results] == ["one", "a2 is done"]  # text beside the ref


def test_subagents_of_subagents_hang_under_them() -> None:
    middle = Log(agentId="a1", isSidechain=True)
    middle.user("middle")
    middle.answer("a1-m1", call("n1", "Agent", prompt="inner"))
    middle.result("n1", "inner done", toolUseResult={"agentId": "a2"})
    middle.answer("a1-m2", text("done"))
    log = Log()
    log.user("Delegate")
    log.answer("m1", call("c1", "Agent", prompt="middle"))
    log.result("c1", "done", toolUseResult={"agentId": "a1"})
    draft = log.read(
        **{
            path("a1"): middle.bytes(),
            path("a2"): agent_file("a2", "inner").bytes(),
            path("a3"): agent_file("a3", "silent").bytes(),
            path("a3", "meta.json"): b'{"parentAgentId":"a2"}',
        }
    )
    (child,) = draft.children
    (grandchild,) = child.children
    assert refs(draft) == {"c1": "a1"}
    assert refs(child) == {"n1": "a2"}
    assert [below.key for below in grandchild.children] == ["a3"]


def test_a_subagent_that_nothing_links_is_kept_and_told() -> None:
    log = Log()
    log.user("Hello")
    draft = log.read(**{path("a1"): agent_file("a1", "from nowhere").bytes()})
    assert [child.key for child in draft.children] == ["a1"]
    assert len(draft.warnings) == 1


def test_subagents_that_name_each_other_are_no_endless_tree() -> None:
    log = Log()
    log.user("Hello")
    draft = log.read(
        **{
            path("a1"): agent_file("a1", "1").bytes(),
            path("a1", "meta.json"): b'{"parentAgentId":"a2"}',
            path("a2"): agent_file("a2", "2").bytes(),
            path("a2", "meta.json"): b'{"parentAgentId":"a1"}',
        }
    )
    (child,) = draft.children
    assert (child.key, [below.key for below in child.children]) == ("a1", ["a2"])


def test_sidechains_in_the_sessions_own_file_are_subagents() -> None:
    """Fault 48: they are no steps of the session."""
    log = Log()
    log.user("Delegate")
    main = log.answer("m1", call("c1", "Task", prompt="side job"))
    log.last = None
    log.user("side job", isSidechain=True, uuid="side")
    log.answer("s1", text("side done"), isSidechain=True)
    log.result("c1", "side done", parentUuid=main)
    log.answer("m2", text("All done"))
    draft = log.read()
    assert [step.key for step in draft.steps] == ["u1", "m1", "m2"]
    (child,) = draft.children
    assert [step.key for step in child.steps] == ["side", "s1"]
    assert refs(draft) == {"c1": "side"}


def test_a_subagents_file_beside_the_session_is_taken_by_the_session_it_names() -> None:
    log = Log()
    log.user("Delegate")
    log.answer("m1", call("c1", "Task", prompt="mine"))
    log.result("c1", "done")
    stranger = Log(session="other", agentId="a2", isSidechain=True)
    stranger.user("not mine")
    mine = {"agent-a1.jsonl": agent_file("a1", "mine").bytes(), "agent-a2.jsonl": stranger.bytes()}
    assert [child.key for child in log.read(**mine).children] == ["a1"]


def test_a_subagents_file_that_came_alone_names_its_parent() -> None:
    draft = read({path("a1"): agent_file("a1", "job").bytes()}, path("a1"))
    assert (draft.key, draft.parent_key, draft.session_id) == ("a1", SESSION, SESSION)
    assert [(step.part, step.origin) for step in draft.steps] == [
        ("prompt", "agent"),
        ("agent", "person"),
    ]


def test_a_subagents_file_that_is_broken_costs_only_itself() -> None:
    log = Log()
    log.user("Hello")
    draft = log.read(**{path("a1"): b"broken", path("a2", "meta.json"): b"{"})
    assert draft.children == []
    assert len(draft.warnings) == 1


def steps_of(draft: SessionDraft) -> list[tuple[str, str | None, str]]:
    return [(step.part, step.key, json.dumps(str(step.step.message))) for step in draft.steps]


@pytest.mark.skipif(not LOGS, reason="the corpus of genuine logs is not here")
@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_log_cut_anywhere_is_read_as_far_as_it_goes(data: st.DataObject) -> None:
    case = data.draw(st.sampled_from(sorted(set(LOGS) - {"k_long"})))
    whole = LOGS[case]
    at = data.draw(st.integers(0, len(whole)))
    try:
        cut = steps_of(read({ROOT: whole[:at]}, ROOT))
    except InvalidInputError:
        assert not any(b'"type":"user"' in line for line in whole[:at].splitlines()[:-1])
        return
    assert cut[:-1] == steps_of(read({ROOT: whole}, ROOT))[: len(cut) - 1]


@pytest.mark.skipif(not LOGS, reason="the corpus of genuine logs is not here")
@settings(max_examples=60, deadline=None)
@given(st.data())
def test_damage_is_no_crash(data: st.DataObject) -> None:
    whole = bytearray(LOGS[data.draw(st.sampled_from(["d_subagent", "g_compact", "n_redacted"]))])
    for _ in range(data.draw(st.integers(1, 8))):
        at = data.draw(st.integers(0, len(whole) - 1))
        whole[at : at + data.draw(st.integers(0, 40))] = data.draw(st.binary(max_size=4))
    try:
        read({ROOT: bytes(whole)}, ROOT)
    except InvalidInputError:
        pass


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_field_of_the_wrong_type_is_no_crash(data: st.DataObject) -> None:
    log = Log()
    log.user("Hello")
    log.answer("m1", {"type": "thinking", "thinking": "t", "signature": "s"}, call("c1", x=1))
    log.result("c1", [text("x")], toolUseResult={"agentId": "a", "stdout": "x"})
    log.line("system", subtype="compact_boundary", compactMetadata={"trigger": "auto"})
    log.user("SUM", isCompactSummary=True)
    log.line("attachment", attachment={"type": "queued_command", "prompt": [text("x")]})
    log.line("summary", summary="s", leafUuid="u1")
    places: list[tuple[dict[str, object], str]] = []

    def visit(value: object) -> None:
        if isinstance(value, dict):
            places.extend((value, name) for name in value)
            for item in value.values():
                visit(item)
        elif isinstance(value, list):
            for item in value:
                visit(item)

    for line in log.lines:
        visit(line)
    holder, name = data.draw(st.sampled_from(places))
    holder[name] = data.draw(json_values)
    try:
        log.read()
    except InvalidInputError:
        pass
