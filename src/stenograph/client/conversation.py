"""One conversation."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import UNSET, UnsetType

from stenograph.client import following
from stenograph.client.calls import (
    Answer,
    Call,
    convert,
    given,
    member,
    new_key,
    nothing,
    one,
    page,
    several,
    whole,
)
from stenograph.client.following import Feed
from stenograph.client.inputs import InputCollection
from stenograph.client.records import (
    Compaction,
    Conversation,
    ConversationLine,
    ConversationReceipt,
    Estimate,
    Event,
    EventPage,
    Frame,
    Page,
    Record,
    RunnerEffects,
)
from stenograph.client.runs import RunCollection
from stenograph.client.steps import Give, Script, pages
from stenograph.client.surface import Resource, Via, iteration, operation
from stenograph.client.turn_records import HistoryPage, HistoryTurn
from stenograph.client.turns import TurnCollection


class ConversationResource(Resource[Via]):
    """`workspace.conversations.conversation(id)`."""

    @property
    def inputs(self) -> InputCollection[Via]:
        """What waits to become a turn."""
        return InputCollection(self._via, *self._at, "inputs")

    @property
    def turns(self) -> TurnCollection[Via]:
        """What was said."""
        return TurnCollection(self._via, *self._at, "turns")

    @property
    def runs(self) -> RunCollection[Via]:
        """How agents came to their answers; the same as the workspace's."""
        return RunCollection(self._via, *self._at[:2], "runs")

    # The conversation itself

    @operation
    def fetch(self) -> Call[Conversation]:
        """Read it with its usage, access and newest event."""
        return Call("GET", self._path(), _document)

    @operation
    def update(
        self,
        *,
        title: str | UnsetType | None = UNSET,
        metadata: Mapping[str, Any] | UnsetType = UNSET,
    ) -> Call[Conversation]:
        """Set the title, None for none, or all of the metadata; what is left out stays."""
        new = {"title": title, "metadata": metadata}
        body = {"conversation": {name: it for name, it in new.items() if it is not UNSET}}
        return Call("PATCH", self._path(), _document, body=body)

    @operation
    def archive(self) -> Call[Conversation]:
        """Archive it with its subagents: it is read as before and takes nothing new."""
        return Call("POST", self._path("archive"), _document)

    @operation
    def unarchive(self) -> Call[Conversation]:
        """Take it out of the archive."""
        return Call("POST", self._path("unarchive"), _document)

    @operation
    def delete(self) -> Call[None]:
        """Delete it with its subagents; from then on nobody finds it."""
        return Call("DELETE", self._path(), nothing, status=204)

    @operation
    def cancel(self) -> Call[Conversation]:
        """Stop what is being answered, and its subagents."""
        return Call("POST", self._path("cancellation"), _document, status=202)

    @operation
    def set_default_runner(self, executor_id: str | None) -> Call[Conversation]:
        """Choose the device whose tools are used from the next turn on; None: none."""
        body = {"default_runner": {"executor_public_id": executor_id}}
        return Call("PUT", self._path("default_runner"), _document, body=body)

    @operation
    def set_access(
        self, *, default: str, entries: Sequence[Mapping[str, str]] = ()
    ) -> Call[Conversation]:
        """Replace who may see and change it. An entry has a `level` (`full`, `read`, `none`) and a
        `user_public_id` or a `handle`."""
        body = {"access": {"default": default, "entries": entries}}
        return Call("PUT", self._path("access"), _document, body=body)

    # What is made of it

    @operation
    def fork(
        self,
        turn_id: str | None = None,
        *,
        variant_id: str | None = None,
        side: bool | None = None,
        title: str | None = None,
        idempotency_key: str | None = None,
    ) -> Call[ConversationReceipt]:
        """Fork it at a turn, with the candidate that it shows or another; or open a `side` beside
        what is going on."""
        key = new_key(idempotency_key)
        new = given(turn_public_id=turn_id, variant_public_id=variant_id, side=side, title=title)
        return Call(
            "POST",
            self._path("forks"),
            receipt(key),
            status=201,
            body={"fork": new},
            idempotency_key=key,
        )

    @operation
    def children(
        self,
        *,
        after: str | None = None,
        limit: int | None = None,
        order: str | None = None,
        order_by: str | None = None,
    ) -> Call[Page[ConversationLine]]:
        """Read the conversations of subagents that it started."""
        return Call(
            "GET",
            self._path("children"),
            page("conversations", ConversationLine),
            query={"after": after, "limit": limit, "order": order, "order_by": order_by},
        )

    @iteration
    def iter_children(
        self, *, order: str | None = None, order_by: str | None = None
    ) -> Script[ConversationLine]:
        """Give all of its subagents' conversations."""
        return pages(
            lambda after: ConversationResource.children.call(
                self, after=after, limit=100, order=order, order_by=order_by
            )
        )

    @operation
    def estimate_input(
        self, text: str | None = None, *, model: str | None = None, render: bool | None = None
    ) -> Call[Estimate]:
        """Estimate how full the context would be with an input of this text; nothing is written.
        With `render`, `entries` are what a model would be told."""
        body = {"context_estimate": given(text=text, model=model, render=render)}
        read = one("context_estimate", Estimate)
        return Call("POST", self._path("context_estimate"), read, body=body)

    @operation
    def compact(
        self,
        *,
        model: str | None = None,
        reasoning_enabled: bool | None = None,
        reasoning_effort: str | None = None,
    ) -> Call[Compaction]:
        """Have it summed up; models are told the summary from then on."""
        wish = given(
            model=model, reasoning_enabled=reasoning_enabled, reasoning_effort=reasoning_effort
        )
        path, body = self._path("compaction"), {"compaction": wish}
        return Call("POST", path, _compaction, status=202, body=body)

    # What happened in it

    @operation
    def history(
        self,
        *,
        around: str | None = None,
        before_position: int | None = None,
        after_position: int | None = None,
        limit: int | None = None,
    ) -> Call[HistoryPage]:
        """Read up on it: its newest turns, those around a turn, or those beside a position; texts
        are shortened. Raises `ValueError` for more than one of the three places."""
        if len(given(a=around, b=before_position, c=after_position)) > 1:
            raise ValueError("Give one of around, before_position and after_position")
        query = {
            "around_turn_public_id": around,
            "before_position": before_position,
            "after_position": after_position,
            "limit": limit,
        }
        return Call("GET", self._path("history"), _history, query=query)

    @iteration
    def iter_history(self) -> Script[HistoryTurn]:
        """Give all of its history, the newest turn first."""
        before: int | None = None
        while True:
            found: HistoryPage = yield ConversationResource.history.call(
                self, before_position=before, limit=50
            )
            for turn in reversed(found.items):
                yield Give(turn)
            if not (found.items and found.has_older):
                return
            before = found.items[0].position

    @operation
    def attachment(self, attachment_id: str) -> Call[bytes]:
        """Read the bytes of a file that came with an input."""
        return Call("GET", self._path("attachments", attachment_id), lambda answer: answer.content)

    @operation
    def events(self, *, after: str | None = None, limit: int | None = None) -> Call[EventPage]:
        """Read the events behind a cursor, oldest first."""
        return following.events(self._path(), after, limit)

    @iteration
    def iter_events(self, *, after: str | None = None) -> Script[Event]:
        """Give the events behind a cursor that are there; to follow, take a `feed`."""
        return following.all_events(self._path(), after)

    def feed(self, cursor: str | None = None, *, poll: float | None = None) -> Feed[Via]:
        """Return its events behind a cursor, and those that come; see `Feed`.

        With `poll` it asks every so many seconds in place of keeping a stream open.
        """
        return Feed(self._via, self._at, cursor, poll)

    @iteration
    def transcript(self, *, after: str | None = None) -> Script[Frame]:
        """Give what a model says while it says it, and what is settled, from now on.

        `text_delta`, `reasoning_delta`, `tool_call_started`, `tool_call_arguments_delta` are told
        once; `round`, `call` and `turn` are settled, and given from the event cursor `after` on. A
        `stream_reset` means that the deltas of the round so far count no more; its reason is
        `reconnected` where some may have been missed. Ends with `conversation_ended`.
        """
        return following.frames(self._path(), "transcript", after, self._via.retries)

    @iteration
    def progress(self, *, after: str | None = None) -> Script[Frame]:
        """Give how runs and their tasks stand, as `transcript` gives what is said.

        `turn`, `run` and `task` are kept. `tool_output` (`text` is the end of what a call has
        written so far) and `tool_progress` (`data` has `progress`, and maybe `total` and `message`)
        are told while a call is made.
        """
        return following.frames(self._path(), "progress", after, self._via.retries)


