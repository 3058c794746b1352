"""The shapes of search and history."""

from typing import Literal

from stenograph.http.agent_api.wire import KeysetPagination, Shape


class Match(Shape, kw_only=True):
    """A field with every keyword. A title's match names no turn, candidate and position."""

    conversation_public_id: str
    title: str | None
    turn_public_id: str | None
    variant_public_id: str | None
    position: int | None
    field: Literal["title", "prompt", "content", "steers"]
    inherited: bool
    excerpt: str
    truncated: bool


class Matches(Shape, kw_only=True):
    """A page of matches: newest turns first, then by conversation and field."""

    matches: list[Match]
    pagination: KeysetPagination


class HistoryConversation(Shape, kw_only=True):
    """Whose history it is."""

    public_id: str
    title: str | None


class HistoryTurn(Shape, kw_only=True):
    """A turn with its texts, each up to 2,000 characters; `truncated`: one of them is longer."""

    public_id: str
    position: int
    kind: str
    role: str
    created_at: str
    prompt: str | None = None
    steers: str | None = None
    content: str | None = None
    truncated: bool


class HistoryPagination(Shape, kw_only=True):
    """The positions of the first and the last turn of this page, null when it is empty, and whether
    there are turns beyond them."""

    before_position: int | None
    after_position: int | None
    has_older: bool
    has_newer: bool


class History(Shape, kw_only=True):
    """A page of turns in order of position, up to 12,000 characters; `truncated`: it holds fewer
    turns than were asked for, because they are long."""

    conversation: HistoryConversation
    turns: list[HistoryTurn]
    pagination: HistoryPagination
    truncated: bool
