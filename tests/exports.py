"""What tests ask of an export: the document of a session, as a reader gets it."""

import json

from stenograph.storage.database import Database
from stenograph.trajectories.export.document import trajectory
from stenograph.trajectories.redaction.redactor import Redactor


def row_id(database: Database, session_id: str) -> int:
    with database.read() as tx:
        return tx.value("SELECT id FROM conversations WHERE public_id = :id", id=session_id)


def exported_bytes(database: Database, session_id: str, tier="ephemeral", secrets=()) -> bytes:
    conversation_id = row_id(database, session_id)
    with database.read() as tx:
        return b"".join(trajectory(tx, conversation_id, Redactor(secrets, tier)))


def exported(database: Database, session_id: str, tier="ephemeral", secrets=()) -> dict:
    return json.loads(exported_bytes(database, session_id, tier, secrets))


def without_additions(document: dict) -> dict:
    """Leave out what an export adds or writes anew (docs/decisions/0011)."""
    left = dict(document)
    left.pop("schema_version", None)
    left.pop("final_metrics", None)
    extra = dict(left.pop("extra", None) or {})
    extra.pop("fidelity", None)
    if extra:
        left["extra"] = extra
    if "subagent_trajectories" in left:
        left["subagent_trajectories"] = [
            without_additions(child) for child in left["subagent_trajectories"]
        ]
    return left
