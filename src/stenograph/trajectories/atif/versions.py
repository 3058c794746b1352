"""The labels of ATIF versions, and what each version brought (`atif.md` section 2)."""

import re
from collections.abc import Iterator

from stenograph.trajectories.atif.format import Content, Json, Metrics, Step, Trajectory

#: The newest minor version whose text is known here.
NEWEST = 8
_LABEL = re.compile(r"ATIF-v1\.(0|[1-9][0-9]{0,3})")


def minor(label: Json) -> int | None:
    """Return n of `ATIF-v1.n`; None for anything else, of another major version or shape."""
    match = _LABEL.fullmatch(label) if isinstance(label, str) else None
    return int(match[1]) if match else None


def is_newer(label: Json) -> bool:
    """Whether a document is of a 1.x later than the newest known: read leniently."""
    return (minor(label) or 0) > NEWEST


def label_problem(label: Json) -> str | None:
    """Say why the label of a document is refused; None when it is a known or newer 1.x."""
    if label is None:
        return 'this field is required, as "ATIF-v1.0" to "ATIF-v1.8"'
    if minor(label) is None:
        return f'{_short(label)} is no version read here: "ATIF-v1.0" to "ATIF-v1.8", or later 1.x'
    return None


def _short(label: Json) -> str:
    text = f'"{label}"' if isinstance(label, str) else str(label)
    return text if len(text) <= 40 else text[:40] + "…"


def has_audio(trajectory: Trajectory) -> bool:
    """Whether audio is anywhere in the tree: the one thing that 1.8 added."""
    return _has_audio(trajectory) or any(map(has_audio, trajectory.subagent_trajectories or ()))


def _has_audio(document: Trajectory) -> bool:
    for step in document.steps:
        if _is_audio(step.message):
            return True
        if step.observation is not None:
            for result in step.observation.results:
                if _is_audio(result.content):
                    return True
    return False


def _is_audio(content: Content | None) -> bool:
    return isinstance(content, list) and any(part.type == "audio" for part in content)


def contents(step: Step) -> Iterator[Content | None]:
    """Return the message of a step and the contents of its results."""
    yield step.message
    if step.observation is not None:
        for result in step.observation.results:
            yield result.content


def newer_features(document: Trajectory) -> dict[str, int]:
    """Return what one document (not its children) has that its label lacks, with the minor of each.

    Up to 1.6 that takes a pass of its own; after 1.7 there is nothing newer to find.
    """
    labelled = minor(document.schema_version)
    if labelled is None or labelled >= NEWEST:
        return {}
    if labelled == 7:
        return {"audio": 8} if _has_audio(document) else {}
    return {feature: since for feature, since in _features(document) if since > labelled}


def _features(document: Trajectory) -> Iterator[tuple[str, int]]:
    used: list[tuple[str, int, object]] = [
        ("root extra", 1, document.extra),
        ("tool_definitions", 5, document.agent.tool_definitions),
        ("trajectory_id", 7, document.trajectory_id),
        ("subagent_trajectories", 7, document.subagent_trajectories),
        ("audio", 8, _has_audio(document) or None),
    ]
    for step in document.steps:
        metrics = step.metrics or Metrics()
        results = step.observation.results if step.observation else []
        parts = any(isinstance(content, list) for content in contents(step))
        extras = [call.extra for call in step.tool_calls or ()] + [r.extra for r in results]
        used += [
            ("observation on a system step", 2, results if step.source == "system" else None),
            ("completion_token_ids", 3, metrics.completion_token_ids),
            ("prompt_token_ids", 4, metrics.prompt_token_ids),
            ("is_copied_context", 5, step.is_copied_context),
            ("content in parts", 6, parts or None),
            ("llm_call_count", 7, step.llm_call_count),
            ("extra of calls and results", 7, next((e for e in extras if e is not None), None)),
        ]
    return ((feature, since) for feature, since, value in used if value is not None)
