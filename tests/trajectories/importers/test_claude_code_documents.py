"""Drafts as documents, judged by a reader that is not ours (the `atif` package), and the sample."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import atif
import msgspec
import pytest

from stenograph.trajectories.atif.format import Trajectory
from stenograph.trajectories.importers.claude_code import looks_like, read, side_files
from stenograph.trajectories.importers.draft import SessionDraft

REPOSITORY = Path(__file__).parents[3]
SAMPLE = REPOSITORY / "samples" / "claude-code"
FOLDERS = [SAMPLE, *sorted((REPOSITORY.parent / "shared/corpus/claude").glob("*/projects"))]


def drafts(folder: Path) -> list[SessionDraft]:
    paths = [path for path in folder.rglob("*") if path.is_file()]
    files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
    return [
        read({name: files[name] for name in (root, *others)}, root)
        for root, others in side_files(files).items()
    ]


def document(draft: SessionDraft) -> dict[str, Any]:
    for number, step in enumerate(draft.steps, 1):
        step.step.step_id = number
    whole = Trajectory(
        schema_version="ATIF-v1.7",
        session_id=draft.session_id,
        trajectory_id=draft.trajectory_id,
        agent=draft.agent,
        steps=[step.step for step in draft.steps],
    )
    value: dict[str, Any] = msgspec.to_builtins(whole)
    if draft.children:
        value["subagent_trajectories"] = [document(child) for child in draft.children]
    return value


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.parent.name)
def test_every_draft_makes_a_valid_document(folder: Path) -> None:
    for draft in drafts(folder):
        value = document(draft)
        atif.Trajectory.model_validate(value)
        children = {child["trajectory_id"] for child in value.get("subagent_trajectories", ())}
        named = {
            ref["trajectory_id"]
            for step in value["steps"]
            for result in step.get("observation", {}).get("results", ())
            for ref in result.get("subagent_trajectory_ref", ())
        }
        assert named == children


def test_the_sample_is_a_whole_story() -> None:
    (draft,) = drafts(SAMPLE)
    assert all(looks_like(path.read_bytes()[:2048]) for path in SAMPLE.rglob("*.jsonl"))
    assert draft.title == "Keep the 31st in monthly recurrences"
    assert [step.part for step in draft.steps] == [
        *["prompt", "agent", "agent", "agent", "agent", "agent"],
        *["prompt", "system", "agent", "agent", "agent", "agent"],
    ]
    (child,) = draft.children
    assert [step.part for step in child.steps] == ["prompt", "agent", "agent", "agent"]
    failed = [call for step in draft.steps for call in step.failed_calls]
    assert len(failed) == 1
    assert (draft.turn_ends, draft.abandoned, draft.warnings) == ({}, [], [])
    for one in (draft, child):
        agents = [step.step for step in one.steps if step.part == "agent"]
        for before, after in pairwise(agents):
            assert before.metrics is not None
            assert after.metrics is not None
            # Each call reads from the cache what the one before has left in it, or starts anew.
            left = (before.metrics.prompt_tokens or 0) - (after.metrics.cached_tokens or 0)
            assert 0 < left < 10 or after.metrics.cached_tokens == 11_842
