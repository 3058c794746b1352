"""The shapes of the Agent API. A member without a default is always there, null included; one with
a default is left out when it has it. Moments are ISO 8601 in UTC, whole seconds."""

from typing import Annotated, Any, Literal, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType

Visibility: TypeAlias = Literal["visible", "excluded_from_context", "hidden"]
Level: TypeAlias = Literal["full", "read", "none"]


class Shape(Struct, omit_defaults=True):
    """The base of every answer."""


class KeysetPagination(Shape, kw_only=True):
    """`next_after` goes into `after`; null at the end."""

    next_after: str | None


class BackwardPagination(Shape, kw_only=True):
    """`next_before` goes into `before` to read older tasks; it is opaque."""

    next_before: str | None
    has_older: bool


# Workspaces


class Person(Shape, kw_only=True):
    """Someone who belongs to a workspace."""

    public_id: str
    handle: str
    kind: Literal["human", "agent"]
    display_name: str
    agent_identifier: str | None
    steward_public_id: str | None


class Owner(Shape, kw_only=True):
    """Who owns a workspace."""

    public_id: str
    display_name: str


class Creator(Owner, kw_only=True):
    """Who made a workspace."""

    kind: Literal["human", "agent"]


class WorkspaceLine(Shape, kw_only=True):
    """A workspace in a list."""

    public_id: str
    name: str
    access_mode: Literal["private", "account_wide"]
    state: str
    dedicated: bool
    lock_version: int
    archived_at: str | None
    created_at: str
    updated_at: str


class Workspace(WorkspaceLine, kw_only=True):
    """A workspace in full."""

    metadata: dict[str, Any]
    tool_provider_overrides: dict[str, Any]
    owner: Owner
    creator: Creator


class WorkspaceAnswer(Shape, kw_only=True):
    """One workspace."""

    workspace: Workspace


class Workspaces(Shape, kw_only=True):
    """A page of workspaces."""

    workspaces: list[WorkspaceLine]
    pagination: KeysetPagination


class Principals(Shape, kw_only=True):
    """Everyone who belongs to a workspace."""

    principals: list[Person]


class NewWorkspace(Struct):
    """A workspace to make. `private`: only its owner and `members` (ids or handles) see it."""

    name: Annotated[str, Meta(max_length=255)]
    access_mode: Literal["private", "account_wide"] = "private"
    metadata: dict[str, Any] = {}
    members: list[str] = []


class WorkspaceBody(Struct):
    """The body that makes a workspace."""

    workspace: NewWorkspace


class WorkspaceChange(Struct):
    """What to set of a workspace; what is left out stays. `members` are all there are, beside the
    owner."""

    lock_version: int
    name: str | UnsetType = UNSET
    access_mode: Literal["private", "account_wide"] | UnsetType = UNSET
    metadata: dict[str, Any] | UnsetType = UNSET
    members: list[str] | UnsetType = UNSET


class WorkspaceChangeBody(Struct):
    """The body that changes a workspace."""

    workspace: WorkspaceChange


class WorkspaceVersion(Struct):
    """Which version of a workspace you mean."""

    lock_version: int


class WorkspaceVersionBody(Struct):
    """The body that archives or restores a workspace."""

    workspace: WorkspaceVersion


# Conversations


class Parent(Shape, kw_only=True):
    """What started a subagent's conversation."""

    public_id: str
    spawn_node_key: str | None
    label: str | None


class ConversationLine(Shape, kw_only=True):
    """A conversation in a list."""

    public_id: str
    title: str | None
    answering_user_public_id: str | None
    archived_at: str | None
    billing_subject: str | None
    parent: Parent | None
    forked_from_turn_public_id: str | None
    forked_from_variant_public_id: str | None
    source_conversation_public_id: str | None
    side: bool
    active_turn_public_id: str | None
    context_revision: int
    last_activity_at: str
    created_at: str
    updated_at: str


class InputQueue(Shape, kw_only=True):
    """How many inputs may wait, and whether they are held back."""

    limit: int
    held: bool


class Context(Shape, kw_only=True):
    """How full the context was at the newest model call."""

    used_tokens: int
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    window_tokens: int | None
    used_percent: float | None
    as_of_model: str | None


class UsageSummary(Shape, kw_only=True):
    """What all model calls of a conversation took; it outlives their details.

    `input_tokens` holds what was read from a cache (`cache_read_tokens`) and what was not
    (`uncached_input_tokens`, of which `cache_creation_tokens` were written to one).
    `cost_complete`: no call's cost is unknown.
    """

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


class AccessEntry(Shape, kw_only=True):
    """Named access."""

    user_public_id: str
    handle: str
    level: Level


class Access(Shape, kw_only=True):
    """Who may do what: `default` for everyone who is not named, answers or made it."""

    default: Level
    entries: list[AccessEntry]


class DefaultRunner(Shape, kw_only=True):
    """The device whose tools a conversation's agents use."""

    executor_public_id: str
    name: str


class Conversation(ConversationLine, kw_only=True):
    """A conversation in full."""

    metadata: dict[str, Any]
    memory_context: None
    input_queue: InputQueue
    latest_event_cursor: str
    context: Context | None
    usage_summary: UsageSummary
    default_runner: DefaultRunner | None
    access: Access


class ConversationAnswer(Shape, kw_only=True):
    """One conversation."""

    conversation: Conversation


class Conversations(Shape, kw_only=True):
    """A page of conversations."""

    conversations: list[ConversationLine]
    pagination: KeysetPagination


class NewEntry(Struct):
    """Named access, by id or by handle."""

    level: Level
    user_public_id: str | None = None
    handle: str | None = None


class NewAccess(Struct):
    """Who may do what."""

    default: Level = "full"
    entries: list[NewEntry] = []


class NewConversation(Struct):
    """A conversation to make."""

    title: str | None = None
    metadata: dict[str, Any] = {}
    billing_subject: str | None = None
    default_runner_executor_public_id: str | None = None
    answering_user_public_id: str | None = None
    access: NewAccess | None = None
    memory_context: Any = None


class ConversationBody(Struct):
    """The body that makes a conversation."""

    conversation: NewConversation


class ConversationChange(Struct):
    """What to set of a conversation; what is left out stays."""

    title: str | UnsetType | None = UNSET
    metadata: dict[str, Any] | UnsetType = UNSET


class ConversationChangeBody(Struct):
    """The body that changes a conversation."""

    conversation: ConversationChange


class WholeAccess(Struct):
    """Who may do what from now on: `default` for everyone who is not in `entries`."""

    default: Level
    entries: list[NewEntry] = []


class AccessBody(Struct):
    """The body that replaces an access list."""

    access: WholeAccess


class NewRunner(Struct):
    """The device to use; null: none."""

    executor_public_id: str | None


class DefaultRunnerBody(Struct):
    """The body that chooses a default runner."""

    default_runner: NewRunner


# Events


class Resource(Shape, kw_only=True):
    """What an event happened to."""

    type: Literal["conversation"]
    public_id: str


class Event(Shape, kw_only=True):
    """Something that happened; `payload` names turns, candidates, runs and tasks."""

    public_id: str
    sequence: int
    cursor: str
    type: str
    resource: Resource
    occurred_at: str
    payload: dict[str, Any]


class EventPagination(Shape, kw_only=True):
    """`next_after` is null on an empty page; `watermark` is the newest event's number."""

    next_after: str | None
    watermark: int


class Events(Shape, kw_only=True):
    """A page of events, oldest first."""

    events: list[Event]
    pagination: EventPagination
