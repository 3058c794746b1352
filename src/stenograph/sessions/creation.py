"""How a session begins: its conversation, where it lies, what it was given."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from stenograph.accounts import store as accounts
from stenograph.accounts.access import Caller
from stenograph.clock import now
from stenograph.conversations import store as conversations
from stenograph.conversations import workspace
from stenograph.errors import ConflictError, InvalidInputError
from stenograph.sessions import secret, store, store_ephemeral, store_reasons
from stenograph.sessions.reason import Reason
from stenograph.sessions.session import Mode
from stenograph.storage.database import Tx

#: The workspace of sessions of agents that run elsewhere; the whole organization reads them.
RECORDED = "Recorded sessions"
#: The workspace of Reasons; each of its conversations has an access list of its own.
REASONS = "Reasons"
#: Who keeps the files of a session in an ephemeral workspace: whoever asked for it.
_OWNERSHIP = "externally-managed"


@dataclass(frozen=True, slots=True)
class Key:
    """A key that was sent with a request, and the digests of what it must agree with."""

    key: str
    profile: bytes
    target: bytes


@dataclass(frozen=True, slots=True)
class NewSession:
    """What a session is created with. `agent` names who runs it elsewhere, as ATIF does."""

    mode: Mode = "standard"
    title: str | None = None
    tags: list[str] = field(default_factory=list)
    model: str | None = None
    reasoning_effort: str | None = None
    reason: Reason | None = None
    agent: Mapping[str, Any] | None = None
    secrets: Mapping[str, bytes] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    key: Key | None = None


def create(tx: Tx, caller: Caller, new: NewSession) -> int:
    """Make a session and return its row id. With an `agent` it is one that is recorded.

    Raises `InvalidInputError` or `ConflictError` where an ephemeral workspace does not admit it.
    """
    at = now()
    _admit(tx, caller, new)
    name, default = (RECORDED, "full") if new.reason is None else (REASONS, "none")
    conversation_id = conversations.add_conversation(
        tx,
        at,
        workspace_id=workspace.shared(tx, caller, name),
        creator_id=caller.principal_id,
        title=new.title,
        access_default=default,
    )
    store.insert_session(
        tx,
        conversation_id,
        organization_id=caller.organization_id,
        owner_id=caller.principal_id,
        reason_id=None if new.reason is None else new.reason.id,
        mode=new.mode,
        status="running",
        recorded=int(new.agent is not None),
        model=new.model,
        reasoning_effort=new.reasoning_effort,
        tags=_json(new.tags),
        options=_json(new.options),
        agent=None if new.agent is None else _json(new.agent),
        idempotency_key=None if new.key is None else _own(caller, new.key),
        idempotency_digest=None if new.key is None else new.key.profile + new.key.target,
        created_at=at,
        started_at=at,
    )
    store_ephemeral.consume(tx, caller.organization_id, conversation_id)
    secret.give(tx, conversation_id, new.secrets)
    if new.reason is not None:
        store_reasons.copy_shares(tx, new.reason.id, conversation_id)
    return conversation_id


def _admit(tx: Tx, caller: Caller, new: NewSession) -> None:
    """Check that a session may begin: in an ephemeral workspace exactly one, of its mode.

    One that is recorded may be ephemeral anywhere. Raises `InvalidInputError` or `ConflictError`
    (`ephemeral_workspace_…`, `ephemeral_requires_external_workspace`).
    """
    live = new.agent is None
    row = store_ephemeral.of(tx, caller.organization_id)
    if row is None:
        if live and new.mode == "ephemeral":
            raise ConflictError(
                "An ephemeral session runs in an ephemeral workspace, with its key",
                code="ephemeral_workspace_required",
            )
        return
    conversation_id, retired_at = row
    if retired_at is not None:
        raise ConflictError("The workspace was retired", code="ephemeral_workspace_retired")
    if new.mode != "ephemeral":
        raise InvalidInputError(
            "Here sessions are ephemeral", code="ephemeral_workspace_mode_required"
        )
    if new.key is None:
        raise InvalidInputError(
            "A session here needs an idempotency_key",
            code="ephemeral_workspace_idempotency_key_required",
        )
    if live and new.options.get("workspace_ownership") != _OWNERSHIP:
        raise InvalidInputError(
            f"Here workspace_ownership is {_OWNERSHIP}",
            code="ephemeral_requires_external_workspace",
        )
    if conversation_id is not None:
        raise ConflictError("The workspace had its session", code="ephemeral_workspace_consumed")


def key(text: str, profile: Any, target: Any) -> Key:
    """Digest what a repeated request must agree with; the order of members does not count."""
    return Key(text, _digest(profile), _digest(target))


def repeated(tx: Tx, caller: Caller, sent: Key) -> str | None:
    """Return the public id of the session that the caller created with this key before.

    Raises `ConflictError`: `idempotency_target_conflict` or `idempotency_profile_conflict` if
    where it runs, or anything else, was another then. Keys of different people do not meet.
    """
    accounts.hold_organization(tx, caller.organization_id)
    found = store.by_key(tx, caller.organization_id, _own(caller, sent))
    if found is None:
        return None
    profile, target = bytes(found[1])[:16], bytes(found[1])[16:]
    if target != sent.target:
        raise ConflictError("The key has another target", code="idempotency_target_conflict")
    if profile != sent.profile:
        raise ConflictError("The key has another body", code="idempotency_profile_conflict")
    return str(found[0])


def _own(caller: Caller, sent: Key) -> str:
    return f"{caller.principal_id}:{sent.key}"


def _digest(value: Any) -> bytes:
    encoded = msgspec.json.encode(value, order="deterministic")
    return hashlib.blake2b(encoded, digest_size=16).digest()


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
