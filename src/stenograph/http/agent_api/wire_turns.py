"""The shapes of turns and candidates; see `wire` for how absence and null differ."""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from stenograph.conversations.wishes import Configuration, Entry, Name
from stenograph.http.agent_api.wire import BackwardPagination, Shape, Visibility


class Model(Shape, kw_only=True):
    """Which model answered, with its effective reasoning settings; unknown members are absent."""

    provider_id: str | None = None
    model_ref: str | None = None
    reasoning_effort: str | None = None
    reasoning_enabled: bool | None = None


class Speaker(Shape, kw_only=True):
    """Who said it."""

    user_public_id: str
    handle: str
    kind: Literal["human", "agent"]
    display_name: str


class Attachment(Shape, kw_only=True):
    """A file that came with an input; `byte_size` is of its bytes as they came."""

    public_id: str
    filename: str
    content_type: str
    byte_size: int


# Candidates


class Round(Shape, kw_only=True):
    """A round of a candidate's run in short."""

    task_key: str
    status: str
    visibility: str
    text_preview: str | None = None


class RunnerEffects(Shape, kw_only=True):
    """What runners changed outside; `unavailable` once execution details were collected."""

    status: Literal["untouched", "unavailable"]
    runners: list[Any]
    reason: str | None = None


class Variant(Shape, kw_only=True):
    """A candidate answer. `rounds` are the newest of its run; `active` is told in decks only."""

    public_id: str
    source: str
    status: str
    model: Model | None = None
    content_preview: str | None = None
    content: str | None = None
    prompt_text: str | None = None
    run_public_id: str | None = None
    rounds: list[Round] | None = None
    runner_effects: RunnerEffects
    memory_context: None
    attachments: list[Attachment] | None = None
    origin_variant_public_id: str | None = None
    details_pruned_at: str | None = None
    active: bool | None = None


class TurnName(Shape, kw_only=True):
    """A turn by its id; `inherited`: it is an ancestor's."""

    public_id: str
    inherited: bool


class Deck(Shape, kw_only=True):
    """The candidates of a turn that are not concealed, in order."""

    variants: list[Variant]
    turn: TurnName


class VariantAnswer(Shape, kw_only=True):
    """One candidate."""

    variant: Variant


class VariantState(Struct):
    """Whether a candidate is concealed."""

    concealed: bool


class VariantBody(Struct):
    """The body that conceals a candidate or brings it back."""

    variant: VariantState


# Turns


class Turn(Shape, kw_only=True):
    """One slot of a conversation; `reference`: a side's snapshot of what was under way.

    `sender_…` name the call that opened a subagent's first turn. `running_variant` is a candidate
    that is being made beside the one that is shown.
    """

    public_id: str
    input_public_id: str | None = None
    callback_sources: list[Any]
    position: int
    kind: str
    role: str
    status: str
    visibility: Visibility
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


class PositionPagination(Shape, kw_only=True):
    """The positions of the first and the last turn of this page; null when it is empty."""

    before_position: int | None
    after_position: int | None


class Turns(Shape, kw_only=True):
    """A page of turns, in order of position."""

    turns: list[Turn]
    pagination: PositionPagination


class TurnAnswer(Shape, kw_only=True):
    """One turn."""

    turn: Turn


class TurnNameAnswer(Shape, kw_only=True):
    """A turn that was changed."""

    turn: TurnName


class TurnState(Struct):
    """How a turn looks; what is absent stays."""

    visibility: Visibility | None = None
    concealed: bool | None = None


class TurnBody(Struct):
    """The body that changes how a turn looks."""

    turn: TurnState


class Edit(Struct, forbid_unknown_fields=True):
    """What a turn is to say: a `text`, or `entries` whose texts are joined by blank lines."""

    text: str | None = None
    entries: tuple[Entry, ...] | None = None


class EditBody(Struct):
    """The body that edits a turn."""

    edit: Edit


class ModelWish(Struct, forbid_unknown_fields=True):
    """The model that is to answer, `provider/model`, and how much it is to think."""

    model: Name
    reasoning_enabled: bool | None = None
    reasoning_effort: Annotated[str, Meta(min_length=1, max_length=50)] | None = None


class RegenerationWish(Struct, forbid_unknown_fields=True):
    """How a turn is to be answered anew; what is absent is as it was asked for before."""

    model: ModelWish | None = None
    configuration: Configuration | None = None


class RegenerationBody(Struct):
    """The body that asks for another answer."""

    regeneration: RegenerationWish


class RegeneratedTurn(Shape, kw_only=True):
    """The turn that is answered anew; it stands as the answer it shows does."""

    public_id: str
    status: str


class Regeneration(Shape, kw_only=True):
    """A candidate that is being made beside the one that its turn shows."""

    turn: RegeneratedTurn
    variant: Variant


# Requests and reasoning


class Request(Shape, kw_only=True):
    """What was sent to the model."""

    entries: list[Any]
    request_options: dict[str, Any]


class RequestAnswer(Shape, kw_only=True):
    """One sealed request."""

    request: Request


class ReasoningItem(Shape, kw_only=True):
    """One model call's displayable reasoning; `text` is there exactly when `available`."""

    task_key: str | None = None
    model: Model
    available: bool
    text: str | None = None


class Reasoning(Shape, kw_only=True):
    """A page of stored reasoning, in order of creation."""

    items: list[ReasoningItem]
    pagination: BackwardPagination
