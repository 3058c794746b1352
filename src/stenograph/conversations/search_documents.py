"""What search looks at: documents, each one field of what a turn shows, or a title.

A document's id holds, from the left, the beginning of the turn's (or conversation's) public id and
the field, so that the order of ids is the order of answers.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from stenograph.conversations import store_search, words
from stenograph.conversations import store_search_index as store
from stenograph.storage.database import Row, Tx

Field: TypeAlias = Literal["content", "prompt", "steers", "title"]
#: In the order of answers; a document's id ends in the field's place here.
FIELDS: tuple[Field, ...] = ("content", "prompt", "steers", "title")
_CONTENT, _PROMPT, _STEERS, _TITLE = range(4)

#: A turn, or the conversation of a title.
Subject: TypeAlias = tuple[int | None, int | None]


@dataclass(frozen=True, slots=True)
class Draft:
    """A document that ought to be there. `terms` begin with those of its place."""

    subject: Subject
    public_id: str
    field: int
    workspace_id: int
    conversation_id: int
    variant_id: int | None
    terms: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Document:
    """A document that is there."""

    id: int
    conversation_id: int
    turn_id: int | None
    variant_id: int | None
    terms: frozenset[str]

    @property
    def subject(self) -> Subject:
        """What it is a document of."""
        return (self.turn_id, None) if self.turn_id is not None else (None, self.conversation_id)

    @property
    def field(self) -> int:
        """The place of its field in `FIELDS`."""
        return self.id & 3

    def agrees(self, draft: Draft) -> bool:
        """Tell whether it is as it ought to be."""
        return self.variant_id == draft.variant_id and self.terms == set(draft.terms)


@dataclass(frozen=True, slots=True)
class Unindexed:
    """A document that the index does not know yet: id, turn, candidate and conversation, which
    are its `columns`, and its words."""

    columns: tuple[int, int | None, int | None, int]
    terms: frozenset[str]


@dataclass(frozen=True, slots=True)
class Fresh:
    """What the index does not know yet: `documents`, and the ids of those it is behind with."""

    documents: list[Unindexed]
    outdated: frozenset[int]


#: Changes in a workspace that a search looks through itself.
LATE = 200


def slot(public_id: str) -> int:
    """Return the first 61 bits that tell UUIDv7s apart: 43 of the time, then 18 random ones."""
    value = int(public_id.replace("-", ""), 16)
    at, random_a, random_b = value >> 80, (value >> 64) & 0xFFF, (value >> 56) & 0x3F
    return (at & (2**43 - 1)) << 18 | random_a << 6 | random_b


def of_workspace(workspace_id: int) -> str:
    """The term that each document of a workspace has; no word has a `_`."""
    return f"_w{workspace_id}"


def of_conversation(conversation_id: int) -> str:
    """The term that each document of a conversation has."""
    return f"_c{conversation_id}"


def wanted(tx: Tx, turns: Collection[int], conversations: Collection[int]) -> list[Draft]:
    """Return the documents of turns and of conversations' titles, as the record is now."""
    size = words.LONGEST_TEXT
    rows = store.turns(tx, turns, size)
    steers = store_search.steers(tx, [row[4] for row in rows], size)
    drafts = []
    for turn, public_id, owner, workspace, variant, prompt, content in rows:
        said = "\n\n".join(steers.get(variant, ()))
        for field, text in ((_CONTENT, content), (_PROMPT, prompt), (_STEERS, said)):
            if text:
                place = ((turn, None), public_id, field, workspace, owner, variant)
                drafts.append(Draft(*place, _terms(text, workspace, owner)))
    for public_id, owner, workspace, title in store.titles(tx, conversations, size):
        place = ((None, owner), public_id, _TITLE, workspace, owner, None)
        drafts.append(Draft(*place, _terms(title, workspace, owner)))
    return drafts


def fresh(tx: Tx, workspace_id: int) -> Fresh:
    """Return what has changed in a workspace since it was indexed, up to `LATE` changes.

    So a search finds what was said a moment ago, and writes nothing. More than that is indexed
    before (`search_index.catch_up`).
    """
    changed = store.changed(tx, workspace_id, LATE)
    if not changed:
        return Fresh([], frozenset())
    subjects = split(changed)
    known = there(tx, *subjects)
    drafts = wanted(tx, *subjects)
    slots = places(tx, known, drafts)
    documents = []
    for draft in drafts:
        place = slots[draft.subject] << 2 | draft.field
        columns = (place, draft.subject[0], draft.variant_id, draft.conversation_id)
        documents.append(Unindexed(columns, frozenset(draft.terms)))
    return Fresh(documents, frozenset(one.id for one in known))


def places(tx: Tx, known: Iterable[Document], drafts: Iterable[Draft]) -> dict[Subject, int]:
    """Return the slot of each subject: that of its documents, or one that is nobody's."""
    slots = {one.subject: one.id >> 2 for one in known}
    first = {d.subject: slot(d.public_id) for d in drafts if d.subject not in slots}
    used = _used(tx, first.values())
    for subject, place in first.items():
        # Two were made in one millisecond with the same 18 random bits.
        while place in used or (place != first[subject] and _used(tx, [place])):
            place += 1
        used.add(place)
        slots[subject] = place
    return slots


def _used(tx: Tx, slots: Iterable[int]) -> set[int]:
    return {i >> 2 for i in store.taken(tx, [place << 2 | f for place in slots for f in range(4)])}


def split(subjects: Iterable[Subject]) -> tuple[set[int], set[int]]:
    """Return the turns and the conversations that these are."""
    turns, conversations = set(), set()
    for turn, owner in subjects:
        if turn is not None:
            turns.add(turn)
        elif owner is not None:
            conversations.add(owner)
    return turns, conversations


def _terms(text: str, workspace: int, conversation: int) -> tuple[str, ...]:
    return (of_workspace(workspace), of_conversation(conversation), *words.terms(text))


def there(tx: Tx, turns: Collection[int], conversations: Collection[int]) -> list[Document]:
    """Return the documents of turns and of conversations' titles that are there."""
    return [Document(*row) for row in store.documents(tx, turns, conversations)]


def row(draft: Draft, place: int) -> Row:
    """Return the row of a document in a slot."""
    return (
        place << 2 | draft.field,
        draft.workspace_id,
        draft.conversation_id,
        draft.subject[0],
        draft.variant_id,
        " ".join(draft.terms),
    )
