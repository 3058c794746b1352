"""What every reader of logs makes: a session as values, before it becomes rows.

A draft is an ATIF document's content plus the facts of the record that ATIF has no place for:
which user step opens a turn, native reasoning, how each turn ended, what was kept aside.
"""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from stenograph.trajectories.atif.format import Agent, Step

#: `prompt` opens a turn; `steer` is a message that arrived while the agent worked; `agent` is one
#: model call with its tool calls and results; `system` is everything else (system prompt, injected
#: context, compaction, results that belong to no call).
Part: TypeAlias = Literal["system", "prompt", "steer", "agent"]
Origin: TypeAlias = Literal["person", "agent", "task_result", "child"]
TurnStatus: TypeAlias = Literal["running", "completed", "failed", "canceled", "timed_out"]


@dataclass(slots=True)
class StepDraft:
    """One step of a log.

    `step.step_id` is ignored: the record numbers steps when it writes them out.
    """

    part: Part
    step: Step
    #: The log's own identity of this entry (message id, line uuid), unique within the session. It
    #: finds the same step again in a file that has grown. None: its ordinal is its identity.
    key: str | None = None
    #: Who sent a prompt or steer. `child`: the report of a background subagent, no human turn.
    origin: Origin = "person"
    #: Agent steps: the provider ("anthropic", "openai"), where the log tells.
    provider_id: str | None = None
    reasoning_enabled: bool | None = None
    #: Agent steps: native material (signatures, redacted or encrypted reasoning) as JSON text.
    #: Kept for replay, never served.
    reasoning_trace: str | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None
    #: Ids of tool calls that the log shows as failed, or as ended with no result.
    failed_calls: frozenset[str] = frozenset()
    #: When each call's result came back, by call id, as ISO 8601 text.
    result_times: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Abandoned:
    """A branch the person left by rewinding: what was at `turn` (0-based) and after, before that.

    One turn long, it becomes an inactive candidate of that slot; longer, a fork of its own.
    """

    turn: int
    steps: list[StepDraft]


@dataclass(slots=True)
class Media:
    """An image or audio file of the log; steps point at it by `path` (`media/<name>`)."""

    path: str
    media_type: str
    data: bytes


@dataclass(slots=True)
class SessionDraft:
    """One session of a log, with its subagents."""

    format: Literal["atif", "claude-code", "codex"]
    agent: Agent
    steps: list[StepDraft]
    #: The log's own id of the session; with `format` it finds the session again on a later import.
    key: str
    #: The identity this session has inside exported documents, when the log gives one. The
    #: `subagent_trajectory_ref`s of the parent's results name the children's `trajectory_id`.
    trajectory_id: str | None = None
    session_id: str | None = None
    #: Key of the session that started this one, when that log was not read together with it.
    parent_key: str | None = None
    title: str | None = None
    started_at: str | None = None
    #: How turn n (0-based, in order of the `prompt` steps) ended, with a reason; absent: completed.
    turn_ends: dict[int, tuple[TurnStatus, str | None]] = field(default_factory=dict)
    abandoned: list[Abandoned] = field(default_factory=list)
    children: "list[SessionDraft]" = field(default_factory=list)
    media: list[Media] = field(default_factory=list)
    #: Root fields of an ATIF document that are neither agent nor steps: notes, extra,
    #: final_metrics, continued_trajectory_ref, as JSON-ready values.
    document: dict[str, object] = field(default_factory=dict)
    #: What was read but is no step, by kind: {"attachment": 2}. It stays in the original bytes.
    kept_aside: dict[str, int] = field(default_factory=dict)
    #: Sentences for the person who imports: what could not be placed, and why.
    warnings: list[str] = field(default_factory=list)
    #: Lone surrogates that were replaced by U+FFFD.
    replaced_characters: int = 0
    #: The original files this session was read from: name → bytes.
    originals: dict[str, bytes] = field(default_factory=dict)
