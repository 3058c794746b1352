"""A candidate that is being answered, with everything around it that decides how."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec.structs import replace

from stenograph.conversations import store as conversations
from stenograph.conversations import turn as turns
from stenograph.conversations import variant as variants
from stenograph.conversations.access import Conversation
from stenograph.conversations.turn import UNSETTLED, Turn
from stenograph.conversations.variant import Variant
from stenograph.conversations.wishes import Configuration, Wishes
from stenograph.engine import store
from stenograph.runs import run as runs
from stenograph.runs.run import Run
from stenograph.storage.database import Tx


class _Own(msgspec.Struct):
    configuration: Configuration | None = None


class _Extra(msgspec.Struct):
    stenograph: _Own = msgspec.field(default_factory=_Own)


class _Rest(msgspec.Struct):
    extra: _Extra = msgspec.field(default_factory=_Extra)


@dataclass(frozen=True, slots=True)
class Work:
    """`model` and `effort` are the session's; `instructions` those of its Reason.

    `is_session`: the conversation has session facts, so that its turns have an outcome. `options`
    is what the session was created with, `wishes` what the input asked for that opened the turn.
    """

    conversation: Conversation
    organization_id: int
    turn: Turn
    variant: Variant
    run: Run | None
    is_session: bool
    model: str | None
    effort: str | None
    options: Mapping[str, Any]
    instructions: str | None
    wishes: Wishes

    @property
    def candidate(self) -> str:
        """The public id of the candidate, which is the id of its workflow."""
        return self.variant.public_id

    @property
    def settled(self) -> bool:
        """Whether it has its end."""
        return self.variant.status not in UNSETTLED

    @property
    def is_reply(self) -> bool:
        """Whether it is a direct reply: one model call that hangs on the candidate itself."""
        return self.variant.source == "inference"

    @property
    def is_shown(self) -> bool:
        """Whether the turn shows it; a regenerated answer is shown when it is there."""
        return self.turn.active_variant_id == self.variant.id


def load(tx: Tx, candidate: str) -> Work | None:
    """Return a candidate by its public id; None: it is not there (any more)."""
    row = store.place(tx, candidate)
    if row is None:
        return None
    turn_id, organization_id, mode, model, effort, options, instructions, wishes, anew = row[:9]
    conversation = _conversation(*row[9:])
    turn = turns.find(tx, conversation, turn_id, concealed=True)
    variant = variants.find(tx, turn, candidate, concealed=True)
    return Work(
        conversation=conversation,
        organization_id=organization_id,
        turn=turn,
        variant=variant,
        run=runs.of(tx, variant),
        is_session=mode is not None,
        model=model,
        effort=effort,
        options={} if options is None else msgspec.json.decode(options, type=dict[str, Any]),
        instructions=instructions or None,
        wishes=_wishes(wishes, anew),
    )


def write_configuration(configuration: Configuration) -> str:
    """Write beside the step of a prompt how the model is to be set that answers it anew."""
    own = {"configuration": msgspec.to_builtins(configuration)}
    return msgspec.json.encode({"extra": {"stenograph": own}}).decode()


def _wishes(written: str | None, anew: str | None) -> Wishes:
    """Return what a turn's input asked for, and a candidate's own configuration (JSON both)."""
    found = Wishes() if written is None else msgspec.json.decode(written, type=Wishes)
    if anew is None:
        return found
    try:
        own = msgspec.json.decode(anew, type=_Rest).extra.stenograph.configuration
    except msgspec.ValidationError:  # a log's own words under the same names
        return found
    return found if own is None else replace(found, configuration=own)


def _conversation(
    row_id: int,
    public_id: str,
    workspace_id: int,
    workspace_state: str,
    creator_id: int,
    answerer_id: int | None,
    is_fork: int,
    side: int,
    *changing: Any,
) -> Conversation:
    """The engine sees all of a conversation that it answers in."""
    about = (row_id, public_id, workspace_id, workspace_state, creator_id, answerer_id)
    return Conversation("full", *about, bool(is_fork), bool(side), *changing)


def hold(tx: Tx, candidate: str) -> Work | None:
    """As `load`, and hold the conversation until the transaction ends."""
    conversation_id = store.conversation_of(tx, candidate)
    if conversation_id is None:
        return None
    conversations.lock(tx, conversation_id)
    return load(tx, candidate)
