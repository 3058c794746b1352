"""Which files are logs, which belong together, and what is said of those that are none."""

import json
import os
from collections import Counter
from pathlib import Path

import atif as atif_package
import msgspec
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from stenograph.errors import InvalidInputError
from stenograph.trajectories.atif.format import FinalMetrics
from stenograph.trajectories.importers.discovery import (
    Candidate,
    find,
    read_bytes,
    read_source,
    usual_folders,
)
from stenograph.trajectories.importers.draft import SessionDraft
from stenograph.trajectories.importers.files import read_named, read_start
from stenograph.trajectories.importers.recognition import recognise
from trajectories.importers.claude_code_lines import Log as ClaudeLog
from trajectories.importers.claude_code_lines import text
from trajectories.importers.codex_lines import OTHER, THREAD
from trajectories.importers.codex_lines import Log as CodexLog

CORPUS = Path(__file__).parents[3].parent / "shared" / "corpus"
needs_corpus = pytest.mark.skipif(
    not CORPUS.is_dir(), reason="the corpus of genuine logs is not here"
)

DOCUMENT = {
    "schema_version": "ATIF-v1.7",
    "session_id": "s",
    "agent": {"name": "a", "version": "1"},
    "steps": [{"step_id": 1, "source": "user", "message": "Hi"}],
}
ATIF = json.dumps(DOCUMENT).encode()


def codex_log(thread: str = THREAD, **meta: object) -> bytes:
    log = CodexLog(thread, **meta)
    log.message("user", "Hi")
    log.message("assistant", "Hello")
    return log.bytes()


def claude_log(prompt: str = "Hi") -> bytes:
    log = ClaudeLog()
    log.user(prompt)
    log.answer("m1", text("Hello"))
    return log.bytes()


