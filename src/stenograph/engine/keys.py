"""Whose key opens a provider's door: the server's, or the organization's own (BYOK)."""

from collections.abc import Callable, Mapping

import msgspec

from stenograph.accounts import provider_credential
from stenograph.accounts.provider_credential import Private
from stenograph.engine.models.catalog import ModelId
from stenograph.engine.models.credentials import Credentials, from_environment, suffice
from stenograph.engine.models.failures import ModelFailedError
from stenograph.storage.database import Database, Tx
from stenograph.storage.sealing import Sealer, SealError


def organization(
    tx: Tx, sealer: Sealer, organization_id: int, provider_id: str, endpoints: Mapping[str, str]
) -> Credentials | None:
    """Return an organization's own credentials for a provider; None: it has none.

    Nothing of the server's is among them, but the address of an endpoint of the settings where the
    organization names no other. Raises `SealError`.
    """
    own = provider_credential.private(tx, sealer, organization_id, provider_id)
    return None if own is None else credentials_of(own, provider_id, endpoints)


def credentials_of(own: Private, provider_id: str, endpoints: Mapping[str, str]) -> Credentials:
    """Return as credentials what an organization set for a provider."""
    members = msgspec.structs.asdict(own)
    members["base_url"] = own.base_url or endpoints.get(provider_id)
    return Credentials(**members)


def resolver(
    database: Database,
    sealer: Sealer,
    environment: Mapping[str, str],
    endpoints: Mapping[str, str],
) -> Callable[[int, ModelId], Credentials]:
    """Return what finds the credentials for a call: by organization (row id) and model.

    A `byok:` model takes the organization's own and no other; any other takes the server's, or
    the organization's own where the server has none. What is returned raises `ModelFailedError`
    `unauthorized`, a session's `agent_model_key_missing`, where there are none: nothing is asked
    then. It reads the database, so call it in a thread.
    """

    def find(organization_id: int, model: ModelId) -> Credentials:
        if not model.byok:
            servers = from_environment(environment, model.provider_id, endpoints)
            if suffice(model.provider, servers):
                return servers
        try:
            with database.read() as tx:
                own = organization(tx, sealer, organization_id, model.provider_id, endpoints)
        except SealError:
            raise _missing(f"The key for {model.provider_id} must be set again") from None
        if own is None or not suffice(model.provider, own):
            whose = "The organization has no key of its own" if model.byok else "No key is set up"
            raise _missing(f"{whose} for {model.provider_id}")
        return own

    return find


def _missing(why: str) -> ModelFailedError:
    return ModelFailedError("unauthorized", why)
