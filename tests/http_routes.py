"""Every route that is served, for tests that hold for each of them."""

from pathlib import Path

from stenograph.accounts.access import Caller
from stenograph.http import server
from stenograph.http.route import Route
from stenograph.storage.database import Database, Tx
from stenograph.trajectories.importers.discovery import find, read_source
from stenograph.trajectories.recording.record import record

SAMPLES = Path(__file__).parent.parent / "samples"

NOWHERE = "00000000-0000-7000-8000-000000000000"


def fill(path: str, org: str = "default") -> str:
    """Put ids that name nothing into a route's path."""
    for name in server._split(path):
        if name.startswith("{"):
            path = path.replace(name, org if name == "{orgId}" else NOWHERE)
    return path


def every_route() -> list[tuple[str, str, Route]]:
    """(family, prefix, route) of all that is served."""
    return [
        (family, prefix, route)
        for family, (prefix, routes) in server.families().items()
        for route in routes
    ]


def record_samples(database: Database, caller: Caller) -> dict[str, str]:
    """Import the sample logs, and return ids that name something, by path parameter."""

    def keep(tx: Tx) -> None:
        for candidate in find([SAMPLES]):
            if candidate.format is not None:
                for draft in read_source(candidate):
                    record(tx, caller, draft)

    database.write(keep)
    with database.read() as tx:
        row = tx.row(
            "SELECT w.public_id, c.public_id, t.public_id, v.public_id, r.public_id"
            " FROM runs r JOIN variants v ON v.id = r.variant_id JOIN turns t ON t.id = v.turn_id"
            " JOIN conversations c ON c.id = t.conversation_id"
            " JOIN workspaces w ON w.id = c.workspace_id ORDER BY r.id"
        )
    assert row is not None
    names = ("workspace", "conversation", "turn", "variant", "run")
    found = dict(zip(names, row, strict=True))
    return found | {"orgId": "default", "sessionId": found["conversation"], "task_key": "r1"}


def every_row(database: Database) -> dict[str, list[tuple[object, ...]]]:
    """Everything the record holds, by table; but when a key was last used."""
    with database.read() as tx:
        if tx.dialect == "sqlite":
            found = "SELECT name FROM sqlite_master WHERE type = 'table'"
        else:
            found = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
        return {
            name: sorted(tx.rows(f"SELECT * FROM {name}"), key=repr) for (name,) in tx.rows(found)
        }
