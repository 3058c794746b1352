"""Find everything in a string that must go, and put markers in its place."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, TypeAlias

import re2

from stenograph.trajectories.redaction.shapes import (
    KNOWN_CREDENTIALS,
    OWN_CREDENTIALS,
    UNBROKEN_RUN,
)
from stenograph.trajectories.redaction.spellings import secret_patterns

Tier: TypeAlias = Literal["standard", "ephemeral", "none"]
#: Start, end, and the rank of the rule that found it.
Span: TypeAlias = tuple[int, int, int]

SECRET_MARKER = "[redacted-secret]"  # noqa: S105

#: Every marker there is, by rank: where finds overlap, the lowest names what stands there after.
MARKERS: tuple[str, ...] = tuple(
    dict.fromkeys(
        [
            SECRET_MARKER,
            *(shape.marker for shape in (*OWN_CREDENTIALS, *KNOWN_CREDENTIALS, UNBROKEN_RUN)),
        ]
    )
)

#: Passes over one string before it is masked whole. One is nearly always enough: a second finds
#: only what a marker helped to make, such as a secret that has the text of a marker in it.
_PASSES = 4

#: A spared find shorter than this, in bytes, is looked through again; longer ones hold nothing, and
#: would make time quadratic.
_SHORT = 20


def compile_bytes(pattern: bytes, longest: bool = False) -> Any:
    """Compile `pattern` over bytes, not by `re2.compile`, whose cache would keep the secrets."""
    return re2._Regexp(pattern, _options(longest))


def _options(longest: bool = False) -> Any:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.longest_match = longest
    options.max_mem = 16 << 20
    options.log_errors = False
    return options


@dataclass(frozen=True, slots=True)
class Rule:
    """A compiled shape, or all secret values as one.

    Of an `overlapping` rule finds are looked for inside finds.
    """

    rank: int
    find: Any
    accept: Callable[[bytes, int, int, int], bool] | None = None
    overlapping: bool = False


@dataclass(frozen=True, slots=True)
class Rules:
    """Rules, one expression that holds wherever any of them may, and a set that tells which may.

    The scanner is an alternation, no `re2.Set`: out of memory, a set says that nothing matched.
    The selector is one, over the rules' hints; where it says so, all rules are tried.
    """

    rules: Sequence[Rule]
    scanner: Any
    selector: Any = None

    def may_match(self, data: bytes) -> bool:
        """Tell whether any rule may find something in `data`: a string's bytes or its JSON's."""
        return self.scanner.search(data) is not None

    def candidates(self, text: bytes) -> Sequence[Rule]:
        """Return the rules that may find something in `text`, a string's bytes."""
        if self.selector is None or (chosen := self.selector.Match(text)) is None:
            return self.rules
        return [self.rules[index] for index in chosen]


def rules_for(secrets: Collection[str], tier: Tier) -> tuple[Rules, ...]:
    """Return what `tier` masks: nothing, or the secrets (if any) and then the tier's shapes."""
    if tier == "none":
        return ()
    patterns = secret_patterns(secrets)
    if not patterns:
        return (_shape_rules(tier),)
    values = compile_bytes(b"|".join(patterns), longest=True)
    secret_rule = Rule(MARKERS.index(SECRET_MARKER), values, overlapping=True)
    return (Rules((secret_rule,), values), _shape_rules(tier))


@cache
def _shape_rules(tier: Tier) -> Rules:
    shapes = OWN_CREDENTIALS
    if tier == "standard":
        shapes += (*KNOWN_CREDENTIALS, UNBROKEN_RUN)
    rules = [
        Rule(MARKERS.index(shape.marker), compile_bytes(shape.find), shape.accept)
        for shape in shapes
    ]
    scanner = compile_bytes(b"|".join(b"(?:" + shape.scan + b")" for shape in shapes))
    selector = re2.Set.SearchSet(_options())
    for shape in shapes:
        selector.Add(b"(?i:" + b"|".join(map(re2.escape, shape.hints)) + b")")
    selector.Compile()
    return Rules(rules, scanner, selector)


def mask(text: bytes, groups: Sequence[Rules]) -> bytes:
    """Return `text` (UTF-8) with a marker for each stretch that rules find, overlaps as one.

    Afterwards no rule finds anything outside a marker, so masking again changes nothing. Time is
    linear in the length of `text`.
    """
    for _ in range(_PASSES):
        found = finds(text, groups)
        spans = _outside_markers(text, found) if found else found
        if not spans:
            return text
        text = _replaced(text, _merged(sorted(spans)))
    return SECRET_MARKER.encode()


def finds(text: bytes, groups: Sequence[Rules]) -> list[Span]:
    """Return each stretch of `text` that a rule finds; they may overlap."""
    rules = [rule for g in groups if g.may_match(text) for rule in g.candidates(text)]
    return [span for rule in rules for span in _finds(text, rule)]


def _finds(text: bytes, rule: Rule) -> Iterator[Span]:
    position, group = 0, 1 if rule.find.groups else 0
    while (found := rule.find.search(text, position)) is not None:
        start, end = found.span(group)
        if rule.accept is None or rule.accept(text, found.start(), start, end):
            yield _before_backslashes(text, start), end, rule.rank
            position = _after_backslashes(text, start + 1) if rule.overlapping else end
        else:
            # A short spared value may hold the name of the next: `token: password: hunter2`.
            position = max(start, position + 1) if end - start < _SHORT else end


def _before_backslashes(text: bytes, start: int) -> int:
    """Move `start` before the backslashes there: JSON inside the string stays JSON."""
    while start and text[start - 1] == 0x5C:
        start -= 1
    return start


def _after_backslashes(text: bytes, start: int) -> int:
    """Move `start` after the backslashes there: any number of them spells the same."""
    while start < len(text) and text[start] == 0x5C:
        start += 1
    return start


_ONE_MARKER = b"(?:" + b"|".join(re2.escape(marker.encode()) for marker in MARKERS) + b")"
_MARKER = compile_bytes(_ONE_MARKER)
_MARKERS = compile_bytes(_ONE_MARKER + b"+")


def is_all_markers(text: bytes) -> bool:
    """Tell whether `text` is one or more markers and nothing else."""
    return _MARKERS.fullmatch(text) is not None


def _outside_markers(text: bytes, spans: Iterable[Span]) -> list[Span]:
    kept = [found.span() for found in _MARKERS.finditer(text)]
    starts = [start for start, _ in kept]

    def inside(span: Span) -> bool:
        at = bisect_right(starts, span[0]) - 1
        return at >= 0 and span[1] <= kept[at][1]

    return [span for span in spans if not inside(span)]


def _merged(spans: Sequence[Span]) -> Iterator[Span]:
    start, end, rank = spans[0]
    for next_start, next_end, next_rank in spans[1:]:
        if next_start < end:
            end, rank = max(end, next_end), min(rank, next_rank)
        else:
            yield start, end, rank
            start, end, rank = next_start, next_end, next_rank
    yield start, end, rank


def _replaced(text: bytes, spans: Iterable[Span]) -> bytes:
    pieces, position = [], 0
    for start, end, rank in spans:
        pieces += [text[position:start], MARKERS[rank].encode()]
        position = end
    return b"".join([*pieces, text[position:]])


def count_markers(text: str) -> Counter[str]:
    """Count each marker in `text`."""
    if "[redacted" not in text and "***" not in text:
        return Counter()
    raw = text.encode("utf-8", "surrogatepass")
    return Counter(found.decode() for found in _MARKER.findall(raw))
