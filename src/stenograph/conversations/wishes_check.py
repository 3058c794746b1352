"""What an input may ask for: rules that hold whatever the conversation is at the moment."""

from collections.abc import Iterator

from stenograph.clock import DAY, now
from stenograph.conversations.limits import check_text, refused
from stenograph.conversations.wishes import (
    LONGEST,
    CallPart,
    Entry,
    ReasoningPart,
    ResultPart,
    TextPart,
    Wishes,
    fill,
    filled_length,
    is_name,
    places,
)

#: How far ahead an input may be scheduled, in microseconds.
AHEAD = 366 * DAY
#: How many messages a raw context has, passages come with one input, variables are filled in.
ENTRIES, PASSAGES, VARIABLES = 200, 50, 100
#: What only an input that a model answers may ask for.
_ANSWERED = (
    "model", "configuration", "tool_names", "approval_mode", "entries", "instructions", "inline",
    "history", "reasoning_replay", "expected_steering_run_public_id", "answering_user_public_id",
)  # fmt: skip
#: What goes with one way of telling a model the context only.
_RAW = ("entries", "instructions")
_ASSEMBLED = ("inline", "history", "reasoning_replay")


def check(kind: str, text: str | None, wishes: Wishes) -> None:
    """Raise `RefusedError` `validation_failed` for what does not go together, is blank, or is more
    than an input takes."""
    if kind == "message":
        _refuse(wishes, _ANSWERED, "A message takes no")
        if wishes.delivery_mode != "queue":
            raise refused("A message takes no delivery_mode")
        if wishes.is_raw:
            raise refused("A message takes no context_mode")
    if wishes.is_raw:
        _refuse(wishes, _ASSEMBLED, "A raw context takes no")
    else:
        _refuse(wishes, _RAW, "Only a raw context takes")
    if wishes.expected_steering_run_public_id is not None and wishes.delivery_mode == "queue":
        raise refused("What steers no run has no expected_steering_run_public_id")
    if (text is None) == (wishes.entries is None):
        raise refused("text must not be blank, unless a raw context has entries in its place")
    check_text("text", text or "", longest=LONGEST)
    if wishes.entries is not None:
        _check_entries(wishes.entries)
    check_text("instructions", wishes.instructions or "", longest=LONGEST)
    if len(wishes.inline) > PASSAGES:
        raise refused(f"inline has more than {PASSAGES} passages")
    if sum(len(it.text) for it in wishes.inline) > LONGEST:
        raise refused(f"inline is longer than {LONGEST} characters")
    if wishes.deliver_at is not None and wishes.deliver_at > now() + AHEAD:
        raise refused("An input is scheduled for at most a year ahead")
    _check_variables(text, wishes)


def _refuse(wishes: Wishes, names: tuple[str, ...], why: str) -> None:
    usual = Wishes()
    for name in names:
        if getattr(wishes, name) != getattr(usual, name):
            raise refused(f"{why} {name}")


def _check_entries(entries: tuple[Entry, ...]) -> None:
    """Check that a model can be told the entries: results answer calls, and something is asked."""
    if not 0 < len(entries) <= ENTRIES:
        raise refused(f"A raw context has 1 to {ENTRIES} entries")
    if entries[-1].role not in ("user", "tool"):
        raise refused("The last entry is one to answer: of the role user or tool")
    called: set[str] = set()
    for n, entry in enumerate(entries):
        if (entry.text is None) == (not entry.parts):
            raise refused(f"entries/{n} has either text or parts")
        for part in entry.told:
            fits = {
                "tool": isinstance(part, ResultPart),
                "assistant": isinstance(part, TextPart | ReasoningPart | CallPart),
            }.get(entry.role, isinstance(part, TextPart))
            if not fits:
                raise refused(f"entries/{n}: such a part is not of the role {entry.role}")
            if isinstance(part, CallPart):
                called.add(part.id)
            if isinstance(part, ResultPart) and part.id not in called:
                raise refused(f"entries/{n}: no entry before it makes the call {part.id!r}")
    texts = list(_texts(entries))
    if sum(map(len, texts)) > LONGEST:
        raise refused(f"entries are longer than {LONGEST} characters")
    if not any(text.strip() for text in texts):
        raise refused("entries must not be blank")


def _texts(entries: tuple[Entry, ...]) -> Iterator[str]:
    for entry in entries:
        for part in entry.told:
            match part:
                case TextPart() | ReasoningPart():
                    yield part.text
                case CallPart():
                    yield part.arguments
                case ResultPart():
                    yield part.output


def _check_variables(text: str | None, wishes: Wishes) -> None:
    """Check that each variable has a name, and a place where it is filled in, and what comes of
    it."""
    variables = wishes.variables or {}
    if len(variables) > VARIABLES:
        raise refused(f"An input has at most {VARIABLES} variables")
    if sum(len(value) for value in variables.values() if isinstance(value, str)) > LONGEST:
        raise refused(f"variables are longer than {LONGEST} characters")
    texts = [text or "", wishes.instructions or "", *_texts(wishes.entries or ())]
    texts += [it.text for it in wishes.inline]
    used = set[str]().union(*map(places, texts))
    for name in variables:
        if not is_name(name):
            raise refused("A variable's name is of letters, digits, '_', '.' and '-'")
        if name not in used:
            raise refused(f"No text has the place {{{{{name}}}}} of a variable")
    # A short name may stand for a long value, thousands of times.
    if variables and sum(filled_length(it, variables) for it in texts) > LONGEST:
        raise refused(f"With its variables an input is longer than {LONGEST} characters")
    if text is not None:
        check_text("text", fill(text, variables), longest=LONGEST, blank=False)
