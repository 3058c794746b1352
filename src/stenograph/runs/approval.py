"""Approvals: calls that wait until a person lets them be made, or not.

A run asks as its mode says: `bypass` nobody, `rules` where no rule of the session allows or denies
the call, `ask` for every call that no rule denies. An input may make its run ask more, never less.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta

from stenograph.accounts.access import Caller
from stenograph.clock import now
from stenograph.conversations import access
from stenograph.conversations import store as conversations
from stenograph.conversations.access import Conversation
from stenograph.errors import ConflictError, ForbiddenError, InvalidInputError, NotFoundError
from stenograph.events.journal import Event, append
from stenograph.runs import store as runs_store
from stenograph.runs import store_approvals as store
from stenograph.runs import task as tasks
from stenograph.runs.run import Run
from stenograph.runs.task import Task
from stenograph.storage.database import Tx

Mode: TypeAlias = Literal["bypass", "rules", "ask"]
Verdict: TypeAlias = Literal["allow", "ask", "deny"]
Decision: TypeAlias = Literal["approve", "deny"]

#: From the loosest to the tightest.
_MODES: tuple[Mode, ...] = ("bypass", "rules", "ask")
#: Characters of a note that a person adds to a decision.
NOTE = 2_000


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What becomes of calls whose tool's name matches a glob (`mcp_*`, `read`)."""

    tool: Annotated[str, Meta(min_length=1, max_length=200)]
    decision: Verdict


class Policy(msgspec.Struct, frozen=True):
    """What of a `session_policy` is obeyed here; the first rule that matches counts.

    Without a mode, rules are obeyed where there are some, and nobody is asked otherwise.
    `compaction` false: what is too long is left out of requests, and never summed up.
    """

    approval_mode: Mode | None = None
    approval_rules: Annotated[tuple[Rule, ...], Meta(max_length=200)] = ()
    compaction: bool = True

    @property
    def mode(self) -> Mode:
        """The mode of the session."""
        return self.approval_mode or ("rules" if self.approval_rules else "bypass")


@dataclass(frozen=True, slots=True)
class Approval:
    """A call that somebody was, or is, asked about. Times in microseconds, `input` is JSON.

    `status` is the task's: while it is `needs_approval` and nothing is decided, the call waits.
    """

    task_id: int
    run: str
    key: str
    name: str
    status: tasks.Status
    input: str | None
    decision: Decision | None
    decider: str | None
    note: str | None
    requested_at: int
    decided_at: int | None

    @property
    def waits(self) -> bool:
        """Whether somebody has to decide."""
        return self.status == "needs_approval" and self.decision is None


def read_policy(options: Mapping[str, Any]) -> Policy:
    """Read what a session was created with. Raises `InvalidInputError` `invalid_session_policy`."""
    try:
        return msgspec.convert(options.get("session_policy") or {}, Policy)
    except msgspec.ValidationError as error:
        message = f"/session_policy: {error}"
        raise InvalidInputError(message, code="invalid_session_policy") from None


def tightened(mode: Mode, wish: str | None) -> Mode:
    """Return the tighter of a session's mode and what an input asks for."""
    return max((it for it in _MODES if it in (mode, wish)), key=_MODES.index)


def verdict(policy: Policy, mode: str, tool: str) -> Verdict:
    """Return what becomes of a call. What a rule denies is denied in `ask` too."""
    if mode == "bypass":
        return "allow"
    for rule in policy.approval_rules:
        if fnmatchcase(tool, rule.tool):
            return "ask" if mode == "ask" and rule.decision == "allow" else rule.decision
    return "ask"


def request(tx: Tx, run: Run, task: Task) -> None:
    """Let a call wait for a person, and say so; once is enough."""
    if task.status == "needs_approval":
        return
    store.add(tx, task.id, now())
    tasks.start(tx, run, task, "needs_approval")
    payload = {"task_key": task.key, "reason": "approval"}
    event = Event("attention_required", run.turn_id, run.variant_id, run.id, task.id, None, payload)
    append(tx, run.conversation_id, event)


def decided(tx: Tx, task: Task) -> tuple[Decision, str | None] | None:
    """Return what was decided about a call, and the note that came with it; None: nothing yet."""
    row = store.decision(tx, task.id)
    return None if row is None or row[0] is None else (row[0], row[1])


def decide(
    tx: Tx,
    caller: Caller,
    conversation: Conversation,
    run: Run,
    key: str,
    decision: Decision,
    note: str | None = None,
) -> Approval:
    """Let a call be made, or not. The first decision counts; the same one again changes nothing.

    Raises `ForbiddenError` unless a person with full access decides, `NotFoundError`, or
    `ConflictError` `not_eligible` for a call that was decided otherwise or waits no more.
    """
    access.require_full(conversation)
    require_person(caller)
    return _decide(tx, caller, run, tasks.find(tx, run, key), decision, note)


def decide_in_session(
    tx: Tx,
    caller: Caller,
    conversation_id: int,
    key: str,
    decision: Decision,
    note: str | None = None,
) -> Approval:
    """As `decide`, for the newest call of a session with this key that somebody was asked about.

    That the caller may drive the session was checked. Raises `NotFoundError`
    `approval_not_found`.
    """
    require_person(caller)
    row = store.newest(tx, conversation_id, key)
    if row is None:
        raise NotFoundError("Nobody was asked about this call", code="approval_not_found")
    run = Run(*runs_store.run(tx, row))
    return _decide(tx, caller, run, tasks.find(tx, run, key), decision, note)


def require_person(caller: Caller) -> None:
    """Raise `ForbiddenError` for an agent: it may not let itself, or another one, act."""
    if caller.kind != "human":
        raise ForbiddenError("Only a person may decide this", code="not_authorized")


def _decide(
    tx: Tx, caller: Caller, run: Run, task: Task, decision: Decision, note: str | None
) -> Approval:
    conversations.lock(tx, run.conversation_id)
    found = find(tx, task.id)
    if found is None:
        raise ConflictError("This task waits for nobody's approval", code="not_eligible")
    if found.decision == decision:
        return found
    if found.decision is not None:
        raise ConflictError(f"It was decided: {found.decision}", code="not_eligible")
    if not found.waits:
        raise ConflictError("The call waits no more", code="not_eligible")
    store.decide(tx, task.id, decision, caller.principal_id, note or None, now())
    payload = {"task_key": task.key, "status": found.status, "decision": decision}
    event = Event("task_status", run.turn_id, run.variant_id, run.id, task.id, None, payload)
    append(tx, run.conversation_id, event)
    made = find(tx, task.id)
    assert made is not None
    return made


def find(tx: Tx, task_id: int) -> Approval | None:
    """Return what was asked about a task of a run that the caller was found to see."""
    row = store.find(tx, task_id)
    return None if row is None else Approval(*row)


def of_session(tx: Tx, conversation_id: int, before: int | None, limit: int) -> list[Approval]:
    """List what was asked in a conversation, the newest first; `before` is a task's row id."""
    return [Approval(*row) for row in store.listed(tx, conversation_id, before, limit)]


def waiting(tx: Tx, run: Run) -> Sequence[str]:
    """Return the keys of a run's calls that wait for a person, in order."""
    return store.waiting(tx, run.id)


def is_settled(tx: Tx, candidate: str, task_id: int) -> bool:
    """Tell whether a call of a candidate need not wait: it was decided, or the turn has ended."""
    return store.is_settled(tx, candidate, task_id)