def write(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def everyone(drafts: list[SessionDraft]) -> list[SessionDraft]:
    return [one for draft in drafts for one in [draft, *everyone(draft.children)]]


# By content


@pytest.mark.parametrize(
    ("data", "format"),
    [
        (codex_log(), "codex"),
        (claude_log(), "claude-code"),
        (b'{"loglines": [{"type": "user"}]}', "claude-code"),
        (ATIF, "atif"),
        (json.dumps(DOCUMENT, indent=2).encode(), "atif"),
        (b"\xef\xbb\xbf\n " + ATIF, "atif"),
        (ATIF[:40], "atif"),
        (json.dumps(DOCUMENT | {"schema_version": "atif/1"}).encode(), "atif"),
        (json.dumps(DOCUMENT | {"schema_version": "1.4"}).encode(), "atif"),
        (json.dumps({"agent": {}, "steps": []}).encode(), "atif"),
        (json.dumps({"steps": [1], "other": 1}).encode(), None),
        (b'{"type":"thread.started","thread_id":"x"}\n', None),
        (b'{"type":"system","subtype":"init","session_id":"x"}\n', None),
        (b'{"a": 1}', None),
        (b"[" * 100_000, None),
        (b'{"a":' * 100_000, None),
        (b"Hello\n", None),
        (b"\x7fELF\x02\x01\x01\x00", None),
        (b" \n\n", None),
        (b"", None),
    ],
)
def test_a_file_is_known_by_its_content(data: bytes, format: str | None) -> None:
    found, reason = recognise(data)
    assert found == format
    assert (reason is None) == (format is not None)


def test_a_log_that_quotes_another_is_still_itself() -> None:
    quoted = codex_log().decode() + ATIF.decode()
    assert recognise(claude_log(quoted))[0] == "claude-code"
    log = CodexLog(base_instructions={"text": claude_log().decode() + ATIF.decode()})
    assert recognise(log.bytes())[0] == "codex"
    message = DOCUMENT | {"notes": quoted + claude_log().decode()}
    assert recognise(json.dumps(message).encode())[0] == "atif"


def test_a_first_line_of_any_length_is_enough(tmp_path: Path) -> None:
    for name, data in (
        ("a", claude_log("x" * 300_000)),
        ("b", CodexLog(base_instructions={"text": "x" * 300_000}).bytes() + codex_log()),
        ("c", json.dumps({"agent": {"name": "x" * 300_000}, **DOCUMENT}, indent=1).encode()),
    ):
        write(tmp_path / name, data)
    found = {candidate.path.name: candidate.format for candidate in find([tmp_path])}
    assert found == {"a": "claude-code", "b": "codex", "c": "atif"}
    assert len(read_start(write(tmp_path / "d", b"x\n" * 10**6))) < 10**6


# In folders


def test_a_folder_gives_its_logs_in_order_and_says_what_is_none(tmp_path: Path) -> None:
    write(tmp_path / "b.txt", codex_log())
    write(tmp_path / "a" / "doc.json", ATIF)
    write(tmp_path / "c.jsonl", claude_log())
    write(tmp_path / "notes.md", b"# Notes")
    write(tmp_path / "empty.jsonl", b"")
    (tmp_path / "away").symlink_to(tmp_path)
    (tmp_path / "broken").symlink_to(tmp_path / "nothing")
    found = [
        (c.path.relative_to(tmp_path).as_posix(), c.format, c.reason) for c in find([tmp_path])
    ]
    assert found == [
        ("b.txt", "codex", None),
        ("c.jsonl", "claude-code", None),
        ("empty.jsonl", None, "it is empty"),
        ("notes.md", None, "it is neither a log of Claude Code or Codex nor an ATIF document"),
        ("a/doc.json", "atif", None),
    ]


def test_a_file_that_was_named_and_is_no_log_is_refused_before_anything(tmp_path: Path) -> None:
    write(tmp_path / "good" / "a.jsonl", codex_log())
    stream = write(tmp_path / "stdout", b'{"type":"thread.started","thread_id":"x"}\n')
    for bad, part in ((stream, "printed"), (tmp_path / "gone", "no file or folder")):
        with pytest.raises(InvalidInputError, match=part):
            next(find([tmp_path / "good", bad]))
    (candidate,) = [c for c in find([tmp_path]) if c.path == stream]
    with pytest.raises(InvalidInputError) as refused:
        read_source(candidate)
    assert refused.value.code == "invalid_format"


def test_threads_hang_under_the_one_that_started_them(tmp_path: Path) -> None:
    """Whatever the order of the files; one whose parent is not here stands alone."""
    ids = {name: f"019cadfd-8900-7a00-8000-0000000000{name}" for name in ("a1", "b2", "c3")}
    write(tmp_path / "02" / "rollout-a.jsonl", codex_log(ids["b2"], parent_thread_id=ids["a1"]))
    write(tmp_path / "02" / "rollout-b.jsonl", codex_log(ids["a1"]))
    write(tmp_path / "01" / "rollout-c.jsonl", codex_log(ids["c3"], parent_thread_id=ids["b2"]))
    write(tmp_path / "00" / "rollout-e.jsonl", codex_log().partition(b"\n")[2])
    write(tmp_path / "03" / "rollout-d.jsonl", codex_log(OTHER, parent_thread_id="019cadfd-gone"))
    nameless, *found = find([tmp_path])
    assert (nameless.path.name, nameless.beside) == ("rollout-e.jsonl", ())
    assert [(c.path.name, len(c.beside)) for c in found] == [
        ("rollout-b.jsonl", 2),
        ("rollout-d.jsonl", 0),
    ]
    (root,) = read_source(found[0])
    assert (root.key, [c.key for c in root.children]) == (ids["a1"], [ids["b2"]])
    assert [c.key for c in root.children[0].children] == [ids["c3"]]
    (alone,) = read_source(found[1])
    assert (alone.key, alone.parent_key) == (OTHER, "019cadfd-gone")

    (named,) = find([tmp_path / "02" / "rollout-b.jsonl"])
    assert [path.name for path in named.beside] == ["rollout-a.jsonl"]
    (part,) = find([tmp_path / "02" / "rollout-a.jsonl"])
    assert part.beside == ()


def test_a_thread_is_named_by_its_call_or_it_is_said_that_none_tells(tmp_path: Path) -> None:
    """Multi-agent v2 names the task, and the child's path ends with it."""
    log = CodexLog(THREAD)
    log.message("user", "Go")
    log.call("c1", "spawn_agent", '{"task_name": "count"}')
    log.output("c1", '{"task_name": "/root/count"}')
    write(tmp_path / "a.jsonl", log.bytes())
    for name, thread in (("count", OTHER), ("lost", OTHER[:-1] + "e")):
        spawn = {"parent_thread_id": THREAD, "agent_path": f"/root/{name}"}
        write(tmp_path / name, codex_log(thread, source={"subagent": {"thread_spawn": spawn}}))
    (candidate,) = find([tmp_path])
    (draft,) = read_source(candidate)
    assert len(draft.children) == 2
    observation = draft.steps[-1].step.observation
    assert observation is not None
    refs = observation.results[0].subagent_trajectory_ref or []
    assert [ref.trajectory_id for ref in refs] == [OTHER]
    assert draft.warnings == [
        f"Nothing here tells which call started the thread {OTHER[:-1]}e",
    ]


def test_threads_that_are_said_to_have_started_each_other(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", codex_log(THREAD, parent_thread_id=OTHER))
    write(tmp_path / "b.jsonl", codex_log(OTHER, parent_thread_id=THREAD))
    write(tmp_path / "c.jsonl", codex_log(THREAD))
    drafts = [draft for candidate in find([tmp_path]) for draft in read_source(candidate)]
    assert sorted({draft.key for draft in everyone(drafts)}) == sorted([THREAD, OTHER])


def test_a_broken_thread_costs_no_other(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", codex_log(THREAD))
    write(tmp_path / "b.jsonl", codex_log(OTHER, parent_thread_id=THREAD).partition(b"\n")[0])
    (candidate,) = find([tmp_path])
    (draft,) = read_source(candidate)
    assert draft.children == []
    assert draft.warnings == ["b.jsonl holds no message of a Codex session"]


def test_the_parts_of_a_claude_session_come_with_it(tmp_path: Path) -> None:
    agent = ClaudeLog(agentId="1", isSidechain=True)
    agent.user("Count")
    agent.answer("m2", text("Two"))
    project = tmp_path / "project"
    write(project / "s.jsonl", claude_log())
    write(project / "s" / "subagents" / "agent-1.jsonl", agent.bytes())
    write(project / "s" / "subagents" / "agent-1.meta.json", b"{}")
    write(project / "s" / "tool-results" / "x.txt", b"long")
    write(project / "other" / "meta.json", b"{}")
    for named in (tmp_path, project / "s.jsonl"):
        candidate, *rest = find([named])
        assert (candidate.path, len(candidate.beside)) == (project / "s.jsonl", 3)
        assert [c.path.name for c in rest] == (["meta.json"] if named == tmp_path else [])
        (draft,) = read_source(candidate)
        assert [child.key for child in draft.children] == ["1"]
        kept = draft.originals | draft.children[0].originals
        assert set(kept) == {
            "s.jsonl",
            "s/subagents/agent-1.jsonl",
            "s/subagents/agent-1.meta.json",
            "s/tool-results/x.txt",
        }


def test_an_atif_document_keeps_its_bytes(tmp_path: Path) -> None:
    (candidate,) = find([write(tmp_path / "doc.json", ATIF)])
    (draft,) = read_source(candidate)
    assert (draft.format, draft.originals) == ("atif", {"doc.json": ATIF})


def test_packed_logs_are_read_as_what_they_were(tmp_path: Path) -> None:
    data = codex_log() * 2_000
    packed = write(tmp_path / "rollout-a.jsonl.zst", zstandard.compress(data))
    (candidate,) = find([tmp_path])
    (draft,) = read_source(candidate)
    assert draft.originals == {packed.name: data}
    assert read_bytes(packed.read_bytes())[0].key == THREAD
    broken = b"\x28\xb5\x2f\xfd garbage"
    (named,) = find([write(packed, broken).parent])
    assert "cannot be unpacked" in (named.reason or "")
    with pytest.raises(InvalidInputError, match="cannot be unpacked"):
        read_bytes(broken)


def test_a_file_that_may_not_be_read_is_said(tmp_path: Path) -> None:
    gone = Candidate(tmp_path / "gone.jsonl", "codex")
    with pytest.raises(InvalidInputError, match="cannot be read: No such file"):
        read_source(gone)


def test_the_usual_folders_are_those_that_are_there(tmp_path: Path) -> None:
    for name in (".claude/projects", ".codex/sessions", "c/projects", "x/archived_sessions"):
        (tmp_path / name).mkdir(parents=True)
    assert usual_folders(tmp_path, {}) == [
        tmp_path / ".claude" / "projects",
        tmp_path / ".codex" / "sessions",
    ]
    env = {"CLAUDE_CONFIG_DIR": str(tmp_path / "c"), "CODEX_HOME": str(tmp_path / "x")}
    assert usual_folders(tmp_path, env) == [
        tmp_path / "c" / "projects",
        tmp_path / "x" / "archived_sessions",
    ]


def test_media_lie_beside_a_document_and_nothing_outside_is_reached(tmp_path: Path) -> None:
    outside = write(tmp_path / "secret.png", b"secret")
    inside = write(tmp_path / "doc" / "media" / "é 1.png", b"a")
    write(tmp_path / "doc" / "other.png", b"not named")
    os.symlink(outside, tmp_path / "doc" / "link.png")
    names = [
        "media/é 1.png",
        "../secret.png",
        "media/../../secret.png",
        "link.png",
        "media",
        "gone.png",
        "https://example.com/a.png",
        str(outside),
        str(inside),
        "a\0b",
        "x" * 300,
        "",
    ]
    document = json.dumps({"steps": [{"source": {"path": name}} for name in names]})
    for spelling in (document, document.replace("é", "\\u00e9"), document.replace('": "', '" :"')):
        assert read_named(tmp_path / "doc", spelling.encode()) == {"media/é 1.png": b"a"}

    source = {"media_type": "image/png", "path": "media/é 1.png"}
    step = {"step_id": 1, "source": "user", "message": [{"type": "image", "source": source}]}
    write(tmp_path / "doc" / "a.json", json.dumps(DOCUMENT | {"steps": [step]}).encode())
    (candidate,) = [c for c in find([tmp_path / "doc"]) if c.format]
    (draft,) = read_source(candidate)
    assert [(media.path, media.data) for media in draft.media] == [("media/é 1.png", b"a")]


# One file that came by itself


@pytest.mark.parametrize("format", [None, "right"])
def test_one_file_is_read_by_its_content_or_as_was_said(format: str | None) -> None:
    for data, right in ((codex_log(), "codex"), (claude_log(), "claude-code"), (ATIF, "atif")):
        (draft,) = read_bytes(data, right if format else None)
        assert draft.format == right
        assert list(draft.originals.values()) == [data]


@pytest.mark.parametrize(
    ("data", "format"),
    [
        (b"", None),
        (b"Hello", None),
        (b'{"type":"thread.started","thread_id":"x"}\n', None),
        (codex_log(), "gemini"),
        (codex_log(), ""),
        (claude_log(), "codex"),
        (b"", "codex"),
    ],
)
def test_what_is_no_log_is_refused_as_such(data: bytes, format: str | None) -> None:
    with pytest.raises(InvalidInputError) as refused:
        read_bytes(data, format)
    assert refused.value.code == "invalid_format"


@pytest.mark.parametrize("format", ["atif", "claude-code"])
def test_a_file_of_another_format_than_was_said_is_refused(format: str) -> None:
    with pytest.raises(InvalidInputError):
        read_bytes(codex_log(), format)


@settings(max_examples=100, deadline=None)
@given(st.sampled_from([codex_log(), claude_log(), ATIF]), st.data())
def test_no_bytes_are_more_than_refused(whole: bytes, data: st.DataObject) -> None:
    """Cut anywhere, with anything in it: read, or refused with a reason."""
    start, end = sorted(data.draw(st.tuples(*[st.integers(0, len(whole))] * 2)))
    noise = data.draw(st.binary(max_size=20))
    format = data.draw(st.sampled_from([None, "atif", "codex", "claude-code"]))
    for damaged in (whole[:end], whole[:start] + noise + whole[end:]):
        try:
            drafts = read_bytes(damaged, format)
        except InvalidInputError as refused:
            assert refused.message  # noqa: PT017
        else:
            assert drafts


@pytest.mark.parametrize("format", [None, "atif", "codex", "claude-code"])
def test_nesting_of_10_000_levels_is_refused(format: str | None) -> None:
    deep = b"[" * 10_000 + b"]" * 10_000
    for data in (deep, b'{"schema_version":"ATIF-v1.7","extra":' + deep + b"}"):
        with pytest.raises(InvalidInputError):
            read_bytes(data, format)


# The corpus


@needs_corpus
def test_the_corpus_is_found_and_read() -> None:
    """Every log, each with what belongs to it; the programs' streams and the truth are no logs."""
    found = list(find([CORPUS / "claude", CORPUS / "codex", CORPUS / "public"]))
    cases = [p for name in ("claude", "codex") for p in (CORPUS / name).iterdir()]
    formats = Counter(c.format for c in found if "public" not in c.path.parts)
    assert formats["claude-code"] + formats["codex"] == len(cases)
    streams = [c for c in found if c.path.name == "stdout"]
    assert len(streams) == len(cases)
    for candidate in found:
        if candidate.format is None:
            assert candidate.reason
            continue
        drafts = read_source(candidate)
        assert {draft.format for draft in drafts} == {candidate.format}
        assert len(drafts) == 1
        for draft in everyone(drafts):
            assert draft.originals


@needs_corpus
def test_a_codex_session_comes_with_its_subagent() -> None:
    (candidate,) = [c for c in find([CORPUS / "codex" / "d_subagent"]) if c.format]
    (draft,) = read_source(candidate)
    (child,) = draft.children
    refs = [
        ref.trajectory_id
        for step in draft.steps
        if step.step.observation
        for result in step.step.observation.results
        for ref in result.subagent_trajectory_ref or []
    ]
    assert refs == [child.trajectory_id]


# The samples that a first visitor is shown


def test_the_samples_are_whole_and_add_up() -> None:
    samples = Path(__file__).parents[3] / "samples"
    drafts = [d for c in find([samples / "codex", samples / "atif"]) for d in read_source(c)]
    assert [draft.format for draft in drafts] == ["codex", "atif"]
    for draft in everyone(drafts):
        assert (draft.warnings, draft.kept_aside, draft.turn_ends) == ([], {}, {})
        assert draft.steps[0].part == "system"
        assert draft.steps[-1].part == "agent"
    codex, document = drafts
    (log,) = codex.originals.values()
    counted = [json.loads(line)["payload"].get("info") for line in log.splitlines()]
    total = [info for info in counted if info][-1]["total_token_usage"]
    metrics = [step.step.metrics for step in codex.steps if step.step.metrics]
    assert sum(m.prompt_tokens or 0 for m in metrics) == total["input_tokens"]
    assert sum(m.cached_tokens or 0 for m in metrics) == total["cached_input_tokens"]
    assert sum(m.completion_tokens or 0 for m in metrics) == total["output_tokens"]
    assert [bool(step.failed_calls) for step in codex.steps].count(True) == 1
    claim = msgspec.convert(document.document["final_metrics"], FinalMetrics)
    costs = [
        s.step.metrics.cost_usd for d in everyone([document]) for s in d.steps if s.step.metrics
    ]
    assert claim.total_cost_usd == pytest.approx(sum(cost or 0 for cost in costs), abs=1e-9)
    assert atif_package.Trajectory.model_validate_json(document.originals["limp-tree-ferns.json"])
