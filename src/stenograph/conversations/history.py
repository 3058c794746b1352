"""A conversation as somebody reads up on it: what was said, shortened, around a place or behind it
(agent-api.md 8)."""

from collections.abc import Sequence
from dataclasses import dataclass

from stenograph.conversations import store_search, turn
from stenograph.conversations.access import Conversation
from stenograph.conversations.search import Masking
from stenograph.conversations.turn import Listed, Turn
from stenograph.errors import NotFoundError
from stenograph.storage.database import Tx
from stenograph.storage.search import WHOLE

#: Characters of one field, and of all fields of a page.
FIELD = 2_000
PAGE = 12_000
#: Behind every turn.
_END = 2**31


@dataclass(frozen=True, slots=True)
class Entry:
    """A turn with the texts of its active candidate; `truncated`: one of them is cut."""

    turn: Turn
    prompt: str | None
    steers: str | None
    content: str | None
    truncated: bool

    @property
    def size(self) -> int:
        """How many characters it takes of a page."""
        return sum(len(text) for text in (self.prompt, self.steers, self.content) if text)


@dataclass(frozen=True, slots=True)
class History:
    """Turns in order of position. `truncated`: of those that were asked for, the ones farthest off
    had no room; they are found by reading on."""

    entries: list[Entry]
    has_older: bool
    has_newer: bool
    truncated: bool


@dataclass(frozen=True, slots=True)
class _Window:
    """Turns in order; `anchor` is the place in them from which a page is filled."""

    turns: list[Listed]
    anchor: int
    has_older: bool
    has_newer: bool


def read(
    tx: Tx,
    conversation: Conversation,
    *,
    masking: Masking,
    around: str | None = None,
    before: int | None = None,
    after: int | None = None,
    limit: int = 20,
) -> History:
    """Return up to `limit` turns: around a turn, the nearest before or behind a position, or the
    newest. Give one of the three. Hidden and concealed turns and summaries are left out.

    Raises `NotFoundError` for a turn that is not there, or left out.
    """
    if around is not None:
        found = _around(tx, conversation, around, limit)
    elif after is not None:
        newer = _turns(tx, conversation, after=after, limit=limit + 1)
        older = _turns(tx, conversation, before=after + 1, limit=1)
        found = _Window(newer[:limit], 0, bool(older), len(newer) > limit)
    else:
        older = _turns(tx, conversation, before=_END if before is None else before, limit=limit + 1)
        newer = [] if before is None else _turns(tx, conversation, after=before - 1, limit=1)
        kept = older[-limit:]
        found = _Window(kept, len(kept) - 1, len(older) > limit, bool(newer))
    entries = _entries(tx, conversation, found.turns, masking)
    first, end = _fitting([entry.size for entry in entries], found.anchor)
    return History(
        entries[first:end],
        has_older=found.has_older or first > 0,
        has_newer=found.has_newer or end < len(entries),
        truncated=end - first < len(entries),
    )


def _turns(
    tx: Tx, conversation: Conversation, *, after: int | None = None, before: int | None = None,
    limit: int,
) -> list[Listed]:  # fmt: skip
    return turn.window(tx, conversation, after=after, before=before, limit=limit, summaries=False)


def _around(tx: Tx, conversation: Conversation, public_id: str, limit: int) -> _Window:
    """Return a turn with as many on either side; where one side has fewer, the other gives more."""
    middle = turn.find(tx, conversation, public_id)
    if middle.visibility == "hidden" or middle.kind == "compaction_summary":
        raise NotFoundError("Not found")
    older = _turns(tx, conversation, before=middle.position, limit=limit)
    newer = _turns(tx, conversation, after=middle.position - 1, limit=limit + 1)
    rest = limit - 1
    before = min(len(older), max(rest // 2, rest - len(newer[1:])))
    behind = min(len(newer[1:]), rest - before)
    kept = [*older[len(older) - before :], *newer[: behind + 1]]
    return _Window(kept, before, len(older) > before, len(newer[1:]) > behind)


def _entries(
    tx: Tx, conversation: Conversation, turns: Sequence[Listed], masking: Masking
) -> list[Entry]:
    mask = masking([conversation.id])
    # A cut might halve what is to be masked.
    size = FIELD + 1 if mask is None else WHOLE
    variants = [t.turn.active_variant_id for t in turns if t.turn.active_variant_id is not None]
    texts = store_search.texts(tx, variants, size)
    steers = store_search.steers(tx, variants, size)
    found = []
    for listed in turns:
        variant = listed.turn.active_variant_id or 0
        prompt, content = texts.get(variant, (None, None))
        whole = [prompt, "\n\n".join(steers.get(variant, ())), content]
        seen = [text if mask is None else mask(text) if text else None for text in whole]
        prompt, said, content = (text[:FIELD] if text else None for text in seen)
        truncated = any(len(text or "") > FIELD for text in seen)
        found.append(Entry(listed.turn, prompt, said, content, truncated))
    return found


def _fitting(sizes: Sequence[int], anchor: int) -> tuple[int, int]:
    """Return where the stretch around `anchor` begins and ends that a page has room for."""
    first, end, room = max(anchor, 0), max(anchor, 0), PAGE
    nearest = sorted(range(len(sizes)), key=lambda i: (abs(i - anchor), i))
    for i in nearest:
        room -= sizes[i]
        if room < 0:
            break
        first, end = min(first, i), max(end, i + 1)
    return first, end
