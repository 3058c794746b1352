"""The shapes of the v3 family; those of message pages as its founding document has them."""

from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta, UnsetType

from stenograph.clock import iso
from stenograph.sessions import messages, reason, session
from stenograph.sessions.session import Details

Time: TypeAlias = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
Uuid: TypeAlias = Annotated[str, Meta(extra_json_schema={"format": "uuid"})]
Outcome: TypeAlias = Literal["success", "failure", "action_required"]
Effort: TypeAlias = Literal["minimal", "low", "medium", "high", "xhigh", "max"]
Status: TypeAlias = Literal["running", "exit", "error", "cancelled", "suspended"]
Mode: TypeAlias = Literal["standard", "ephemeral"]


class ConversationItemMetadata(msgspec.Struct):
    """An automatic child result, not a human follow-up."""

    source: Annotated[
        Literal["subagent"],
        Meta(description="An automatic child result, not a human follow-up."),
    ]


class ConversationItem(msgspec.Struct):
    """A prompt, a message or a reply of a conversation."""

    id: Annotated[str, Meta(description="Identifies the item across reads.")]
    cursor: Annotated[
        int,
        Meta(
            description="Where a reader stands after this item: pass it as `after` to read what"
            " follows. Cursors strictly increase through the list. It is a position in this list"
            " only, not a message `seq`, and the same item can carry a different cursor in a later"
            " read; use `id` to recognise an item."
        ),
    ]
    kind: Annotated[
        Literal["prompt", "message", "reply"],
        Meta(
            description="`prompt` is the Session's opening prompt, `message` a message in the"
            " conversation afterwards, `reply` how a finished turn ended."
        ),
    ]
    role: Annotated[
        str,
        Meta(
            description="`user` for the prompt and for a message sent to the Session; `assistant`"
            " for a reply, and for a message the agent posted outside a turn's reply (a greeting"
            " or a notice)."
        ),
    ]
    content: Annotated[
        str,
        Meta(
            description="For a reply, the turn's `result_summary`; empty when the turn left none."
        ),
    ]
    status: Annotated[
        str | UnsetType,
        Meta(
            description="Replies only: how the turn ended, in the values of the Session's `status`."
        ),
    ] = UNSET
    outcome: Annotated[
        Outcome | UnsetType | None,
        Meta(
            description="Replies only: the turn's outcome, as the Session's `outcome` reports it"
            " for the latest turn. Null when the turn did not succeed and declared none, for"
            " example a failed or cancelled turn."
        ),
    ] = UNSET
    metadata: ConversationItemMetadata | UnsetType = UNSET
    attachments: Annotated[
        list[dict[str, Any]] | UnsetType,
        Meta(
            description="Messages only. Files attached to the opening prompt are not listed here;"
            " list them with listSessionAttachments."
        ),
    ] = UNSET
    created_at: Time | None = None


_EndCursor: TypeAlias = Annotated[
    str | None,
    Meta(
        description="The cursor of the last item, or the `after` that was sent when the page is"
        " empty; null only when nothing has been read. Keep polling with it after `has_next_page`"
        " is false to receive what is said next."
    ),
]


class ReasonMessagePage(msgspec.Struct):
    """A page of a Reason's conversation."""

    items: list[ConversationItem]
    has_next_page: bool
    end_cursor: _EndCursor
    reason_id: Annotated[Uuid, Meta(description="The Reason whose conversation this is.")]
    session_id: Annotated[
        str | None,
        Meta(
            description="The Reason's conversation Session; null, with no items, until its first"
            " message opens it."
        ),
    ]


class SessionConversationPage(msgspec.Struct):
    """A page of a Session's conversation."""

    items: list[ConversationItem]
    has_next_page: bool
    end_cursor: _EndCursor
    session_id: str


class Usage(msgspec.Struct):
    """Tokens of the session's own model calls; null: not known. What was read from a cache counts
    as input too."""

    input_tokens: int | None
    cached_input_tokens: int | None
    output_tokens: int | None


