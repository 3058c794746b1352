"""What the server tells of inputs, turns, candidates and runs; see `records`."""

from collections.abc import Mapping
from typing import Any

from stenograph.client.records import InputQueue, Record, RunnerEffects


class Model(Record, frozen=True, kw_only=True):
    """Which model answered, with its effective reasoning settings."""

    provider_id: str | None = None
    model_ref: str | None = None
    reasoning_effort: str | None = None
    reasoning_enabled: bool | None = None


class Speaker(Record, frozen=True, kw_only=True):
    """Who said it."""

    user_public_id: str
    handle: str
    kind: str
    display_name: str


class Attachment(Record, frozen=True, kw_only=True):
    """A file that came with an input; `byte_size` is of its bytes as they came."""

    public_id: str
    filename: str
    content_type: str
    byte_size: int


# Inputs


class Input(Record, frozen=True, kw_only=True):
    """A row of the input queue."""

    public_id: str
    queue_position: int
    state: str
    kind: str
    role: str
    delivery_mode: str
    context_mode: str
    context_options: Mapping[str, Any]
    tool_names: tuple[str, ...] | None = None
    approval_mode: str | None = None
    instructions: Any = None
    blocked_reason: str | None = None
    text: str | None = None
    attachments: tuple[Attachment, ...] | None = None
    steps: Any = None
    lock_version: int
    created_at: str
    deliver_at: str | None = None
    origin: str
    sender_conversation_public_id: str | None = None
    callback_result: Any = None
    answering_user_public_id: str | None = None
    speaker: Speaker | None = None
    expected_steering_run_public_id: str | None = None


class Inputs(Record, frozen=True, kw_only=True):
    """What waits: the system's own rows first, then in order of arrival."""

    items: tuple[Input, ...]
    input_queue: InputQueue


class InputReceipt(Record, frozen=True, kw_only=True):
    """An input that was accepted; `replayed`: of an earlier request with the same key."""

    input: Input
    replayed: bool
    idempotency_key: str


class Materialization(Record, frozen=True, kw_only=True):
    """What an input became; `variant_public_id` is the original candidate."""

    input_public_id: str
    turn_public_id: str
    variant_public_id: str
    run_public_id: str | None = None


# Turns and candidates


class Round(Record, frozen=True, kw_only=True):
    """A round of a candidate's run in short."""

    task_key: str
    status: str
    visibility: str
    text_preview: str | None = None


class Variant(Record, frozen=True, kw_only=True):
    """A candidate answer. `rounds` are the newest of its run; `active` is told in decks only."""

    public_id: str
    source: str
    status: str
    model: Model | None = None
    content_preview: str | None = None
    content: str | None = None
    prompt_text: str | None = None
    run_public_id: str | None = None
    rounds: tuple[Round, ...] | None = None
    runner_effects: RunnerEffects
    memory_context: Any = None
    attachments: tuple[Attachment, ...] | None = None
    origin_variant_public_id: str | None = None
    details_pruned_at: str | None = None
    active: bool | None = None


class Turn(Record, frozen=True, kw_only=True):
    """One slot of a conversation; `reference`: a side's snapshot of what was under way."""

    public_id: str
    input_public_id: str | None = None
    callback_sources: tuple[Any, ...] = ()
    position: int
    kind: str
    role: str
    status: str
    visibility: str
    inherited: bool
    origin: str
    answering_user_public_id: str | None = None
    speaker: Speaker | None = None
    sender_conversation_public_id: str | None = None
    sender_run_public_id: str | None = None
    sender_task_key: str | None = None
    reference: bool = False
    active_variant: Variant | None = None
    running_variant: Variant | None = None
    created_at: str


class TurnPage(Record, frozen=True, kw_only=True):
    """Turns in order of position, and the positions of the first and the last one."""

    items: tuple[Turn, ...]
    before_position: int | None
    after_position: int | None


class TurnName(Record, frozen=True, kw_only=True):
    """A turn by its id; `inherited`: it is an ancestor's."""

    public_id: str
    inherited: bool


class Deck(Record, frozen=True, kw_only=True):
    """The candidates of a turn that are not concealed, in order."""

    variants: tuple[Variant, ...]
    turn: TurnName

    @property
    def active(self) -> Variant | None:
        """The one that the turn shows."""
        return next((it for it in self.variants if it.active), None)


class Regeneration(Record, frozen=True, kw_only=True):
    """A candidate that is being made beside the one that its turn shows.

    `replayed`: an earlier request with the same key asked for it.
    """

    turn_public_id: str
    turn_status: str
    variant: Variant
    replayed: bool
    idempotency_key: str


class Request(Record, frozen=True, kw_only=True):
    """What was sent to a model."""

    entries: tuple[Any, ...]
    request_options: Mapping[str, Any]


class ReasoningItem(Record, frozen=True, kw_only=True):
    """One model call's displayable reasoning; `text` is there exactly when `available`.

    `task_key` is None for a direct reply, which has no run.
    """

    task_key: str | None = None
    model: Model
    available: bool
    text: str | None = None


# History


class HistoryTurn(Record, frozen=True, kw_only=True):
    """A turn as people read it, each text cut to 2,000 characters."""

    public_id: str
    position: int
    kind: str
    role: str
    created_at: str
    prompt: str | None = None
    steers: Any = None
    content: str | None = None
    truncated: bool


class HistoryPage(Record, frozen=True, kw_only=True):
    """Turns in order of position; `conversation` has `public_id` and `title`."""

    items: tuple[HistoryTurn, ...]
    conversation: Mapping[str, Any]
    before_position: int | None
    after_position: int | None
    has_older: bool
    has_newer: bool
    truncated: bool
