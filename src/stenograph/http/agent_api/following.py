"""What a follower of a conversation gets of each kind of items (agent-api.md 7).

- `events`: the journal
- `lifecycle`: of it what begins, ends or needs somebody
- `transcript`: what a model says while it says it, and what is settled: `round`, `call`, `turn`
- `progress`: how runs and their tasks stand, and what calls write meanwhile, each as `{frame}`
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from stenograph import clock
from stenograph.accounts.access import Caller
from stenograph.conversations import access, events
from stenograph.conversations.events import Happening
from stenograph.errors import NotFoundError
from stenograph.events import catalogue, feed
from stenograph.events.live import Frame, Topic
from stenograph.http import paging
from stenograph.http.agent_api import wire
from stenograph.http.agent_api.common import Mask
from stenograph.http.following import Door, Look, Looked, Sent, edge, follow
from stenograph.runs import settled
from stenograph.runs import task as tasks
from stenograph.sessions import secret
from stenograph.storage.database import Tx
from stenograph.storage.sealing import Sealer
from stenograph.trajectories.redaction.redactor import Redactor

Items: TypeAlias = Literal["events", "lifecycle", "transcript", "progress"]
ITEMS: tuple[Items, ...] = get_args(Items)
#: Events that one look reads.
PAGE = 100

_TOPICS: dict[Items, tuple[Topic, ...]] = {
    "events": (), "lifecycle": (), "transcript": ("transcript",), "progress": ("progress",),
}  # fmt: skip
#: The journal's words that settled frames are made of.
_FRAMED = ("round_result", "task_status", "turn_status")


@dataclass(frozen=True, slots=True)
class Begun:
    """A conversation that is followed by someone who may read it, from behind a number on."""

    workspace: str
    conversation: str
    id: int
    items: Items
    after: int


def begin(
    tx: Tx, caller: Caller, workspace: str, conversation: str, items: Items, after: int | None
) -> Begun:
    """Return where following starts: behind the number `after`, None: with what comes.

    Raises `NotFoundError`.
    """
    found = access.find(tx, caller, workspace, conversation)
    start = events.watermark(found) if after is None else after
    return Begun(workspace, conversation, found.id, items, start)


def followed(
    door: Door, sealer: Sealer, begun: Begun, *, greets: bool = False
) -> AsyncIterator[Sent | None]:
    """Follow; with `greets`, the journal's readers are told its `watermark` once they are there.

    Raises as `follow` does: `NotFoundError` when the conversation is closed to the caller.
    """
    look: Look
    if begun.items in ("events", "lifecycle"):
        look = _Journal(begun, greets)
    else:
        look = _Frames(begun, sealer)
    told = _progress if begun.items == "progress" else _told
    return follow(door, begun.id, look, begun.after, _TOPICS[begun.items], told)


def _told(frame: Frame) -> Sent:
    return Sent(frame.type, {"type": frame.type, **frame.data})


def _progress(frame: Frame) -> Sent:
    return Sent("progress", {"frame": {"type": frame.type, **frame.data}})


def as_event(conversation: str, one: Happening) -> wire.Event:
    """Write an event of the journal."""
    return wire.Event(
        public_id=one.public_id,
        sequence=one.sequence,
        cursor=paging.event_cursor(one.sequence),
        type=one.type,
        resource=wire.Resource(type="conversation", public_id=conversation),
        occurred_at=clock.iso_seconds(one.occurred_at),
        payload=one.payload,
    )


def _page(
    tx: Tx, caller: Caller, begun: Begun, after: int, upto: int | None
) -> tuple[list[Happening], Looked]:
    """Return events, and what is known of the look; the last one of a deleted conversation."""
    try:
        found = access.find(tx, caller, begun.workspace, begun.conversation)
    except NotFoundError:
        last = _farewell(tx, caller, begun)
        if last is None or last.sequence <= after:
            raise
        return [last], Looked((), last.sequence, over=True)
    end, is_all = edge(tx, found.id, upto)
    page = [it for it in events.page(tx, found, after, PAGE) if it.sequence <= end]
    if len(page) == PAGE:
        return page, Looked((), page[-1].sequence, more=True)
    over = is_all and bool(page) and page[-1].type == "conversation_ended"
    return page, Looked((), max(after, end), over=over)


def _farewell(tx: Tx, caller: Caller, begun: Begun) -> Happening | None:
    """Return the event that a conversation was deleted, which is its last and the last thing that
    its followers hear; who was shut out hears nothing."""
    access.find_workspace(tx, caller, begun.workspace)
    last = feed.last(tx, begun.id)
    if last is None or last.payload.get("reason") != "tombstoned":
        return None
    return Happening(last.public_id, last.sequence, last.type, last.occurred_at, last.payload)


@dataclass(slots=True)
class _Journal:
    begun: Begun
    greets: bool

    def __call__(self, tx: Tx, caller: Caller, after: int, upto: int | None) -> Looked:
        page, looked = _page(tx, caller, self.begun, after, upto)
        sent = [self._sent(it) for it in page if self._is_wanted(it)]
        if self.greets and not looked.more:
            self.greets = False
            watermark = feed.watermark(tx, self.begun.id)
            sent.append(Sent("watermark", {"watermark": watermark}))
        return Looked(sent, looked.after, looked.more, looked.over)

    def _is_wanted(self, one: Happening) -> bool:
        return self.begun.items == "events" or one.type in catalogue.LIFECYCLE

    def _sent(self, one: Happening) -> Sent:
        event = as_event(self.begun.conversation, one)
        return Sent(one.type, event, event.cursor)


@dataclass(slots=True)
class _Frames:
    begun: Begun
    sealer: Sealer

    def __call__(self, tx: Tx, caller: Caller, after: int, upto: int | None) -> Looked:
        page, looked = _page(tx, caller, self.begun, after, upto)
        sent: Sequence[Sent] = ()
        if self.begun.items == "transcript":
            sent = self._settled(tx, page, after)
        elif page:
            sent = self._standing(tx, page, after)
        if looked.over:
            sent = [*sent, _ended(page[-1])]
        return Looked(sent, looked.after, looked.more, looked.over)

    def _settled(self, tx: Tx, page: Sequence[Happening], after: int) -> list[Sent]:
        if not any(it.type in _FRAMED for it in page):
            return []
        shown = _shown(tx, self.begun.id, after, page)
        rows = settled.tasks(tx, [it.task_id for it in shown.values() if it.task_id is not None])
        secrets = secret.values(tx, self.sealer, self.begun.id)
        cover = Mask(Redactor(secrets, "ephemeral") if secrets else None)
        sent = []
        for one in page:
            entry = shown.get(one.sequence)
            if entry is None:
                continue
            row = None if entry.task_id is None else rows.get(entry.task_id)
            made = _frame(one, row, cover)
            if made is not None:
                sent.append(Sent(made["type"], made, paging.event_cursor(one.sequence)))
        return sent

    def _standing(self, tx: Tx, page: Sequence[Happening], after: int) -> list[Sent]:
        shown = _shown(tx, self.begun.id, after, page)
        return [
            Sent(
                "progress",
                {"frame": {"type": _subject(one), **one.payload}},
                paging.event_cursor(one.sequence),
            )
            for one in page
            if one.sequence in shown
        ]


def _shown(
    tx: Tx, conversation_id: int, after: int, page: Sequence[Happening]
) -> dict[int, feed.Entry]:
    """Return those events of a page that a reader is told of, by number."""
    entries = feed.page(tx, conversation_id, after, len(page), _FRAMED)
    return {it.sequence: it for it in entries if it.sequence <= page[-1].sequence}


def _subject(one: Happening) -> str:
    if one.type != "turn_status":
        return "task"
    return "turn" if "variant_status" in one.payload else "run"


def _ended(one: Happening) -> Sent:
    data = {"type": one.type, **one.payload}
    return Sent(one.type, data, paging.event_cursor(one.sequence))


def _frame(one: Happening, row: settled.Settled | None, cover: Mask) -> dict[str, Any] | None:
    """Write what an event settled; None: nothing yet."""
    match one.type:
        case "turn_status":
            return {"type": "turn", **one.payload} if "variant_status" in one.payload else None
        case "round_result":
            made = {"type": "round", **one.payload}
            if row is not None:
                made |= {
                    "mainline": row.mainline,
                    "text": cover.text(row.text),
                    "error": cover.text(row.error),
                    "usage": row.usage,
                }
        case _:
            if one.payload.get("status") not in tasks.TERMINAL:
                return None
            made = {"type": "call", **one.payload}
            if row is not None:
                made |= {
                    "name": cover.text(row.name),
                    "tool_call_id": cover.text(row.tool_call_id),
                    "error": cover.text(row.error),
                }
    return {name: value for name, value in made.items() if value is not None}
