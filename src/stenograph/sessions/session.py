"""A session: one run of work, which is a conversation with facts of its own (reason-api.md 3).

Who may see one: a session of a Reason, the Reason's owner and the people it is shared with, not
even an administrator besides; any other session, its owner, owners and admins of the
organization, and everyone who may read its conversation (a workspace open to the whole
organization, as those of imported logs and recorded sessions are, or one they are a member of,
unless the conversation's access list says `none`). Who may drive one: its owner, and owners and
admins for sessions outside Reasons. A subagent carries the Reason of who started it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import msgspec

from stenograph.accounts.access import Caller
from stenograph.errors import ForbiddenError, NotFoundError
from stenograph.sessions import store
from stenograph.sessions.messages import Outcome
from stenograph.storage.database import Row, Tx

Status: TypeAlias = Literal["running", "exit", "error", "cancelled", "suspended"]
Mode: TypeAlias = Literal["standard", "ephemeral"]


@dataclass(frozen=True, slots=True)
class Session:
    """The facts of a session. `id` and `*_id` are row ids, times microseconds.

    `reason_owner_id` is None outside Reasons. `runs_here`: this server's engine runs it, not an
    agent elsewhere. `options` is what it was created with and what no column holds.
    """

    id: int
    public_id: str
    owner_id: int
    reason_id: int | None
    reason_public_id: str | None
    reason_owner_id: int | None
    parent_public_id: str | None
    workspace_id: int
    title: str | None
    tags: list[str]
    mode: Mode
    status: Status
    outcome: Outcome | None
    recorded: bool
    runs_here: bool
    model: str | None
    reasoning_effort: str | None
    options: dict[str, Any]
    error_class: str | None
    reason_code: str | None
    created_at: int
    started_at: int | None
    ended_at: int | None


@dataclass(slots=True)
class Account:
    """What a session used, without its subagents; None: not known.

    It counts every model call that was made, those of candidates that were left included, and
    `input_tokens` count what was read from a cache. `cost_usd` is known only if that of every
    call is.
    """

    input_tokens: int | None = None
    cached_input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None


@dataclass(slots=True)
class Details:
    """What is added up or looked up for a session: children, usage, the latest turn's answer."""

    child_public_ids: list[str] = field(default_factory=list)
    usage: Account = field(default_factory=Account)
    result_summary: str | None = None


@dataclass(frozen=True, slots=True)
class Filters:
    """What a list of sessions is narrowed to; times in microseconds, exclusive."""

    reason_id: str | None = None
    status: str | None = None
    tag: str | None = None
    created_after: int | None = None
    created_before: int | None = None


def find(tx: Tx, caller: Caller, public_id: str) -> Session:
    """Return a session; `NotFoundError` (`session_not_found`) if the caller may not see it."""
    row = store.find(tx, viewer(caller), public_id)
    if row is None:
        raise NotFoundError("There is no such session", code="session_not_found")
    return _session(row)


def listed(
    tx: Tx, caller: Caller, filters: Filters, *, before: int | None, limit: int
) -> list[Session]:
    """List sessions, subagents included, the newest record first; `before` is a row id."""
    chosen: dict[str, Any] = {
        "reason_id": filters.reason_id,
        "status": filters.status,
        "tag": filters.tag,
        "created_after": filters.created_after,
        "created_before": filters.created_before,
        "before": before,
    }
    narrowed = {name: value for name, value in chosen.items() if value is not None}
    return [_session(row) for row in store.listed(tx, viewer(caller), limit, narrowed)]


def details(tx: Tx, sessions: Iterable[Session]) -> dict[int, Details]:
    """Return the details of sessions by row id; three queries, however many there are."""
    found = {session.id: Details() for session in sessions}
    if not found:
        return found
    for parent_id, child in store.children(tx, found):
        found[parent_id].child_public_ids.append(child)
    for row_id, prompt, cached, completion, cost in store.usage(tx, found):
        found[row_id].usage = Account(_int(prompt), _int(cached), _int(completion), cost)
    for row_id, content in store.results(tx, found):
        found[row_id].result_summary = content
    return found


def require_control(caller: Caller, session: Session) -> None:
    """Check that the caller may drive a session they see; `ForbiddenError` (`forbidden`) if not."""
    owner = session.owner_id if session.reason_owner_id is None else session.reason_owner_id
    if caller.principal_id == owner or (caller.is_admin and session.reason_id is None):
        return
    raise ForbiddenError("Only its owner may do this", code="forbidden")


def viewer(caller: Caller) -> dict[str, int]:
    """Return what decides which sessions a caller sees."""
    return {
        "organization_id": caller.organization_id,
        "principal_id": caller.principal_id,
        "admin": int(caller.is_admin),
    }


def _int(value: Any) -> int | None:
    # PostgreSQL sums BIGINT to NUMERIC.
    return None if value is None else int(value)


def _session(row: Row) -> Session:
    columns: Sequence[Any] = row
    (row_id, public_id, owner_id, reason_id, reason, reason_owner_id, parent, workspace_id, title,
     tags, mode, status, outcome, recorded, runs_here, model, effort, options, error_class,
     reason_code, created_at, started_at, ended_at) = columns  # fmt: skip
    return Session(
        id=row_id,
        public_id=public_id,
        owner_id=owner_id,
        reason_id=reason_id,
        reason_public_id=reason,
        reason_owner_id=reason_owner_id,
        parent_public_id=parent,
        workspace_id=workspace_id,
        title=title,
        tags=msgspec.json.decode(tags),
        mode=mode,
        status=status,
        outcome=outcome,
        recorded=bool(recorded),
        runs_here=bool(runs_here),
        model=model,
        reasoning_effort=effort,
        options=msgspec.json.decode(options),
        error_class=error_class,
        reason_code=reason_code,
        created_at=created_at,
        started_at=started_at,
        ended_at=ended_at,
    )
