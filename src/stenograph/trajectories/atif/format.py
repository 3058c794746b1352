"""The shapes of an ATIF document, field by field (`atif.md` section 1).

Every object is closed: free-form data lives only in `extra`, `arguments` and `tool_definitions`.
A schema field that is null in a document is the same as one that is absent, and is written absent.
"""

from typing import Any, Literal, TypeAlias

from msgspec import Struct

Json: TypeAlias = Any
Extra: TypeAlias = dict[str, Json]
Source: TypeAlias = Literal["system", "user", "agent"]


class _Closed(Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True, gc=False):
    """A document is a tree, so the collector has nothing to find in it (`gc=False`)."""


class MediaSource(_Closed):
    """Where an image (1.6) or audio (1.8) part lies; `path` is relative to the document."""

    media_type: str
    path: str
    duration_sec: float | None = None


class ContentPart(_Closed):
    """One part of a message or result (1.6): `text` for type text, else `source`."""

    type: Literal["text", "image", "audio"]
    text: str | None = None
    source: MediaSource | None = None


Content: TypeAlias = str | list[ContentPart]


class ToolCall(_Closed):
    """A call the model asked for; `tool_call_id` is named by the results of the same step."""

    tool_call_id: str
    function_name: str
    arguments: dict[str, Json]
    extra: Extra | None = None


class SubagentTrajectoryRef(_Closed):
    """Points at a child document: embedded (`trajectory_id`) or a file (`trajectory_path`)."""

    trajectory_id: str | None = None
    trajectory_path: str | None = None
    session_id: str | None = None
    extra: Extra | None = None


class ObservationResult(_Closed):
    """What came back; a null `source_call_id` means that it answers no call of this step."""

    source_call_id: str | None = None
    content: Content | None = None
    subagent_trajectory_ref: list[SubagentTrajectoryRef] | None = None
    extra: Extra | None = None


class Observation(_Closed):
    results: list[ObservationResult]


class Metrics(_Closed):
    """Tokens and cost of one inference. `prompt_tokens` includes `cached_tokens`; US dollars."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    cost_usd: float | None = None
    prompt_token_ids: list[int] | None = None
    completion_token_ids: list[int] | None = None
    logprobs: list[float] | None = None
    extra: Extra | None = None


class Step(_Closed):
    """One entry of the interaction; `step_id` runs 1, 2, 3 … within its document."""

    step_id: int
    source: Source
    message: Content
    timestamp: str | None = None
    model_name: str | None = None
    reasoning_effort: str | float | None = None
    reasoning_content: str | None = None
    tool_calls: list[ToolCall] | None = None
    observation: Observation | None = None
    metrics: Metrics | None = None
    is_copied_context: bool | None = None
    llm_call_count: int | None = None
    extra: Extra | None = None


class Agent(_Closed):
    name: str
    version: str
    model_name: str | None = None
    tool_definitions: list[dict[str, Json]] | None = None
    extra: Extra | None = None


class FinalMetrics(_Closed):
    total_prompt_tokens: int | None = None
    total_completion_tokens: int | None = None
    total_cached_tokens: int | None = None
    total_cost_usd: float | None = None
    total_steps: int | None = None
    extra: Extra | None = None


class Trajectory(_Closed):
    """A whole document; children are documents of their own, numbered from 1."""

    schema_version: str
    agent: Agent
    steps: list[Step]
    session_id: str | None = None
    trajectory_id: str | None = None
    notes: str | None = None
    final_metrics: FinalMetrics | None = None
    continued_trajectory_ref: str | None = None
    subagent_trajectories: "list[Trajectory] | None" = None
    extra: Extra | None = None
