"""What of an input can only be checked by who answers: its model, and how often it asks people."""

from collections.abc import Collection

import msgspec

from stenograph.conversations.access import Conversation
from stenograph.conversations.limits import refused
from stenograph.conversations.wishes import Wishes
from stenograph.engine import store_compaction
from stenograph.engine.choice import settings_of
from stenograph.engine.models import catalog
from stenograph.errors import InvalidInputError
from stenograph.runs import approval
from stenograph.storage.database import Tx


def check_model(wishes: Wishes, endpoints: Collection[str]) -> None:
    """Check that there is the model that is wanted, and that it can think so; loads what is known
    of its provider's models.

    Raises `RefusedError`: `validation_failed`, `unsupported_reasoning_effort`.
    """
    if wishes.model is None:
        return
    try:
        wanted = catalog.parse(wishes.model, endpoints)
        settings_of(wanted, wishes.reasoning_enabled, wishes.reasoning_effort)
    except InvalidInputError as error:
        raise refused(error.message) from None


def is_reachable(model: str, endpoints: Collection[str]) -> bool:
    """Tell whether the provider of a model is set up here."""
    try:
        catalog.parse(model, endpoints)
    except InvalidInputError:
        return False
    return True


def require_tighter(tx: Tx, conversation: Conversation, wishes: Wishes) -> None:
    """Raise `RefusedError` `validation_failed` for an input that would have its run ask people less
    than the session says."""
    if wishes.approval_mode is None:
        return
    written = store_compaction.facts(tx, conversation.id)[1]
    options = {} if written is None else msgspec.json.decode(written, type=dict[str, object])
    usual = approval.read_policy(options).mode
    if approval.tightened(usual, wishes.approval_mode) != wishes.approval_mode:
        raise refused(f"approval_mode is only ever tightened, and the session's is {usual}")
