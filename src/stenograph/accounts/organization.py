"""Organizations: the outermost fence; nothing of one is seen from another."""

import re

from stenograph.accounts import store
from stenograph.accounts.access import Caller
from stenograph.clock import now
from stenograph.errors import InvalidInputError, NotFoundError
from stenograph.ids import new_id
from stenograph.storage.database import Tx

_SLUG = re.compile(r"[a-z0-9][a-z0-9-]{0,38}")


def create(tx: Tx, slug: str, name: str) -> int | None:
    """Make an organization and return its row id; None if one of that slug is there already.

    Two processes that make the same one at once: the second waits for the first and gets None.
    """
    if _SLUG.fullmatch(slug) is None:
        raise InvalidInputError(
            "A slug is 1 to 39 of a-z, 0-9 and '-', and starts with a letter or digit",
            code="invalid_slug",
        )
    made = store.claim_slug(tx, public_id=new_id(), slug=slug, name=name, created_at=now())
    return store.organization_by_slug(tx, slug) if made else None


def require(caller: Caller, named: str) -> None:
    """Check that `named`, an id or slug, is the caller's own organization."""
    if named not in (caller.organization_public_id, caller.organization_slug):
        raise NotFoundError("No such organization", code="organization_not_found")
