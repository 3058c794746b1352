"""Summaries in the record: what a compaction left in place of what was said before it.

A compaction is a system step that says so (`context_management`, atif.md 4), whoever made it: this
server's engine, or the program whose log was imported. A request begins with the newest one that
counts; what stands before it stays in the record.
"""

from dataclasses import dataclass, field
from typing import Any

import msgspec

from stenograph.clock import now
from stenograph.conversations.access import Conversation
from stenograph.conversations.wishes import Wishes
from stenograph.engine import store_compaction as store
from stenograph.engine.models.request import Message, aside
from stenograph.engine.work import Work
from stenograph.storage.database import Tx

#: What the step says; its observation holds the summary.
COMPACTED = "Context compacted"


@dataclass(frozen=True, slots=True)
class View:
    """From where a conversation is told: behind the turns before `position`, within a candidate
    (row id; 0: none) and its prompt, as the input that it answers wishes."""

    conversation: Conversation
    position: int
    variant_id: int
    prompt: str | None
    instructions: str | None
    wishes: Wishes = field(default_factory=Wishes)


def view(work: Work) -> View:
    """Return from where a candidate is answered."""
    return View(
        work.conversation,
        work.turn.position,
        work.variant.id,
        work.variant.prompt,
        work.instructions,
        work.wishes,
    )


@dataclass(frozen=True, slots=True)
class Extent:
    """What a summary stands for: all turns before the position `turn`, and of the candidate in
    which it was made the rounds before the place `step`; of those, `rounds` so far."""

    turn: int
    step: int
    rounds: int = 0


@dataclass(frozen=True, slots=True)
class Summary:
    """A summary that counts, with where it was made: candidate, turn's position, step's place."""

    text: str
    variant_id: int
    turn: int
    step: int
    extent: Extent

    @property
    def message(self) -> Message:
        """The summary as a model is told it."""
        rounds = f", and {self.extent.rounds} rounds of the running turn" * bool(self.extent.rounds)
        return aside(
            f"This conversation was compacted: earlier turns{rounds} are summed up here.\n\n"
            f"<summary>\n{self.text}\n</summary>"
        )


class _Result(msgspec.Struct):
    content: Any = None


class _Observation(msgspec.Struct):
    results: list[_Result] = []


class _Own(msgspec.Struct):
    kept_from_turn: int | None = None
    kept_from_step: int | None = None
    rounds: int = 0


class _Extra(msgspec.Struct):
    stenograph: _Own = msgspec.field(default_factory=_Own)


class _Rest(msgspec.Struct):
    observation: _Observation | None = None
    extra: _Extra = msgspec.field(default_factory=_Extra)


def newest(tx: Tx, seen: View, before: int) -> Summary | None:
    """Return the summary with which a request begins; `before` is the place of the model call.

    One in an inherited turn counts too, as long as this conversation shows the turn.
    """
    conversation = seen.conversation
    row = store.newest(tx, conversation.id, seen.variant_id, seen.position, before) or (
        store.inherited(tx, conversation.id) if conversation.is_fork else None
    )
    if row is None:
        return None
    variant_id, turn, step, written = row
    try:
        rest = msgspec.json.decode(written, type=_Rest)
    except msgspec.ValidationError:
        return None
    results = rest.observation.results if rest.observation else []
    text = "\n\n".join(filter(None, map(_plain, results)))
    if not text.strip():
        return None
    own = rest.extra.stenograph
    extent = Extent(
        turn if own.kept_from_turn is None else own.kept_from_turn,
        step if own.kept_from_step is None else own.kept_from_step,
        own.rounds,
    )
    return Summary(text, variant_id, turn, step, extent)


def _plain(result: _Result) -> str:
    if isinstance(result.content, str):
        return result.content
    parts = result.content if isinstance(result.content, list) else []
    texts = (part.get("text") for part in parts if isinstance(part, dict))
    return "\n".join(text for text in texts if isinstance(text, str))


def write(tx: Tx, work: Work, text: str, extent: Extent) -> int:
    """Put a summary into the trajectory; returns the step's row id."""
    rest = {
        "observation": {"results": [{"content": text}]},
        "extra": {
            "context_management": {"type": "compaction", "boundary": "replace"},
            "stenograph": {
                "kind": "compaction",
                "kept_from_turn": extent.turn,
                "kept_from_step": extent.step,
                "rounds": extent.rounds,
            },
        },
    }
    return store.add_summary(
        tx,
        work.conversation.id,
        turn_id=work.turn.id,
        variant_id=work.variant.id,
        text=COMPACTED,
        rest=msgspec.json.encode(rest).decode(),
        at=now(),
    )
