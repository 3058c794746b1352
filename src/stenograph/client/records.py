"""What the server tells, as immutable values. Members that this version does not know are left out,
words that grow (`status`, `kind`) are plain text. Moments are ISO 8601 in UTC, whole seconds."""

from collections.abc import Mapping
from typing import Any, Generic, TypeVar

from msgspec import Struct

T = TypeVar("T")


class Record(Struct, frozen=True):
    """The base of every value."""

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values; members that are None are left out."""
        found = {name: _plain(getattr(self, name)) for name in self.__struct_fields__}
        return {name: value for name, value in found.items() if value is not None}


def _plain(value: Any) -> Any:
    if isinstance(value, Record):
        return value.to_dict()
    return [_plain(it) for it in value] if isinstance(value, tuple) else value


class Page(Record, Generic[T], frozen=True):
    """Some of a list; `next_after` is None at its end."""

    items: tuple[T, ...]
    next_after: str | None = None


class OlderPage(Record, Generic[T], frozen=True):
    """The newest, or what is older than `next_before` of the page before, in order of creation."""

    items: tuple[T, ...]
    next_before: str | None
    has_older: bool


# Workspaces


class Person(Record, frozen=True, kw_only=True):
    """Someone who belongs to a workspace."""

    public_id: str
    handle: str
    kind: str
    display_name: str
    agent_identifier: str | None = None
    steward_public_id: str | None = None


class WorkspaceLine(Record, frozen=True, kw_only=True):
    """A workspace in a list."""

    public_id: str
    name: str
    access_mode: str
    state: str
    dedicated: bool
    lock_version: int
    archived_at: str | None = None
    created_at: str
    updated_at: str


class Owner(Record, frozen=True, kw_only=True):
    """Who owns a workspace, or made it."""

    public_id: str
    display_name: str
    kind: str | None = None


class Workspace(WorkspaceLine, frozen=True, kw_only=True):
    """A workspace in full."""

    metadata: Mapping[str, Any]
    tool_provider_overrides: Mapping[str, Any]
    owner: Owner
    creator: Owner


class WorkspaceReceipt(Record, frozen=True, kw_only=True):
    """A workspace that was made; `replayed`: by an earlier request with the same key."""

    workspace: Workspace
    replayed: bool
    idempotency_key: str


# Conversations


class Parent(Record, frozen=True, kw_only=True):
    """What started a subagent's conversation."""

    public_id: str
    spawn_node_key: str | None = None
    label: str | None = None


class ConversationLine(Record, frozen=True, kw_only=True):
    """A conversation in a list."""

    public_id: str
    title: str | None = None
    answering_user_public_id: str | None = None
    archived_at: str | None = None
    billing_subject: str | None = None
    parent: Parent | None = None
    forked_from_turn_public_id: str | None = None
    forked_from_variant_public_id: str | None = None
    source_conversation_public_id: str | None = None
    side: bool
    active_turn_public_id: str | None = None
    context_revision: int
    last_activity_at: str
    created_at: str
    updated_at: str


class InputQueue(Record, frozen=True, kw_only=True):
    """How many inputs may wait, and whether they are held back."""

    limit: int
    held: bool


class ContextFill(Record, frozen=True, kw_only=True):
    """How full the context was at the newest model call, in tokens."""

    used_tokens: int
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    window_tokens: int | None = None
    used_percent: float | None = None
    as_of_model: str | None = None


class UsageSummary(Record, frozen=True, kw_only=True):
    """What all model calls took, in tokens; `cost_amount` is a decimal number of `cost_unit`."""

    request_count: int
    input_tokens: int
    cache_read_tokens: int
    uncached_input_tokens: int
    cache_creation_tokens: int
    cache_hit_rate: float | None = None
    output_tokens: int
    reasoning_tokens: int
    total_tokens: int
    cost_amount: str
    cost_complete: bool
    cost_unit: str


class AccessEntry(Record, frozen=True, kw_only=True):
    """Named access: `full`, `read` or `none`."""

    user_public_id: str
    handle: str
    level: str


class Access(Record, frozen=True, kw_only=True):
    """Who may do what: `default` for everyone who is not named, answers or made it."""

    default: str
    entries: tuple[AccessEntry, ...]


class DefaultRunner(Record, frozen=True, kw_only=True):
    """The device whose tools a conversation's agents use."""

    executor_public_id: str
    name: str | None = None


class Conversation(ConversationLine, frozen=True, kw_only=True):
    """A conversation in full; `latest_event_cursor` is where a feed of what comes begins."""

    metadata: Mapping[str, Any]
    memory_context: Any = None
    input_queue: InputQueue
    latest_event_cursor: str
    context: ContextFill | None = None
    usage_summary: UsageSummary
    default_runner: DefaultRunner | None = None
    access: Access


class RunnerEffects(Record, frozen=True, kw_only=True):
    """What runners changed outside; `unavailable` once execution details were collected."""

    status: str
    runners: tuple[Any, ...] = ()
    reason: str | None = None


class ConversationReceipt(Record, frozen=True, kw_only=True):
    """A conversation that was made; `replayed`: by an earlier request with the same key.

    `runner_effects` is told of forks: what runners had changed by the answer forked at.
    """

    conversation: Conversation
    replayed: bool
    idempotency_key: str
    runner_effects: RunnerEffects | None = None


class Estimate(Record, frozen=True, kw_only=True):
    """How full the context would be, in tokens; `entries` are the messages, if they were asked for.

    `model` has `provider_id` and `model_ref`; `parts`: tokens by what they are.
    """

    model: Mapping[str, Any]
    input_tokens: int
    window_tokens: int
    used_percent: float
    compacts_at_tokens: int
    parts: Mapping[str, int]
    entries: tuple[Any, ...] | None = None


class Compaction(Record, frozen=True, kw_only=True):
    """The turn that will be a summary, or within which one is made: `summary_task_key`."""

    turn_public_id: str
    position: int
    kind: str
    turn_status: str
    task_key: str | None = None
    task_status: str | None = None
    summary_task_key: str | None = None

    @property
    def mid_turn(self) -> bool:
        """Whether it is made within a turn that is under way."""
        return self.summary_task_key is not None


# Events


class Event(Record, frozen=True, kw_only=True):
    """Something that happened. Save `cursor` when you have handled it.

    `payload` names turns, candidates, runs and tasks; `resource` has `type` and `public_id`.
    """

    public_id: str
    sequence: int
    cursor: str
    type: str
    resource: Mapping[str, str]
    occurred_at: str
    payload: Mapping[str, Any]


class EventPage(Record, frozen=True, kw_only=True):
    """Events, oldest first. `watermark` is the newest one's number, expired or not."""

    items: tuple[Event, ...]
    next_after: str | None
    watermark: int


class Frame(Record, frozen=True, kw_only=True):
    """Something told live. `cursor`: it is kept, and can be resumed from."""

    type: str
    data: Mapping[str, Any]
    cursor: str | None = None

    @property
    def text(self) -> str:
        """What a delta adds, or the text of a settled round."""
        found = self.data.get("text")
        return found if isinstance(found, str) else ""


# Search


class Match(Record, frozen=True, kw_only=True):
    """Where a search found something; of a title, turn, candidate and position are None."""

    conversation_public_id: str
    title: str | None = None
    turn_public_id: str | None = None
    variant_public_id: str | None = None
    position: int | None = None
    field: str
    inherited: bool
    excerpt: str
    truncated: bool
