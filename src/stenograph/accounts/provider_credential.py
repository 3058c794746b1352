"""An organization's own keys for models (BYOK): sealed, and never read back."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from urllib.parse import urlsplit

import msgspec

from stenograph.accounts import store_settings as store
from stenograph.accounts.access import Caller
from stenograph.clock import now
from stenograph.errors import ForbiddenError, InvalidInputError, NotFoundError
from stenograph.ids import new_id
from stenograph.storage.database import Row, Tx
from stenograph.storage.sealing import Sealer, plain_texts

_WORD = re.compile(r"[\x21-\x7e]{1,8192}")


class Private(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is sealed. `base_url` and `aws_region` are no secrets, and read back."""

    api_key: str | None = None
    base_url: str | None = None
    aws_access_key_id: str | None = None
    aws_secret_access_key: str | None = None
    aws_session_token: str | None = None
    aws_region: str | None = None

    def __repr__(self) -> str:
        return "Private(…)"


#: The members of `Private` that are secrets.
SECRETS = ("api_key", "aws_access_key_id", "aws_secret_access_key", "aws_session_token")


@dataclass(frozen=True, slots=True)
class ProviderCredential:
    """What is known of a key; `given` names the secrets that it consists of. Times in
    microseconds."""

    provider_id: str
    base_url: str | None
    aws_region: str | None
    given: tuple[str, ...]
    created_at: int
    updated_at: int


def listed(tx: Tx, caller: Caller, sealer: Sealer) -> list[ProviderCredential]:
    """List the organization's own keys, by provider."""
    rows = store.provider_credentials(tx, caller.organization_id)
    return [_known(row, sealer, caller.organization_id) for row in rows]


def put(
    tx: Tx, caller: Caller, sealer: Sealer, provider_id: str, private: Private
) -> ProviderCredential:
    """Keep a key for a provider, wholly in place of the one before.

    Whether the provider is one, and whether this is enough for it, is for the caller to check.
    Raises `ForbiddenError` unless by an owner or admin, `InvalidInputError`
    (`invalid_provider_credential`).
    """
    require_admin(caller)
    _check(private)
    store.put_provider_credential(
        tx,
        public_id=new_id(),
        organization_id=caller.organization_id,
        creator_id=caller.principal_id,
        provider_id=provider_id,
        ciphertext=sealer.seal(
            msgspec.json.encode(_noted(private)).decode(),
            _context(caller.organization_id, provider_id),
        ),
        updated_at=now(),
    )
    row = store.provider_credential(tx, caller.organization_id, provider_id)
    assert row is not None
    return _known(row, sealer, caller.organization_id)


def delete(tx: Tx, caller: Caller, provider_id: str) -> None:
    """Delete a key. Raises `ForbiddenError`, `NotFoundError` (`provider_credential_not_found`)."""
    require_admin(caller)
    if not store.delete_provider_credential(tx, caller.organization_id, provider_id):
        raise NotFoundError(
            "There is no key for this provider", code="provider_credential_not_found"
        )


def private(tx: Tx, sealer: Sealer, organization_id: int, provider_id: str) -> Private | None:
    """Open an organization's key for a provider, for a call of its model; None: it has none.

    Raises `SealError`.
    """
    row = store.provider_credential(tx, organization_id, provider_id)
    return None if row is None else _open(sealer, organization_id, provider_id, row[1])


def require_admin(caller: Caller) -> None:
    """Raise `ForbiddenError` unless an owner or admin calls: a key spends money."""
    if not caller.is_admin:
        raise ForbiddenError("Only an owner or admin manages keys for models", code="forbidden")


def _check(private: Private) -> None:
    words: Collection[str | None] = msgspec.structs.astuple(private)
    if any(word is not None and _WORD.fullmatch(word) is None for word in words):
        raise _invalid("Each value is printable ASCII without spaces, up to 8,192 characters")
    if private.base_url is None:
        return
    try:
        parts = urlsplit(private.base_url)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if not usable or "@" in parts.netloc or parts.query or parts.fragment:
        raise _invalid("A `base_url` is http:// or https://, without password, query or fragment")


def _invalid(why: str) -> InvalidInputError:
    return InvalidInputError(why, code="invalid_provider_credential")


def _known(row: Row, sealer: Sealer, organization_id: int) -> ProviderCredential:
    provider_id, sealed, created_at, updated_at = row
    found = _open(sealer, organization_id, provider_id, sealed)
    given = tuple(name for name in SECRETS if getattr(found, name) is not None)
    return ProviderCredential(
        provider_id, found.base_url, found.aws_region, given, created_at, updated_at
    )


def _open(sealer: Sealer, organization_id: int, provider_id: str, sealed: bytes) -> Private:
    text = sealer.open(bytes(sealed), _context(organization_id, provider_id))
    return _noted(msgspec.json.decode(text, type=Private))


def _noted(private: Private) -> Private:
    """Let nothing that is told of this request hold a secret."""
    if (known := plain_texts.get()) is not None:
        known.update(value for name in SECRETS if (value := getattr(private, name)) is not None)
    return private


def _context(organization_id: int, provider_id: str) -> str:
    return f"provider_credential:{organization_id}:{provider_id}"
