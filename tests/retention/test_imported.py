"""Pruning sessions that came from genuine logs: what is read, and what an import brings back."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from exports import exported
from people import Org
from retention import bytes_left
from stenograph.retention.integrity import check
from stenograph.retention.prune import prune
from stenograph.storage.database import Database, Tx
from stenograph.storage.location import Location
from stenograph.trajectories.importers.discovery import find, read_source
from stenograph.trajectories.recording.record import record
from stenograph.trajectories.recording.session import Recorded

ROOT = Path(__file__).parents[2]
CORPUS = ROOT.parent / "shared" / "corpus"
LOGS = {
    "sample": ROOT / "samples",
    "claude d_subagent": CORPUS / "claude" / "d_subagent" / "projects",
    "claude g_compact": CORPUS / "claude" / "g_compact" / "projects",
    "claude e_resume": CORPUS / "claude" / "e_resume" / "projects",
    "codex d2_codemode": CORPUS / "codex" / "d2_codemode" / "sessions",
    "codex d_subagent": CORPUS / "codex" / "d_subagent" / "sessions",
}


@pytest.fixture(params=LOGS)
def log(request: pytest.FixtureRequest) -> Path:
    path = LOGS[request.param]
    if not path.exists():
        pytest.skip("the corpus lies beside the repository, and is not there")
    return path


def take_in(database: Database, org: Org, log: Path) -> list[Recorded]:
    return [
        recorded
        for candidate in find([log])
        if candidate.format is not None
        for draft in read_source(candidate)
        for recorded in database.write(lambda tx, d=draft: record(tx, org.owner, d))
    ]


def strings(value: Any) -> Iterator[str]:
    """Return every string of a document, however deep."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings(inner)


def steps(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield from document["steps"]
    for child in document.get("subagent_trajectories", ()):
        yield from steps(child)


#: What stays: prompts, answers, follow-ups, titles; names and ids of models, entries, documents.
KEPT = (
    "SELECT prompt FROM variants",
    "SELECT content FROM variants",
    "SELECT text FROM steps WHERE part IN ('prompt', 'steer')",
    "SELECT title FROM conversations",
    "SELECT external_key FROM steps",
    "SELECT source_key FROM imports",
    "SELECT document_trajectory_id FROM sessions",
    "SELECT model FROM sessions",
    "SELECT model_ref FROM usage_receipts",
)


def details(tx: Tx, documents: list[dict[str, Any]]) -> set[str]:
    """Return the texts of documents that retention deletes, long enough to be told apart."""
    found: set[str] = set()
    for document in documents:
        found.update(strings(document["agent"].get("tool_definitions")))
        for step in steps(document):
            if step["source"] == "agent":
                names = ("reasoning_content", "tool_calls", "observation", "message")
                found.update(text for name in names for text in strings(step.get(name)))
            elif step["source"] == "system":
                found.update(strings(step))
    kept = "\n".join(text for sql in KEPT for (text,) in tx.rows(sql) if text)
    return {text for text in found if len(text) > 24 and text not in kept}


def test_only_what_people_wrote_and_agents_answered_is_left(
    database: Database, database_location: Location, org: Org, log: Path
) -> None:
    recorded = take_in(database, org, log)
    roots = [found.session_id for found in recorded if found.parent_session_id is None]
    before = [exported(database, root) for root in roots]
    with database.read() as tx:
        words = {text: text for text in details(tx, before)}
    assert words

    assert prune(database, 0).erased

    assert bytes_left.in_files(database, database_location, words) == set()
    for root, old in zip(roots, before, strict=True):
        new = exported(database, root)
        assert not {text for text in strings(new) if text in words}
        people = [s["message"] for s in old["steps"] if s["source"] == "user"]
        assert [s["message"] for s in new["steps"] if s["source"] == "user"] == people
        assert all(s["source"] != "system" for s in new["steps"])
        assert "deleted by retention" in new["notes"]
        assert new["extra"]["fidelity"]["pruned_turns"] >= 1
        assert [s["step_id"] for s in new["steps"]] == list(range(1, len(new["steps"]) + 1))


def test_the_same_log_brings_nothing_back(database: Database, org: Org, log: Path) -> None:
    first = take_in(database, org, log)
    prune(database, 0, rewrite=False)
    pruned = [exported(database, found.session_id) for found in first]

    again = take_in(database, org, log)

    assert {found.change for found in again} == {"unchanged"}
    assert [exported(database, found.session_id) for found in first] == pruned
    with database.read() as tx:
        assert tx.value("SELECT count(*) FROM originals WHERE compressed IS NOT NULL") == 0
    assert check(database) == []


def test_a_log_that_grew_after_it_was_pruned_adds_what_is_new(
    database: Database, org: Org, tmp_path: Path
) -> None:
    log = LOGS["claude e_resume"]
    if not log.exists():
        pytest.skip("the corpus lies beside the repository, and is not there")
    (whole,) = log.rglob("*.jsonl")
    lines = whole.read_bytes().splitlines(keepends=True)
    turns = [n for n, line in enumerate(lines) if b'"role":"user","content":"' in line]
    cut = turns[1]
    grown = tmp_path / whole.name
    grown.write_bytes(b"".join(lines[:cut]))
    (root,) = take_in(database, org, grown)
    prune(database, 0, rewrite=False)
    pruned = exported(database, root.session_id)

    grown.write_bytes(b"".join(lines))
    (again,) = take_in(database, org, grown)

    assert again.change == "grown"
    assert again.turns > root.turns
    document = exported(database, root.session_id)
    kept = len(pruned["steps"])
    assert document["steps"][:kept] == pruned["steps"]
    assert any("reasoning_content" in step for step in document["steps"][kept:])
    assert check(database) == []
    prune(database, 0, rewrite=False)
    assert check(database) == []
