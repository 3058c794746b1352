"""The message feed of a conversation: its prompt, the messages sent to it, and its replies.

Rows name what was said and never copy it; a page joins the text (seed:
list-a-reasons-messages.md). Cursors are taken from the conversation's own row inside the writing
transaction: what commits later has the larger cursor, so a reader that follows them misses
nothing and gets nothing twice.

A concealed or hidden turn is not in the feed. The feed of a fork starts with what it inherits,
the oldest ancestor first: the row at `c` of ancestor number `n` has the cursor `n * 2^32 + c`,
and the fork's own rows come behind all of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import msgspec

from stenograph.conversations.store_turns import scopes
from stenograph.errors import InvalidInputError, NotFoundError
from stenograph.ids import new_id
from stenograph.sessions import store_messages as store
from stenograph.storage.database import Row, Tx

Kind: TypeAlias = Literal["prompt", "message", "reply"]
Role: TypeAlias = Literal["user", "assistant"]
Outcome: TypeAlias = Literal["success", "failure", "action_required"]

#: Cursors that each ancestor of a fork may use; numbers stay exact in JavaScript up to 2^53.
_SEGMENT = 2**32


@dataclass(frozen=True, slots=True)
class Message:
    """A row to be written. Its text is that of the step, else of the candidate, else `content`.

    `status` (words of a session's status) and `outcome` are a reply's; `source` is `subagent` for
    an automatic child result; `created_at` is in microseconds, None if nobody knows.
    """

    kind: Kind
    role: Role
    turn_id: int | None = None
    variant_id: int | None = None
    step_id: int | None = None
    source: Literal["subagent"] | None = None
    status: str | None = None
    outcome: Outcome | None = None
    content: str | None = None
    attachments: Sequence[Any] | None = None
    created_at: int | None = None


@dataclass(frozen=True, slots=True)
class Item:
    """A row as it is read; `cursor` is its place in the list that was asked for."""

    public_id: str
    cursor: int
    kind: Kind
    role: Role
    content: str
    status: str | None
    outcome: Outcome | None
    source: str | None
    attachments: list[Any] | None
    created_at: int | None


@dataclass(frozen=True, slots=True)
class Page:
    """Items in order; `end_cursor` is the last one's, or what was sent if there are none."""

    items: list[Item]
    has_next_page: bool
    end_cursor: str | None


def append(tx: Tx, conversation_id: int, message: Message) -> int:
    """Write a row behind all others and return its cursor."""
    return append_all(tx, conversation_id, [message])


def append_all(tx: Tx, conversation_id: int, messages: Sequence[Message]) -> int:
    """As `append`, for a batch in order; returns the last cursor."""
    first = store.take_cursors(tx, conversation_id, len(messages))
    store.insert(tx, [_row(conversation_id, cursor, m) for cursor, m in enumerate(messages, first)])
    return first + len(messages) - 1


def replace_reply(tx: Tx, conversation_id: int, reply: Message) -> int:
    """Write the reply of a turn; one that is there moves behind all other rows and keeps its id."""
    assert reply.turn_id is not None
    known = store.reply_of(tx, conversation_id, reply.turn_id)
    if known is None:
        return append(tx, conversation_id, reply)
    cursor = store.take_cursors(tx, conversation_id, 1)
    store.update(
        tx,
        known,
        cursor=cursor,
        variant_id=reply.variant_id,
        status=reply.status,
        outcome=reply.outcome,
        content=reply.content,
        created_at=reply.created_at,
    )
    return cursor


def page(tx: Tx, conversation_id: int, after: str | None, first: int) -> Page:
    """Return up to `first` items behind `after`: a page's `end_cursor` or an item's `cursor`.

    Raises `InvalidInputError` (`invalid_cursor`) for what this list could not have issued.
    """
    segments = _segments(tx, conversation_id)
    index, local = 0, 0
    if after is not None:
        index, local = _place(tx, segments, after)
    items: list[Item] = []
    for number in range(index, len(segments)):
        wanted = first + 1 - len(items)
        rows = _rows(tx, conversation_id, segments[number], local, wanted)
        items += (_item(row, number * _SEGMENT) for row in rows)
        if len(items) > first:
            break
        local = 0
    kept = items[:first]
    return Page(kept, len(items) > first, str(kept[-1].cursor) if kept else after)


def find(tx: Tx, conversation_id: int, public_id: str) -> Item:
    """Return one item that a conversation has itself."""
    return _one(tx, conversation_id, store.by_id(tx, conversation_id, public_id))


def at(tx: Tx, conversation_id: int, cursor: int) -> Item:
    """Return the item that `append` gave this cursor."""
    return _one(tx, conversation_id, store.by_cursor(tx, conversation_id, cursor))


def invalid_cursor() -> InvalidInputError:
    """The error for a cursor that a list could not have issued."""
    return InvalidInputError("Not a cursor of this list", code="invalid_cursor")


#: A conversation, and the last turn position that is shown of it; None: all.
_Segment: TypeAlias = tuple[int, int | None]


def _segments(tx: Tx, conversation_id: int) -> list[_Segment]:
    """Return what a feed is made of, in its order."""
    return [*scopes(tx, conversation_id), (conversation_id, None)]


def _place(tx: Tx, segments: list[_Segment], after: str) -> tuple[int, int]:
    """Return the segment and the cursor in it after which to read."""
    if not (after.isascii() and after.isdigit()) or after[0] == "0" or len(after) > 18:
        raise invalid_cursor()
    index, local = divmod(int(after), _SEGMENT)
    if index >= len(segments) or local == 0:
        raise invalid_cursor()
    conversation_id, boundary = segments[index]
    if boundary is None:
        issued = local < store.next_cursor(tx, conversation_id)
    else:
        issued = store.inherits_from(tx, conversation_id, boundary, local)
    if not issued:
        raise invalid_cursor()
    return index, local


def _one(tx: Tx, conversation_id: int, row: Row | None) -> Item:
    if row is None:
        raise NotFoundError("There is no such message", code="message_not_found")
    return _item(row, (len(_segments(tx, conversation_id)) - 1) * _SEGMENT)


def _rows(tx: Tx, viewer: int, segment: _Segment, after: int, limit: int) -> list[Row]:
    conversation_id, boundary = segment
    if boundary is None:
        return store.own(tx, conversation_id, after, limit)
    return store.inherited(tx, viewer, conversation_id, boundary, after, limit)


def _item(row: Row, base: int) -> Item:
    public_id, cursor, kind, role, content, status, outcome, source, attachments, at = row
    return Item(
        public_id,
        base + cursor,
        kind,
        role,
        content,
        status,
        outcome,
        source,
        None if attachments is None else msgspec.json.decode(attachments),
        at,
    )


def _row(conversation_id: int, cursor: int, m: Message) -> Row:
    attachments = None if m.attachments is None else msgspec.json.encode(m.attachments).decode()
    return (
        new_id(), conversation_id, cursor, m.kind, m.role, m.source, m.turn_id, m.variant_id,
        m.step_id, m.status, m.outcome, m.content, attachments, m.created_at,
    )  # fmt: skip
