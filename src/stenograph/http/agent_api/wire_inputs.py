"""The shapes of inputs and attachments; see `wire` for how absence and null differ."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from stenograph.conversations.turn import Role
from stenograph.conversations.wishes import (
    Configuration,
    ContextMode,
    Delivery,
    Entry,
    History,
    Name,
    Passage,
    Replay,
    Variable,
)
from stenograph.http.agent_api.wire import InputQueue, Shape
from stenograph.http.agent_api.wire_turns import Attachment, ModelWish, Speaker

_Revision = Annotated[int, Meta(ge=0, le=2**63 - 1)]


class Input(Shape, kw_only=True):
    """A row of the input queue, as it was accepted or is edited.

    `context_options` are what it asks of the context, without what is its own member. The last
    members of the row are of inputs that the system put in.
    """

    public_id: str
    queue_position: int
    state: Literal["pending", "steering", "blocked"]
    kind: str
    role: str
    delivery_mode: str
    context_mode: str
    context_options: dict[str, Any]
    tool_names: list[str] | None = None
    approval_mode: str | None = None
    instructions: str | None = None
    blocked_reason: str | None = None
    text: str | None = None
    attachments: list[Attachment] | None = None
    lock_version: int
    created_at: str
    deliver_at: str | None = None
    origin: str
    sender_conversation_public_id: str | None = None
    callback_result: Any = None
    answering_user_public_id: str | None
    speaker: Speaker | None
    expected_steering_run_public_id: str | None = None


class InputAnswer(Shape, kw_only=True):
    """One input."""

    input: Input


class Inputs(Shape, kw_only=True):
    """What waits."""

    inputs: list[Input]
    input_queue: InputQueue


class Materialization(Shape, kw_only=True):
    """What an input became; `variant_public_id` is the original candidate."""

    input_public_id: str
    turn_public_id: str
    variant_public_id: str
    run_public_id: str | None


class MaterializationAnswer(Shape, kw_only=True):
    """What one input became."""

    materialization: Materialization


class ReplayWish(Struct, forbid_unknown_fields=True):
    """Which earlier turns' reasoning is told to a model that can be told it."""

    mode: Replay


class NewAttachment(Struct, forbid_unknown_fields=True):
    """A file, its bytes in base64; or one that the conversation has, by its id alone."""

    public_id: str | None = None
    filename: str | None = None
    content_type: str | None = None
    data: bytes | None = None


class InputFields(Struct, forbid_unknown_fields=True, kw_only=True):
    """What an input says. What is absent, or null, is as it comes.

    A `raw` context is told alone: `instructions`, and `entries` or the `text`. `variables` are
    filled in where `{{name}}` stands. `deliver_in` counts seconds. `expected_…`: what is believed
    of the conversation, without which the input is not to become a turn.
    """

    role: Role | UnsetType = UNSET
    text: str | UnsetType | None = UNSET
    entries: tuple[Entry, ...] | UnsetType | None = UNSET
    attachments: list[NewAttachment] | UnsetType | None = UNSET
    model: ModelWish | UnsetType | None = UNSET
    configuration: Configuration | UnsetType | None = UNSET
    tool_names: Annotated[tuple[Name, ...], Meta(max_length=200)] | UnsetType | None = UNSET
    approval_mode: Literal["bypass", "rules", "ask"] | UnsetType | None = UNSET
    delivery_mode: Delivery | UnsetType | None = UNSET
    expected_steering_run_public_id: str | UnsetType | None = UNSET
    deliver_at: Annotated[str, Meta(max_length=64)] | UnsetType | None = UNSET
    deliver_in: Annotated[int, Meta(ge=0, le=10**9)] | UnsetType | None = UNSET
    context_mode: ContextMode | UnsetType | None = UNSET
    instructions: str | UnsetType | None = UNSET
    inline: tuple[Passage, ...] | UnsetType | None = UNSET
    history: History | UnsetType | None = UNSET
    reasoning_replay: ReplayWish | UnsetType | None = UNSET
    variables: dict[str, Variable] | UnsetType | None = UNSET
    expected_context_revision: _Revision | UnsetType | None = UNSET
    expected_tail_turn_public_id: str | UnsetType | None = UNSET
    answering_user_public_id: str | UnsetType | None = UNSET
    steps: Any = UNSET
    visible_in_context: bool | UnsetType | None = UNSET


class NewInput(InputFields, kw_only=True):
    """An input. A `message` stands as it is; a `direct_reply` is answered by a model."""

    kind: Literal["message", "direct_reply"] = "direct_reply"


class InputBody(Struct):
    """The body that sends an input."""

    input: NewInput


class InputChange(InputFields, kw_only=True):
    """What is to change of an input; what is absent stays. `expected_lock_version`: as it is known
    to whoever asks."""

    expected_lock_version: int | None = None


class InputChangeBody(Struct):
    """The body that edits an input."""

    input: InputChange


class InputOrderBody(Struct):
    """The ids of all inputs that people and agents put in line, in the order they are to have."""

    inputs: Annotated[list[str], Meta(max_length=1_000)]