_document = one("conversation", Conversation)


def receipt(key: str) -> Callable[[Answer], ConversationReceipt]:
    """Read a conversation that was made with an idempotency key."""

    def read(answer: Answer) -> ConversationReceipt:
        effects = answer.document.get("runner_effects")
        return ConversationReceipt(
            conversation=_document(answer),
            replayed=answer.replayed,
            idempotency_key=key,
            runner_effects=convert(answer, effects, RunnerEffects | None),  # type: ignore[arg-type]
        )

    return read


class _Turn(Record, frozen=True, kw_only=True):
    public_id: str
    position: int
    kind: str
    status: str


class _Task(Record, frozen=True, kw_only=True):
    key: str
    status: str


class _Compacting(Record, frozen=True, kw_only=True):
    turn: _Turn
    task: _Task | None = None
    summary_task_key: str | None = None


def _compaction(answer: Answer) -> Compaction:
    found = whole(_Compacting)(answer)
    turn, task = found.turn, found.task
    return Compaction(
        turn_public_id=turn.public_id,
        position=turn.position,
        kind=turn.kind,
        turn_status=turn.status,
        task_key=None if task is None else task.key,
        task_status=None if task is None else task.status,
        summary_task_key=found.summary_task_key,
    )


def _history(answer: Answer) -> HistoryPage:
    places = member(answer, "pagination")
    found = {
        **(places if isinstance(places, dict) else {}),
        "items": several("turns", HistoryTurn)(answer),
        "conversation": member(answer, "conversation"),
        "truncated": member(answer, "truncated"),
    }
    return convert(answer, found, HistoryPage)
