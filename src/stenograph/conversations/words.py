"""How a text becomes the terms that search compares, the same for both databases.

A word is what stands between separators, in its compatibility form (NFKC), case folded, and an
English one by its stem (Snowball's `english`). Scripts that are written without spaces have no
words to stem: of a run of their characters each one and each pair is a term, and a query's run is
found where its characters stand together.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise
from threading import Lock

import Stemmer  # type: ignore[import-not-found]

#: Characters of a text that are looked at, and of a word: the rest is not searched.
LONGEST_TEXT = 100_000
LONGEST_WORD = 64
#: Bytes of one field's terms; a PostgreSQL `tsvector` holds 1 MB.
MOST_TERMS = 900_000

#: Thai, Lao, Myanmar and Khmer; kana; Han and its extensions; Hangul.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1100-\u11ff\u3040-\u312f\u31a0-\u31bf\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
_RUNS = re.compile(f"([{_UNSPACED}]+)|[^{_UNSPACED}]+")
_ASCII = re.compile(r"[0-9A-Za-z]+")
_stemmer, _stemming = Stemmer.Stemmer("english"), Lock()


@dataclass(frozen=True, slots=True)
class Piece:
    """A word by its stem, or a run of characters without spaces; `start` is its place in the text,
    or that of the stretch it came from."""

    start: int
    text: str
    unspaced: bool = False


@cache
def _stretch() -> re.Pattern[str]:
    """Letters, digits and the marks upon them. Python's `\\w` leaves the marks out."""
    marks: list[list[int]] = []
    for point in range(0x300, 0x20000):
        if unicodedata.category(chr(point))[0] == "M":
            if marks and marks[-1][1] == point - 1:
                marks[-1][1] = point
            else:
                marks.append([point, point])
    marks.append([0xE0100, 0xE01EF])  # the only ones beyond: selectors of variants
    listed = "".join(f"{chr(low)}-{chr(high)}" for low, high in marks)
    return re.compile(rf"[^\W_](?:[^\W_]|[{listed}])*")


@lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """Return the stem of a folded word."""
    if not word.isascii() or word.isdigit():
        return word[:LONGEST_WORD]
    with _stemming:  # it keeps what it works on
        return str(_stemmer.stemWord(word[:LONGEST_WORD]))


def pieces(text: str) -> Iterator[Piece]:
    """Yield the words and runs of a text in order."""
    if text.isascii():
        for found in _ASCII.finditer(text):
            yield Piece(found.start(), stem(found[0].lower()))
        return
    for found in _stretch().finditer(text):
        yield from _folded(found.start(), found[0])


def _folded(start: int, stretch: str) -> Iterator[Piece]:
    if stretch.isascii():
        yield Piece(start, stem(stretch.lower()))
        return
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", stretch).casefold())
    same = len(folded) == len(stretch)
    for part in _stretch().finditer(folded):  # NFKC puts spaces into some characters
        for run in _RUNS.finditer(part[0]):
            at = start + part.start() + run.start() if same else start
            if run[1] is None:
                yield Piece(at, stem(run[0]))
            else:
                yield Piece(at, run[0], unspaced=True)


def terms(text: str) -> list[str]:
    """Return what the index keeps of a text: each term once."""
    text = text[:LONGEST_TEXT]
    if text.isascii():
        return _as_many(list({stem(word): None for word in _ASCII.findall(text.lower())}))
    found: dict[str, None] = {}
    for piece in pieces(text):
        if piece.unspaced:
            found.update(dict.fromkeys(piece.text))
            found.update((a + b, None) for a, b in pairwise(piece.text))
        else:
            found[piece.text] = None
    return _as_many(list(found))


def _as_many(listed: list[str]) -> list[str]:
    """Return the first of the terms, as many as a document holds."""
    size = 0
    if len(listed) * 4 * LONGEST_WORD <= MOST_TERMS:
        return listed
    for number, term in enumerate(listed):
        size += len(term.encode()) + 1
        if size > MOST_TERMS:
            return listed[:number]
    return listed


@dataclass(frozen=True, slots=True)
class Query:
    """What is asked for: words, and runs without spaces. Each has to be found."""

    words: frozenset[str]
    runs: frozenset[str]

    @property
    def terms(self) -> list[str]:
        """The terms that a text must have, if not all it must."""
        found = set(self.words)
        for run in self.runs:
            found |= {a + b for a, b in pairwise(run)} or {run}
        return sorted(found)

    def first(self, text: str) -> int | None:
        """Return where in a text the first hit is; None: not all that is asked for is there."""
        words, runs = set(self.words), set(self.runs)
        start = None
        for piece in pieces(text[:LONGEST_TEXT]):
            hits = self._hits(piece)
            if not hits:
                continue
            if start is None:
                start = piece.start + min(hits.values())
            words -= hits.keys()
            runs -= hits.keys()
            if not words and not runs:
                return start
        return None

    def _hits(self, piece: Piece) -> dict[str, int]:
        """Return what a piece holds of the query, with its place in the piece."""
        if not piece.unspaced:
            return {piece.text: 0} if piece.text in self.words else {}
        return {run: piece.text.index(run) for run in self.runs if run in piece.text}


def query(text: str) -> Query:
    """Read what somebody asks for; without any word in it nothing is asked for."""
    found = list(pieces(text))
    return Query(
        frozenset(piece.text for piece in found if not piece.unspaced),
        frozenset(piece.text for piece in found if piece.unspaced),
    )
