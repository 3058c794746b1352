"""What the routes of the Agent API have alike: masking, moments, parameters, cursors."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from stenograph import clock
from stenograph.conversations.attachment import Attachment
from stenograph.conversations.turn import Speaker
from stenograph.conversations.variant import Model
from stenograph.http import paging
from stenograph.http.agent_api import wire, wire_turns
from stenograph.http.context import Ctx
from stenograph.http.parameters import Choice, Cursor, Flag, Integer, Text, invalid
from stenograph.sessions import secret
from stenograph.storage.database import Tx
from stenograph.trajectories.redaction.redactor import Redactor

C = "/workspaces/{workspace}/conversations/{conversation}"
T = C + "/turns/{turn}"
V = T + "/variants/{variant}"

#: Characters of a preview.
PREVIEW = 140
_ALL = 2**31 - 1

PAGE = Integer(
    name="limit",
    default=25,
    low=1,
    high=100,
    clamp=True,
    lenient=True,
    about="How many a page holds; above 100 counts as 100.",
)
STRICT_PAGE = Integer(
    name="limit", default=20, low=1, high=100, lenient=True, about="How many a page holds."
)
AFTER = Text(name="after", about="`next_after` of the page before.")
ORDER: Choice[paging.Direction] = Choice(
    name="order", options=("asc", "desc"), default="asc", about="Which end comes first."
)
BEFORE = Cursor(
    name="before",
    decode=paging.parse_task_cursor,
    blank=True,
    about="`next_before` of the page before, to read what is older.",
)
INCLUDE_HIDDEN = Flag(name="include_hidden", about="Hidden turns too.")


@dataclass(frozen=True, slots=True)
class Mask:
    """Keeps the secret values of conversations out of what people wrote and machines answered.

    Only text is masked, never ids, keys and cursors: a value that looks like one breaks no
    reference.
    """

    #: None: there is nothing to mask.
    redactor: Redactor | None

    @property
    def cut(self) -> int:
        """How much of a text to load for a preview: all where a cut might halve a secret."""
        return _ALL if self.redactor else PREVIEW

    def text(self, text: str | None) -> str | None:
        """Mask a text."""
        return text if text is None or self.redactor is None else self.redactor.text(text)

    def preview(self, text: str | None) -> str | None:
        """Mask the beginning of a text, then cut it."""
        whole = self.text(text)
        return None if whole is None else whole[:PREVIEW]

    def json(self, value: Any) -> Any:
        """Mask every string in a JSON value."""
        return value if self.redactor is None else self.redactor.value(value)


def mask(ctx: Ctx, tx: Tx, conversation_ids: Sequence[int]) -> Mask:
    """Load what must be masked in a reading of these conversations."""
    secrets = secret.values_many(tx, ctx.sealer, conversation_ids)
    return Mask(Redactor(secrets, "ephemeral") if secrets else None)


def moment(at: int | None) -> str | None:
    """Write a moment that may not have come."""
    return None if at is None else clock.iso_seconds(at)


def cost(amount: float) -> str:
    """Write an amount of money without exponent, to a billionth."""
    text = f"{amount:.9f}".rstrip("0").rstrip(".")
    return text if text not in ("", "-0") else "0"


def model(found: Model, cover: Mask) -> wire_turns.Model:
    """Write a model."""
    return wire_turns.Model(
        provider_id=cover.text(found.provider_id),
        model_ref=cover.text(found.model_ref),
        reasoning_effort=cover.text(found.reasoning_effort),
        reasoning_enabled=found.reasoning_enabled,
    )


def speaker(found: Speaker | None) -> wire_turns.Speaker | None:
    """Write who said it."""
    if found is None:
        return None
    return wire_turns.Speaker(
        user_public_id=found.public_id,
        handle=found.handle,
        kind=found.kind,
        display_name=found.display_name,
    )


def file(found: Attachment, cover: Mask) -> wire_turns.Attachment:
    """Write what is told of a file."""
    return wire_turns.Attachment(
        public_id=found.public_id,
        filename=cover.text(found.filename) or "",
        content_type=found.content_type,
        byte_size=found.byte_size,
    )


def backward(next_before: int | None) -> wire.BackwardPagination:
    """Write where a backward page ends."""
    return wire.BackwardPagination(
        next_before=None if next_before is None else paging.task_cursor(next_before),
        has_older=next_before is not None,
    )


def key_after(ctx: Ctx, direction: paging.Direction, columns: Sequence[str]) -> list[int] | None:
    """Read the keyset cursor of a list; None for its first page. Raises `InvalidInputError`."""
    text = AFTER.read(ctx.query)
    if text is None:
        return None
    found = paging.parse_keyset_cursor(text, direction, dict.fromkeys(columns, int))
    if found is None:
        raise invalid("after")
    return [found[column] for column in columns]


def next_page(
    direction: paging.Direction, columns: Sequence[str], key: Sequence[int] | None
) -> wire.KeysetPagination:
    """Write the cursor behind the row with this key; None: there is nothing behind it."""
    if key is None:
        return wire.KeysetPagination(next_after=None)
    named = dict(zip(columns, key, strict=True))
    return wire.KeysetPagination(next_after=paging.keyset_cursor(direction, **named))
