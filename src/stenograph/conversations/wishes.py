"""What an input asks for besides its words: how it is delivered, what the model is told with it,
and how it is answered. Kept as JSON with the input; the turn that it becomes obeys it.
"""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta, Struct

Delivery: TypeAlias = Literal["queue", "steer", "steer_now"]
ContextMode: TypeAlias = Literal["assembled", "raw"]
Replay: TypeAlias = Literal["none", "last_turn", "all"]
Variable: TypeAlias = str | int | float | bool | None
Name: TypeAlias = Annotated[str, Meta(min_length=1, max_length=200)]

#: Characters of one input: its text, or its entries together.
LONGEST = 1_000_000
_PLACE = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_.-]{0,63})\s*\}\}")


class _Frozen(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The base of what people write."""


class TextPart(_Frozen, frozen=True, tag_field="type", tag="text"):
    """Words."""

    text: str


class ReasoningPart(_Frozen, frozen=True, tag_field="type", tag="reasoning"):
    """What a model thought; without its signature no provider is told it."""

    text: str


class CallPart(_Frozen, frozen=True, tag_field="type", tag="tool_call"):
    """A tool call of an assistant; `arguments` is JSON as the model wrote it."""

    id: Name
    name: Name
    arguments: str


class ResultPart(_Frozen, frozen=True, tag_field="type", tag="tool_result"):
    """What a call gave."""

    id: Name
    name: Name
    output: str
    is_error: bool = False


Part: TypeAlias = TextPart | ReasoningPart | CallPart | ResultPart


class Entry(_Frozen, frozen=True):
    """A message of a raw context: its words, or its parts as a sealed request shows them."""

    role: Literal["user", "assistant", "system", "tool"]
    text: str | None = None
    parts: Annotated[tuple[Part, ...], Meta(max_length=200)] = ()

    @property
    def told(self) -> tuple[Part, ...]:
        """Its parts, however it was written."""
        return self.parts if self.text is None else (TextPart(self.text),)


class Passage(_Frozen, frozen=True):
    """Something to read with this input alone."""

    text: Annotated[str, Meta(min_length=1)]
    title: Annotated[str, Meta(min_length=1, max_length=255)] | None = None


class History(_Frozen, frozen=True):
    """How much of what was said before is told: at most so many messages, and so large a share of
    the model's window, from the newest turn back."""

    max_entries: Annotated[int, Meta(ge=0, le=200)] | None = None
    token_budget_share: Annotated[float, Meta(ge=0, le=1)] | None = None


class Configuration(_Frozen, frozen=True):
    """How the model is set; what is absent is as its provider has it."""

    max_tokens: Annotated[int, Meta(ge=1, le=10_000_000)] | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    parallel_tool_calls: bool | None = None


class Wishes(Struct, frozen=True, omit_defaults=True):
    """How an input is to be delivered, told and answered; None: as it comes.

    `model` is a name (`provider/model`). `tool_names`: the tools on offer, None: all there are.
    `deliver_at` is in microseconds. `expected_…` is what the sender believes of the conversation,
    `answering_user_public_id` who answers in place of the conversation's answerer. `attachments`
    are public ids. The last two are of the system's own inputs.
    """

    visible_in_context: bool = True
    delivery_mode: Delivery = "queue"
    model: str | None = None
    reasoning_enabled: bool | None = None
    reasoning_effort: str | None = None
    configuration: Configuration | None = None
    tool_names: tuple[str, ...] | None = None
    approval_mode: str | None = None
    context_mode: ContextMode = "assembled"
    entries: tuple[Entry, ...] | None = None
    instructions: str | None = None
    inline: tuple[Passage, ...] = ()
    history: History | None = None
    reasoning_replay: Replay | None = None
    variables: dict[str, Variable] | None = None
    expected_context_revision: int | None = None
    expected_tail_turn_public_id: str | None = None
    expected_steering_run_public_id: str | None = None
    answering_user_public_id: str | None = None
    deliver_at: int | None = None
    attachments: tuple[str, ...] = ()
    sender_conversation: str | None = None
    callback_result: Any = None

    @property
    def is_raw(self) -> bool:
        """Whether nothing is told but what the input brings."""
        return self.context_mode == "raw"


def fill(text: str, variables: Mapping[str, Variable] | None) -> str:
    """Put variables where `{{name}}` stands; a name that is none of them stays as it is."""
    if not variables:
        return text
    return _PLACE.sub(
        lambda found: _written(variables[found[1]]) if found[1] in variables else found[0], text
    )


def filled_length(text: str, variables: Mapping[str, Variable]) -> int:
    """Return how many characters `fill` would make of a text, without making them."""
    lengths = {name: len(_written(value)) for name, value in variables.items()}
    grown = (
        lengths[found[1]] - len(found[0]) for found in _PLACE.finditer(text) if found[1] in lengths
    )
    return len(text) + sum(grown)


def places(text: str) -> set[str]:
    """Return the names that stand as `{{name}}` in a text."""
    return set(_PLACE.findall(text))


def is_name(name: str) -> bool:
    """Tell whether a variable may be called so."""
    return _PLACE.fullmatch(f"{{{{{name}}}}}") is not None and name == name.strip()


def _written(value: Variable) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else msgspec.json.encode(value).decode()


def read(options: str) -> Wishes:
    """Read the wishes of a row."""
    return msgspec.json.decode(options, type=Wishes)


def write(wishes: Wishes) -> str:
    """Write wishes for a row."""
    return msgspec.json.encode(wishes).decode()


def prompt(text: str | None, wishes: Wishes) -> str:
    """Return what a turn says it was asked: the text, or the last words of a person in the entries;
    variables are filled in."""
    if text is None:
        said = [
            part.text
            for entry in wishes.entries or ()
            if entry.role == "user"
            for part in entry.told[-1:]
            if isinstance(part, TextPart)
        ]
        text = said[-1] if said else ""
    return fill(text, wishes.variables)