class Session(msgspec.Struct):
    """One run of work."""

    session_id: str
    organization_id: str
    reason_id: str | None
    parent_session_id: str | None
    child_session_ids: list[str]
    title: str | None
    tags: list[str]
    mode: Mode
    status: Annotated[
        Status, Meta(description="`running` from its creation on; anything else is an end.")
    ]
    outcome: Annotated[Outcome | None, Meta(description="That of the latest turn.")]
    result_summary: Annotated[
        str | None, Meta(description="The latest turn's answer; null while there is none.")
    ]
    model: str | None
    reasoning_effort: str | None
    usage: Usage
    cost_usd: Annotated[
        float | None, Meta(description="US dollars; null unless the cost of every call is known.")
    ]
    error_class: str | None
    reason_code: str | None
    recorded: Annotated[
        bool, Meta(description="Its agent runs elsewhere and is recorded step by step.")
    ]
    session_policy: Any
    experimental_runtime_profile: Any
    experimental_runtime_features: list[Any]
    created_at: Time
    started_at: Time | None
    ended_at: Time | None


class SessionPage(msgspec.Struct):
    """Sessions, the newest first."""

    items: list[Session]
    has_next_page: bool
    end_cursor: _EndCursor


class Reason(msgspec.Struct):
    """A long-running agent that a person keeps."""

    id: Uuid
    name: str
    instructions: str
    default_model: str | None
    repositories: list[str]
    is_main: bool
    owner_id: str
    session_id: Annotated[
        str | None, Meta(description="Its conversation; null until its first message opens it.")
    ]
    shared_with: Annotated[list[str], Meta(description="The people who may read it.")]
    created_at: Time
    updated_at: Time


class ReasonPage(msgspec.Struct):
    """Reasons, the oldest first."""

    items: list[Reason]
    has_next_page: bool
    end_cursor: _EndCursor


class Deleted(msgspec.Struct):
    """Something that is no more, by its id or name."""

    id: str
    deleted: Literal[True] = True


def item(found: messages.Item) -> ConversationItem:
    """Write an item; members that its kind has not are absent."""
    wire = ConversationItem(found.public_id, found.cursor, found.kind, found.role, found.content)
    if found.kind == "reply":
        wire.status = found.status or "exit"
        wire.outcome = found.outcome
    if found.source is not None:
        wire.metadata = ConversationItemMetadata("subagent")
    if found.kind == "message" and found.attachments is not None:
        wire.attachments = found.attachments
    wire.created_at = when(found.created_at)
    return wire


def as_session(organization_id: str, found: session.Session, details: Details) -> Session:
    """Write a session; `organization_id` is the public id of the caller's."""
    usage, options = details.usage, found.options
    return Session(
        session_id=found.public_id,
        organization_id=organization_id,
        reason_id=found.reason_public_id,
        parent_session_id=found.parent_public_id,
        child_session_ids=details.child_public_ids,
        title=found.title,
        tags=found.tags,
        mode=found.mode,
        status=found.status,
        outcome=found.outcome,
        result_summary=details.result_summary,
        model=found.model,
        reasoning_effort=found.reasoning_effort,
        usage=Usage(usage.input_tokens, usage.cached_input_tokens, usage.output_tokens),
        cost_usd=usage.cost_usd,
        error_class=found.error_class,
        reason_code=found.reason_code,
        recorded=found.recorded,
        session_policy=options.get("session_policy"),
        experimental_runtime_profile=options.get("experimental_runtime_profile"),
        experimental_runtime_features=options.get("experimental_runtime_features") or [],
        created_at=iso(found.created_at),
        started_at=when(found.started_at),
        ended_at=when(found.ended_at),
    )


def as_reason(found: reason.Reason) -> Reason:
    """Write a Reason."""
    return Reason(
        id=found.public_id,
        name=found.name,
        instructions=found.instructions,
        default_model=found.default_model,
        repositories=found.repositories,
        is_main=found.is_main,
        owner_id=found.owner_public_id,
        session_id=found.session_public_id,
        shared_with=found.shared_with,
        created_at=iso(found.created_at),
        updated_at=iso(found.updated_at),
    )


def when(at: int | None) -> str | None:
    """Write a moment that may not be known."""
    return None if at is None else iso(at)
