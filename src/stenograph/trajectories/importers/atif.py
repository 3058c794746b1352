"""ATIF documents as drafts: nothing is reworded, only placed (RFC 0001, `atif.md`).

Steps are kept in the normal form of `atif/writing.py`. What ATIF does not say is not made up: when
a call ended, which provider answered, how a turn ended.
"""

import hashlib
from collections.abc import Iterator, Mapping
from posixpath import normpath

import msgspec

from stenograph.trajectories.atif.check import parse
from stenograph.trajectories.atif.format import MediaSource, Metrics, Step, Trajectory
from stenograph.trajectories.atif.media import is_local
from stenograph.trajectories.atif.versions import contents
from stenograph.trajectories.atif.writing import normal_steps
from stenograph.trajectories.importers.draft import Media, Origin, Part, SessionDraft, StepDraft

#: What producers call the tokens written to a provider's cache, and those spent on reasoning, in
#: the `extra` of a step's metrics.
_CACHE_WRITES = ("cache_write_tokens", "cache_creation_input_tokens")
_REASONING = ("reasoning_tokens", "reasoning_output_tokens")

_BIGGEST = 2**63 - 1


def read(
    data: bytes, *, files: Mapping[str, bytes] | None = None, name: str = "document"
) -> SessionDraft:
    """Read a document with its embedded children.

    `files`: what lies beside the document, by path relative to it; media that its steps name are
    taken from there. A `data:` URI needs none: its bytes stay in the step.
    `name`: what the original bytes are called in the record.
    Raises InvalidInputError, with every problem's JSON pointer.
    """
    parsed = parse(data)
    draft = _session(parsed.trajectory, files or {}, digest=hashlib.sha256(data).hexdigest()[:32])
    draft.warnings[:0] = parsed.warnings
    draft.replaced_characters = parsed.replaced_characters
    draft.originals = {name: data}
    if parsed.unknown:
        draft.document["unknown_fields"] = parsed.unknown
    return draft


def _session(
    document: Trajectory, files: Mapping[str, bytes], *, digest: str, origin: Origin = "person"
) -> SessionDraft:
    steps = normal_steps(document)
    draft = SessionDraft(
        format="atif",
        agent=document.agent,
        steps=[
            step_draft(part, step, origin) for part, step in zip(parts(steps), steps, strict=True)
        ],
        key=document.trajectory_id or document.session_id or digest,
        trajectory_id=document.trajectory_id,
        session_id=document.session_id,
        started_at=next((step.timestamp for step in steps if step.timestamp is not None), None),
        document=_root(document),
    )
    draft.children = [
        _session(child, files, digest=f"{digest[:24]}-{index}", origin="agent")
        for index, child in enumerate(document.subagent_trajectories or ())
    ]
    _take_media(draft, files)
    return draft


def parts(steps: list[Step]) -> Iterator[Part]:
    """Say what each step of a document is.

    A user step opens a turn, unless it arrives while the agent is at work: the agent's last step
    has calls, all with results, so it goes on by itself, and a later step shows that it did.
    """
    last = max((n for n, step in enumerate(steps) if step.source == "agent"), default=-1)
    at_work = False
    for number, step in enumerate(steps):
        if step.source == "agent":
            at_work = _goes_on(step)
            yield "agent"
        elif step.source == "system":
            yield "system"
        elif at_work and number < last:
            yield "steer"
        else:
            at_work = False
            yield "prompt"


def _goes_on(step: Step) -> bool:
    results = step.observation.results if step.observation else ()
    answered = {result.source_call_id for result in results}
    return bool(step.tool_calls) and all(c.tool_call_id in answered for c in step.tool_calls or ())


def step_draft(part: Part, step: Step, origin: Origin = "person") -> StepDraft:
    """Return a step with the facts of the record that its `extra`s tell."""
    results = step.observation.results if step.observation else ()
    return StepDraft(
        part=part,
        step=step,
        origin=origin,
        reasoning_enabled=True if step.reasoning_content else None,
        cache_write_tokens=_count(step.metrics, _CACHE_WRITES),
        reasoning_tokens=_count(step.metrics, _REASONING),
        failed_calls=frozenset(
            result.source_call_id
            for result in results
            if result.source_call_id is not None
            and result.extra is not None
            and result.extra.get("is_error") is True
        ),
    )


def _count(metrics: Metrics | None, names: tuple[str, ...]) -> int | None:
    extra = (metrics and metrics.extra) or {}
    for name in names:
        value = extra.get(name)
        if type(value) is int and 0 <= value <= _BIGGEST:
            return value
    return None


def _root(document: Trajectory) -> dict[str, object]:
    """Return the root fields that are neither agent, steps, children nor identities."""
    fields = {
        "schema_version": document.schema_version,
        "notes": document.notes,
        "extra": document.extra,
        "final_metrics": document.final_metrics and msgspec.to_builtins(document.final_metrics),
        "continued_trajectory_ref": document.continued_trajectory_ref,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _take_media(draft: SessionDraft, files: Mapping[str, bytes]) -> None:
    by_path = {normpath(path): data for path, data in files.items()}
    named = {source.path: source for source in _sources(draft.steps) if is_local(source.path)}
    missing = 0
    for path, source in named.items():
        found = by_path.get(normpath(path))
        if found is None:
            missing += 1
        else:
            draft.media.append(Media(path, source.media_type, found))
    if missing:
        draft.warnings.append(f"{missing} media files that steps name were not given along")


def _sources(steps: list[StepDraft]) -> Iterator[MediaSource]:
    for draft in steps:
        for content in contents(draft.step):
            for part in content if isinstance(content, list) else ():
                if part.source is not None:
                    yield part.source
