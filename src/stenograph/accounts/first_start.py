"""The first start: an organization, its owner, an agent profile, and a key of each family.

The secrets are written to `keys.json` in the data folder, which only its owner can read, and
nowhere else. The file is written inside the transaction that stores the digests: either both are
there or, after a crash between them, a file that the next start overwrites.
"""

import os
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from stenograph.accounts import credential, organization, principal, scopes, store
from stenograph.storage.database import Database, Tx

FILE = "keys.json"


def ensure(database: Database, data: Path, slug: str = "default") -> bool:
    """Make the organization `slug` if it is not there. True if this call made it.

    `keys.json` holds {"organization": slug, "api": secret, "member": secret, "executor": secret}.
    """
    with database.read() as tx:
        if store.organization_by_slug(tx, slug) is not None:
            return False

    def make(tx: Tx) -> bool:
        keys = create(tx, slug)
        if keys is None:
            return False
        write_privately(data / FILE, msgspec.json.format(msgspec.json.encode(keys)) + b"\n")
        return True

    return database.write(make)


def create(tx: Tx, slug: str) -> dict[str, Any] | None:
    """Make the rows of the first start and return the secrets; None if another was first."""
    organization_id = organization.create(tx, slug, slug.replace("-", " ").capitalize())
    if organization_id is None:
        return None
    owner_id = principal.create(tx, organization_id, "owner", role="owner", name="Owner")
    agent_id = principal.create(tx, organization_id, "agent", role=None, name="Agent")
    holders = {"api": owner_id, "member": owner_id, "executor": agent_id}
    keys: dict[str, Any] = {"organization": slug}
    for plane, holder_id in holders.items():
        granted = scopes.default("owner") if plane == "api" else ()
        _, keys[plane] = credential.insert(
            tx, organization_id, holder_id, plane, granted, name="First start"
        )
    return keys


def write_privately(path: Path, content: bytes) -> None:
    """Replace a file in one step by one of mode 600; at no moment may others read it."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor, partial = tempfile.mkstemp(dir=path.parent)  # of mode 600
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    Path(partial).replace(path)
