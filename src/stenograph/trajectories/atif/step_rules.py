"""The rules of ATIF for steps, in one pass over a document (`atif.md` sections 1 and 4 to 6).

Refused: wrong numbering, unreadable times, agent-only fields elsewhere, a result for a call that
the step does not have, parts that are not what their type says, media paths that lead out, negative
counts. Warned about and kept: a call id used twice, copies with metrics, more cached than prompt
tokens.
"""

from collections.abc import Iterable
from datetime import datetime
from math import inf

from stenograph.trajectories.atif import media
from stenograph.trajectories.atif.findings import Findings
from stenograph.trajectories.atif.format import (
    ContentPart,
    Metrics,
    Observation,
    Step,
    SubagentTrajectoryRef,
    ToolCall,
)

#: No count is larger: sums of such stay below 40 digits, which an export would have to mask.
MOST = 2**96

Refs = list[tuple[str, SubagentTrajectoryRef]]

_AGENT_ONLY = ("model_name", "reasoning_effort", "reasoning_content", "tool_calls", "metrics")
_COUNTS = ("prompt_tokens", "completion_tokens", "cached_tokens", "cost_usd")


def check_steps(findings: Findings, steps: Iterable[Step | None], at: str = "") -> Refs:
    """Check the steps of one document (None: one that cannot be read); return their refs.

    Audio media types get their one spelling in place.
    """
    refs: Refs = []
    call_ids: set[str] = set()
    count = 0
    for count, step in enumerate(steps, 1):
        if step is None:
            continue
        here = f"{at}/steps/{count - 1}"
        if step.step_id != count:
            findings.refuse(f"{here}/step_id", f"expected {count}, got {step.step_id}")
        if step.timestamp is not None and not _is_time(step.timestamp):
            findings.refuse(f"{here}/timestamp", "this is no ISO 8601 date and time")
        if step.source != "agent":
            _check_not_agent(findings, step, here)
        if step.message.__class__ is not str:
            _check_parts(findings, step.message, f"{here}/message")  # type: ignore[arg-type]
        if step.metrics is not None:
            _check_metrics(findings, step.metrics, f"{here}/metrics")
            if step.is_copied_context:
                findings.warn(f"{here}/metrics", "a copied step has metrics; they are not counted")
        if step.llm_call_count is not None:
            _check_call_count(findings, step, step.llm_call_count, here)
        own: set[str] = set()
        if step.tool_calls:
            own = _check_calls(findings, step.tool_calls, call_ids, here)
        if step.observation is not None:
            refs += _check_results(findings, step.observation, own, here)
        if step.extra:
            findings.free.append(step.extra)
    if count == 0:
        findings.refuse(f"{at}/steps", "a document has at least one step")
    return refs


def check_number(findings: Findings, value: float | None, at: str) -> None:
    """Refuse a count or cost that is negative or not finite, or a count of absurd length."""
    if value is None:
        return
    if not 0 <= value < inf:
        findings.refuse(at, "expected a number that is not negative")
    elif type(value) is int and value > MOST:
        findings.refuse(at, "this number is out of range")


def _check_token_ids(findings: Findings, ids: list[int] | None, at: str) -> None:
    if ids and not (min(ids) >= -MOST and max(ids) <= MOST):
        findings.refuse(at, "a number in it is out of range")


def _is_time(text: str) -> bool:
    try:
        datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return False
    return True


def _check_not_agent(findings: Findings, step: Step, here: str) -> None:
    for name in _AGENT_ONLY:
        if getattr(step, name) is not None:
            findings.refuse(
                f"{here}/{name}", f"only an agent step has this, not a {step.source} one"
            )


def _check_metrics(findings: Findings, metrics: Metrics, at: str) -> None:
    prompt, cached = metrics.prompt_tokens, metrics.cached_tokens
    for name in _COUNTS:
        check_number(findings, getattr(metrics, name), f"{at}/{name}")
    for name in ("prompt_token_ids", "completion_token_ids"):
        _check_token_ids(findings, getattr(metrics, name), f"{at}/{name}")
    if cached is not None and prompt is not None and cached > prompt:
        findings.warn(f"{at}/cached_tokens", "more cached tokens than prompt tokens")
    if metrics.extra:
        findings.free.append(metrics.extra)


def _check_call_count(findings: Findings, step: Step, count: int, here: str) -> None:
    check_number(findings, count, f"{here}/llm_call_count")
    if count == 0 and step.source == "agent":
        for name in ("metrics", "reasoning_content"):
            if getattr(step, name) is not None:
                findings.refuse(f"{here}/{name}", "a step without a model call cannot have this")


def _check_calls(findings: Findings, calls: list[ToolCall], seen: set[str], here: str) -> set[str]:
    own: set[str] = set()
    for index, call in enumerate(calls):
        if call.tool_call_id in own:
            at = f"{here}/tool_calls/{index}/tool_call_id"
            findings.warn(at, "this step has another call of the same id")
        elif call.tool_call_id in seen:
            at = f"{here}/tool_calls/{index}/tool_call_id"
            findings.warn(at, "an earlier step has a call of the same id")
        own.add(call.tool_call_id)
        if call.arguments:
            findings.free.append(call.arguments)
        if call.extra:
            findings.free.append(call.extra)
    seen |= own
    return own


def _check_results(
    findings: Findings, observation: Observation, calls: set[str], here: str
) -> Refs:
    refs: Refs = []
    for index, result in enumerate(observation.results):
        if result.source_call_id is not None and result.source_call_id not in calls:
            at = f"{here}/observation/results/{index}/source_call_id"
            findings.refuse(at, "this step has no tool call of this id")
        if result.content.__class__ is list:
            at = f"{here}/observation/results/{index}/content"
            _check_parts(findings, result.content, at)
        if result.subagent_trajectory_ref:
            at = f"{here}/observation/results/{index}/subagent_trajectory_ref"
            refs += [(f"{at}/{n}", ref) for n, ref in enumerate(result.subagent_trajectory_ref)]
        if result.extra:
            findings.free.append(result.extra)
    return refs


def _check_parts(findings: Findings, parts: list[ContentPart], at: str) -> None:
    for index, part in enumerate(parts):
        here = f"{at}/{index}"
        if part.type == "text":
            if part.text is None:
                findings.refuse(f"{here}/text", "a text part has a text")
            if part.source is not None:
                findings.refuse(f"{here}/source", "a text part has no source")
            continue
        if part.text is not None:
            findings.refuse(f"{here}/text", f"an {part.type} part has no text")
        if part.source is None:
            findings.refuse(f"{here}/source", f"an {part.type} part has a source")
        else:
            _check_source(findings, part, here)


def _check_source(findings: Findings, part: ContentPart, here: str) -> None:
    source = part.source
    assert source is not None
    allowed = media.IMAGES
    if part.type == "audio":
        allowed = media.AUDIO
        source.media_type = media.audio_type(source.media_type)
        check_number(findings, source.duration_sec, f"{here}/source/duration_sec")
    elif source.duration_sec is not None:
        findings.refuse(f"{here}/source/duration_sec", "an image has no duration")
    if source.media_type not in allowed:
        findings.refuse(f"{here}/source/media_type", f"expected one of {', '.join(allowed)}")
    if problem := media.path_problem(source.path):
        findings.refuse(f"{here}/source/path", problem)
