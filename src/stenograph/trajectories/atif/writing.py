"""ATIF going out: how structs become bytes, and the form in which a document is kept.

Normal form is what a document is compared in, before and after it went through the record:

- a schema field that is null is absent (`harbor_atif2otel` crashes on explicit nulls); nulls inside
  `extra`, `arguments` and `tool_definitions` are data and stay;
- content that is one text part is a plain string (Harbor's SFT export crashes otherwise);
- the label is the one an export gets: ATIF-v1.7, or v1.8 where audio is anywhere in the tree;
- a reference that names only a session, legal up to 1.6 and refused since, names the embedded child
  of that session if there is exactly one; otherwise it lies, as it came, in the `extra` of its
  result under `stenograph.unresolved_subagents`. To invent an id or a path would be to lie.
"""

import json
from collections import Counter

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from stenograph.trajectories.atif.format import (
    Content,
    ObservationResult,
    Step,
    SubagentTrajectoryRef,
    Trajectory,
)
from stenograph.trajectories.atif.reading import read_json
from stenograph.trajectories.atif.versions import has_audio

#: Key in a result's `extra`: a list of the references that nothing resolves.
UNRESOLVED = "stenograph.unresolved_subagents"


def encode(struct: Struct) -> bytes:
    """Return an ATIF struct, as it is, in compact UTF-8 JSON without schema nulls.

    Lone surrogates, which UTF-8 cannot carry, become U+FFFD.
    """
    try:
        return msgspec.json.encode(struct)
    except UnicodeEncodeError:
        escaped = json.dumps(msgspec.to_builtins(struct)).encode()
        return msgspec.json.encode(read_json(escaped).value)


def plain(content: Content | None) -> Content | None:
    """Return the text of content that is one text part, other content as it is."""
    if isinstance(content, list) and len(content) == 1 and content[0].text is not None:
        return content[0].text
    return content


def emit_version(trajectory: Trajectory) -> str:
    """Return the label a document is written with: most readers stop at 1.7."""
    return "ATIF-v1.8" if has_audio(trajectory) else "ATIF-v1.7"


def normal_form(trajectory: Trajectory) -> Trajectory:
    """Return the document, with its children, as an export keeps it. The argument is untouched."""
    return _normal(trajectory, emit_version(trajectory))


def normal_steps(document: Trajectory) -> list[Step]:
    """Return the steps of one document in normal form; those already in it are the same objects."""
    children = document.subagent_trajectories or ()
    sessions = Counter(child.session_id for child in children)
    ids = {
        child.session_id: child.trajectory_id
        for child in children
        if child.session_id is not None and sessions[child.session_id] == 1
    }
    return [_normal_step(step, ids) for step in document.steps]


def _normal(document: Trajectory, version: str) -> Trajectory:
    children = document.subagent_trajectories
    return replace(
        document,
        schema_version=version,
        steps=normal_steps(document),
        subagent_trajectories=children and [_normal(child, version) for child in children],
    )


def _normal_step(step: Step, ids: dict[str, str | None]) -> Step:
    message = plain(step.message)
    if message is not step.message:
        step = replace(step, message=message)
    if step.observation is None:
        return step
    results = [_normal_result(result, ids) for result in step.observation.results]
    if all(new is old for new, old in zip(results, step.observation.results, strict=True)):
        return step
    return replace(step, observation=replace(step.observation, results=results))


def _normal_result(result: ObservationResult, ids: dict[str, str | None]) -> ObservationResult:
    content = plain(result.content)
    if content is not result.content:
        result = replace(result, content=content)
    refs = result.subagent_trajectory_ref or ()
    if all(ref.trajectory_id is not None or ref.trajectory_path is not None for ref in refs):
        return result
    upgraded = [upgrade_ref(ref, ids) for ref in refs]
    left = [ref for ref, new in zip(refs, upgraded, strict=True) if new is None]
    extra = result.extra
    if left:
        extra = {**(extra or {}), UNRESOLVED: [msgspec.to_builtins(ref) for ref in left]}
    kept = [ref for ref in upgraded if ref is not None]
    return replace(result, subagent_trajectory_ref=kept or None, extra=extra)


def upgrade_ref(
    ref: SubagentTrajectoryRef, ids: dict[str, str | None]
) -> SubagentTrajectoryRef | None:
    """Return a reference that 1.7 allows; None: nothing resolves it.

    `ids`: of the embedded children whose session no sibling shares, their id by session.
    """
    if ref.trajectory_id is not None or ref.trajectory_path is not None:
        return ref
    found = ids.get(ref.session_id) if ref.session_id is not None else None
    return None if found is None else replace(ref, trajectory_id=found)
