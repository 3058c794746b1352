"""Who is calling, and what that lets them do."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from stenograph.accounts import scopes as scope_names
from stenograph.accounts import store
from stenograph.clock import now
from stenograph.errors import NotFoundError, UnauthorizedError
from stenograph.storage.database import Tx

Plane: TypeAlias = Literal["api", "member", "executor", "local", "open"]

#: The fields that the first columns of a row from `store` fill.
_PERSON = (
    "organization_id", "organization_public_id", "organization_slug", "organization_name",
    "principal_id", "principal_public_id", "kind", "role",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Caller:
    """A person or an agent, with the credential they came with.

    `kind` is `human` or `agent`; `role` is `owner`, `admin` or `member`, None for agents.
    `scopes` counts on the plane `api` only (all of them on `local`). On the plane `open` it is
    nobody, of no organization.
    """

    organization_id: int
    organization_public_id: str
    organization_slug: str
    organization_name: str
    principal_id: int
    principal_public_id: str
    kind: str
    role: str | None
    plane: Plane
    credential_id: int | None
    credential_public_id: str | None
    scopes: frozenset[str]

    @property
    def is_admin(self) -> bool:
        """Whether this is an owner or admin of the organization."""
        return self.role in ("owner", "admin")


#: Who calls what takes no credential.
NOBODY = Caller(0, "", "", "", 0, "", "", None, "open", None, None, frozenset())


def resolve(tx: Tx, secret: str) -> Caller:
    """Return who holds this secret.

    Raises `UnauthorizedError` (code `invalid_api_key`, `api_key_expired` or `api_key_revoked`)
    if nobody does, or nobody any more. Which plane is wanted is for the edge to check.
    """
    found = store.credential_by_digest(tx, store.digest(secret))
    if found is None:
        raise UnauthorizedError("No such key", code="invalid_api_key")
    row_id, public_id, plane, granted, expires_at, *withdrawn = found[8:]
    if any(moment is not None for moment in withdrawn):
        raise UnauthorizedError("The key was revoked", code="api_key_revoked")
    if expires_at is not None and expires_at <= now():
        raise UnauthorizedError("The key has expired", code="api_key_expired")
    scopes = scope_names.held(granted.split(), found[7])
    return Caller(
        **dict(zip(_PERSON, found, strict=False)),
        plane=plane,
        credential_id=row_id,
        credential_public_id=public_id,
        scopes=scopes,
    )


def local(tx: Tx, organization: str = "default") -> Caller:
    """Return the owner of an organization, as who works on the machine itself."""
    found = store.owner(tx, organization)
    if found is None:
        raise NotFoundError(
            f"There is no organization {organization!r} yet: start the server once to make it",
            code="organization_not_found",
        )
    return Caller(
        **dict(zip(_PERSON, found, strict=True)),
        plane="local",
        credential_id=None,
        credential_public_id=None,
        scopes=scope_names.ALL,
    )
