"""Keyword search over what a workspace's conversations show (agent-api.md 8).

The index finds which documents may hold what is asked for; whether one does is decided by its text
as the reader may see it, after masking. So what is masked is not found either, and nobody learns a
secret by guessing at it.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import islice
from typing import Literal, TypeAlias

from stenograph.accounts.access import Caller
from stenograph.conversations import search_documents, store_search, words
from stenograph.conversations.access import Workspace
from stenograph.conversations.search_documents import FIELDS, Field, Fresh
from stenograph.conversations.words import Query
from stenograph.storage import search as storage
from stenograph.storage.database import Row, Tx

Archived: TypeAlias = Literal["exclude", "include", "only"]
#: Returns how a text of these conversations is masked; None: nothing in them is.
Masking: TypeAlias = Callable[[Collection[int]], Callable[[str], str] | None]

#: Characters of an excerpt, and of those before the hit.
EXCERPT = 500
_BEFORE = 150
#: Documents that are looked at in one go, when many are found that the caller may not see.
_MOST = 2_000
#: With more conversations than these, the index looks through the whole workspace.
_FEW = 100
#: Higher than every document's id.
_END = 2**63 - 1
#: Where nothing is masked a text is read as far as it is searched, and what an excerpt shows.
_CUT = words.LONGEST_TEXT + EXCERPT


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """Where an answer stands in the order: newest turn first, then conversation and field."""

    turn: int  # the negative of its slot
    conversation: str
    field: str


@dataclass(frozen=True, slots=True)
class Match:
    """A field that has what was asked for; for a title, turn, candidate and position are None."""

    key: Key
    conversation: str
    title: str | None
    turn: str | None
    variant: str | None
    position: int | None
    field: Field
    inherited: bool
    excerpt: str
    truncated: bool


@dataclass(frozen=True, slots=True)
class Page:
    """Matches in order; `next_after` is the key to read on behind, None at the end."""

    matches: list[Match]
    next_after: Key | None


@dataclass(frozen=True, slots=True)
class _Search:
    """What is asked for, by whom, and where."""

    principal_id: int
    workspace_id: int
    archived: Archived
    auxiliary: bool
    query: Query
    masking: Masking


@dataclass(frozen=True, slots=True)
class _Sighting:
    """A document as one conversation shows it."""

    key: Key
    field: Field
    document: int
    conversation_id: int
    conversation: str
    title: str | None
    turn: str | None
    position: int | None
    variant_id: int | None
    variant: str | None
    inherited: bool


def find(
    tx: Tx,
    caller: Caller,
    workspace: Workspace,
    text: str,
    *,
    masking: Masking,
    archived: Archived = "exclude",
    auxiliary: bool = False,
    after: Key | None = None,
    limit: int = 20,
) -> Page:
    """Return the fields that hold every keyword of `text`, newest turns first.

    Looked at are titles and, of the active candidates, prompts, contents and steers, of the
    conversations that the caller may read; with `auxiliary`, of sides and subagents too. Without a
    word in it, `text` is found nowhere. What changed so lately that the index does not know it is
    found as well, as long as that is little (`search_documents.fresh`).
    """
    asked = words.query(text)
    if not asked.terms:
        return Page([], None)
    search = _Search(caller.principal_id, workspace.id, archived, auxiliary, asked, masking)
    found: list[Match] = []
    for match in _matches(tx, search, after, limit):
        if len(found) == limit:
            return Page(found, found[-1].key)
        found.append(match)
    return Page(found, None)


def _matches(tx: Tx, search: _Search, after: Key | None, limit: int) -> Iterator[Match]:
    """Yield what follows a key, in order."""
    scope = _scope(tx, search)
    if scope is None:
        return
    fresh = search_documents.fresh(tx, search.workspace_id)
    terms = set(search.query.terms)
    found = [one for one in fresh.documents if terms <= one.terms]
    rows = store_search.fresh_sightings(tx, *_by(search), [one.columns for one in found])
    late = _sorted(rows, after)
    both = merge(late, _indexed(tx, search, scope, fresh, after, limit), key=lambda one: one.key)
    while seen := list(islice(both, limit + 1)):
        yield from _read(tx, search, seen)


def _indexed(
    tx: Tx, search: _Search, scope: set[str], fresh: Fresh, after: Key | None, limit: int
) -> Iterator[_Sighting]:
    """Yield what the index finds behind a key, in order; its first documents suffice, mostly."""
    terms = [search_documents.of_workspace(search.workspace_id), *search.query.terms]
    below = _END if after is None else (1 - after.turn) << 2
    size = limit + 1 + len(FIELDS)
    while True:
        ids = storage.newest(tx, search.workspace_id, terms, scope, below, size)
        last = len(ids) < size
        if not last:
            # Of the last turn there may be more; it is looked at with those behind it.
            below = (ids[-1] >> 2) + 1 << 2
            ids = [i for i in ids if i >= below]
        ids = [i for i in ids if i not in fresh.outdated]
        rows = store_search.sightings(tx, *_by(search), ids) if ids else []
        yield from _sorted(rows, after)
        if last:
            return
        size = min(4 * size, _MOST)


def _scope(tx: Tx, search: _Search) -> set[str] | None:
    """Return the terms of the conversations to look through if they are few, else none.

    None: there is no conversation to look through. So what others have in the same workspace costs
    nothing, be it all but a few conversations.
    """
    shown = store_search.shown(tx, *_by(search), limit=_FEW + 1)
    if not shown:
        return None
    if len(shown) > _FEW:
        return set()
    owners = {*shown, *store_search.ancestors(tx, shown)}
    return {search_documents.of_conversation(owner) for owner in owners}


def _by(search: _Search) -> tuple[int, int, str, bool]:
    return search.principal_id, search.workspace_id, search.archived, search.auxiliary


def _sorted(rows: Sequence[Row], after: Key | None) -> list[_Sighting]:
    """Return rows of `store_search` that follow a key, in order."""
    seen = []
    for document, owner_id, owner, title, turn, position, variant_id, variant, inherited in rows:
        field = FIELDS[document & 3]
        key = Key(-(document >> 2), owner, field)
        if after is None or key > after:
            seen.append(_Sighting(
                key, field, document, owner_id, owner, title, turn, position, variant_id, variant,
                bool(inherited),
            ))  # fmt: skip
    return sorted(seen, key=lambda one: one.key)


def _read(tx: Tx, search: _Search, seen: Sequence[_Sighting]) -> Iterator[Match]:
    """Yield those whose text, as the caller may see it, holds what is asked for."""
    owners = {one.conversation_id for one in seen}
    masks = dict.fromkeys(owners, search.masking(owners))
    if any(masks.values()):
        # Each by its own secrets: what one hides must not hide anything in another.
        masks = {owner: search.masking([owner]) for owner in owners}
    texts = _texts(tx, seen, storage.WHOLE if any(masks.values()) else _CUT)
    read: dict[tuple[int, int | None], tuple[str, int | None]] = {}
    for one in seen:
        mask = masks[one.conversation_id]
        # Forks show the same text, and where nothing is masked it is read once for all of them.
        part = (one.document, None if mask is None else one.conversation_id)
        if part not in read:
            text = texts[one.document] if mask is None else mask(texts[one.document])
            read[part] = (text, search.query.first(text))
        text, hit = read[part]
        if hit is not None:
            yield _match(one, text, hit, mask)


def _texts(tx: Tx, seen: Sequence[_Sighting], size: int) -> dict[int, str]:
    """Return the text of each document."""
    variants = {one.variant_id for one in seen if one.variant_id is not None}
    bodies = store_search.texts(tx, variants, size)
    steers = store_search.steers(tx, variants, size)
    found = {}
    for one in seen:
        prompt, content = bodies.get(one.variant_id or 0, (None, None))
        found[one.document] = {
            "title": one.title,
            "prompt": prompt,
            "content": content,
            "steers": "\n\n".join(steers.get(one.variant_id or 0, ())),
        }[one.field] or ""
    return found


def _match(one: _Sighting, text: str, hit: int, mask: Callable[[str], str] | None) -> Match:
    start = max(0, min(hit - _BEFORE, len(text) - EXCERPT))
    excerpt = text[start : start + EXCERPT]
    title = one.title if one.title is None or mask is None else mask(one.title)
    return Match(
        key=one.key,
        conversation=one.conversation,
        title=title,
        turn=one.turn,
        variant=one.variant,
        position=one.position,
        field=one.field,
        inherited=one.inherited,
        excerpt=excerpt,
        truncated=len(excerpt) < len(text),
    )
