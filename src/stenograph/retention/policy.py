"""After how many days execution detail goes (agent-api.md 6)."""

from stenograph.accounts.access import Caller
from stenograph.errors import ForbiddenError, RefusedError
from stenograph.retention import store
from stenograph.storage.database import Tx


def retention_days(tx: Tx, caller: Caller) -> int | None:
    """Return the policy of the caller's organization; None: details stay."""
    _administrator(caller)
    return store.policy(tx, caller.organization_id)


def set_retention_days(tx: Tx, caller: Caller, days: int | None) -> int | None:
    """Set the policy; what has gone does not come back. Raises for anything but a positive int."""
    _administrator(caller)
    if days is not None and (type(days) is not int or not 1 <= days <= 36_500):
        raise RefusedError(
            "execution_details_retention_days must be a whole number of days from 1 to 36500,"
            " or null",
            code="validation_failed",
        )
    store.set_policy(tx, caller.organization_id, days)
    return days


def _administrator(caller: Caller) -> None:
    if caller.kind != "human" or not caller.is_admin:
        raise ForbiddenError(
            "Only an owner or administrator may see or set this", code="administrator_required"
        )
