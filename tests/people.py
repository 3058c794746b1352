"""People of every role, in two organizations, with keys of every plane."""

from dataclasses import dataclass

from stenograph.accounts import access, credential, first_start, principal
from stenograph.accounts.access import Caller
from stenograph.storage.database import Database, Tx


@dataclass(frozen=True)
class Org:
    """The organization `default` after its first start, with more people, and a stranger.

    Callers: `owner`, `admin`, `member` (people), `agent` (an agent profile), `stranger` (the owner
    of the organization `elsewhere`). Each key of `keys` is named `<plane>` for the owner's, else
    `<plane>:<who>`: `api`, `member`, `executor`, `api:admin`, `member:member`, `member:agent`,
    `api:stranger`, …
    """

    owner: Caller
    admin: Caller
    member: Caller
    agent: Caller
    stranger: Caller
    keys: dict[str, str]


def make_org(database: Database) -> Org:
    """Make the organization `default`, people of every role, and a second organization."""
    return database.write(_people)


def _people(tx: Tx) -> Org:
    keys = first_start.create(tx, "default")
    assert keys is not None
    secrets = {plane: keys[plane] for plane in ("api", "member", "executor")}
    owner = access.local(tx)
    principal.add(tx, owner, "admin", role="admin")
    principal.add(tx, owner, "member", role="member")
    elsewhere = first_start.create(tx, "elsewhere")
    assert elsewhere is not None
    for plane in ("api", "member", "executor"):
        secrets[f"{plane}:stranger"] = elsewhere[plane]
    for who in ("admin", "member", "agent"):
        for plane in ("api", "member"):
            _, secrets[f"{plane}:{who}"] = credential.create(tx, owner, plane, holder=who)
    callers = {who: access.resolve(tx, secrets[f"api:{who}"]) for who in ("admin", "member")}
    return Org(
        owner=access.resolve(tx, secrets["api"]),
        agent=access.resolve(tx, secrets["member:agent"]),
        stranger=access.resolve(tx, secrets["api:stranger"]),
        keys=secrets,
        **callers,
    )
