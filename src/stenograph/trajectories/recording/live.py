"""Recording an agent that runs elsewhere, step by step, while it runs.

A step's `step_id` is its place in the session, 1, 2, 3 …; what is there already and is sent again
changes nothing, so a sender that got no answer may simply repeat itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from stenograph.clock import now
from stenograph.conversations import store_turns
from stenograph.errors import ConflictError, InvalidInputError
from stenograph.sessions import conversing
from stenograph.sessions import store as sessions
from stenograph.sessions.messages import Outcome
from stenograph.storage.database import Tx
from stenograph.trajectories.atif.check import problems
from stenograph.trajectories.atif.format import Agent, Step, Trajectory
from stenograph.trajectories.atif.reading import read_json
from stenograph.trajectories.atif.rules import check
from stenograph.trajectories.importers.atif import step_draft
from stenograph.trajectories.importers.draft import Part, StepDraft, TurnStatus
from stenograph.trajectories.recording import store, store_sessions
from stenograph.trajectories.recording.turns import OpenTurn, Recorder, Target


class Finish(msgspec.Struct, forbid_unknown_fields=True):
    """How the session ended: its last turn gets this end, and takes no more steps."""

    status: Literal["exit", "error", "cancelled"] = "exit"
    outcome: Outcome | None = None
    result_summary: str | None = None


@dataclass(frozen=True, slots=True)
class Sent:
    """A request of a sender, read."""

    steps: list[Step]
    finish: Finish | None


@dataclass(frozen=True, slots=True)
class Appended:
    """What became of it: how many steps are new, how many were there, and the newest step's id."""

    appended: int
    unchanged: int
    last_step_id: int
    status: str


#: Of the document that sent steps are held to the rules of.
_VERSION, _NOBODY = "ATIF-v1.8", Agent(name="-", version="-")
_ENDS: dict[str, TurnStatus] = {"exit": "completed", "error": "failed", "cancelled": "canceled"}


def read_steps(body: bytes) -> Sent:
    """Read `{"steps": [step, …], "finish": {…}}`, or one step alone.

    Raises InvalidInputError with the JSON pointer of everything that is not ATIF.
    """
    value = read_json(body).value
    if not isinstance(value, dict):
        raise InvalidInputError("The body must be an object", code="invalid_request")
    if "step_id" in value:
        value = {"steps": [value]}
    if unknown := value.keys() - {"steps", "finish"}:
        raise InvalidInputError(f"/{min(unknown)}: unknown field", code="invalid_request")
    steps = value.get("steps", [])
    numbers = _numbers(steps)
    read = _checked(steps) if steps else []
    for step, number in zip(read, numbers, strict=True):
        step.step_id = number
    return Sent(read, _finish(value.get("finish")))


def _numbers(steps: Any) -> list[int]:
    if not isinstance(steps, list):
        raise InvalidInputError("/steps: must be an array", code="invalid_steps")
    numbers: list[int] = []
    for index, step in enumerate(steps):
        number = step.get("step_id") if isinstance(step, dict) else None
        if type(number) is not int or number < 1 or (numbers and number != numbers[-1] + 1):
            raise InvalidInputError(
                f"/steps/{index}/step_id: must be a whole number from 1, one more than the last",
                code="invalid_steps",
            )
        numbers.append(number)
        step["step_id"] = index + 1  # the rules are those of a document, which starts at 1
    return numbers


def _checked(steps: list[Any]) -> list[Step]:
    """Return the steps, held to a document's rules; only refused ones are looked at twice."""
    try:
        read = msgspec.convert(steps, list[Step])
    except msgspec.ValidationError:
        pass
    else:
        if not check(Trajectory(schema_version=_VERSION, agent=_NOBODY, steps=read)).problems:
            return read
    agent = msgspec.to_builtins(_NOBODY)
    found = problems({"schema_version": _VERSION, "agent": agent, "steps": steps})
    told = "; ".join(f"{p.pointer}: {p.message}" for p in found[:5])
    raise InvalidInputError(
        told, code="invalid_steps", problems=[(p.pointer, p.message) for p in found]
    )


def _finish(value: Any) -> Finish | None:
    if value is None:
        return None
    try:
        return msgspec.convert(value, Finish)
    except msgspec.ValidationError as error:
        raise InvalidInputError(f"/finish: {error}", code="invalid_request") from None


def append(tx: Tx, conversation_id: int, sent: Sent) -> Appended:
    """Add steps to a session that was made with `recorded`, and end it if the sender says so."""
    session = store_sessions.lock_recorded(tx, conversation_id)
    if session is None:
        raise ConflictError("This session is not one that is recorded", code="session_not_recorded")
    drafts, unchanged = _new(tx, session, sent.steps)
    if session.status != "running":
        if drafts or (sent.finish and not _is_ended_so(tx, session, sent.finish)):
            raise ConflictError("The session has ended", code="session_ended")
    elif drafts or sent.finish:
        recorder = _recorder(tx, session)
        recorder.add(drafts)
        _settle(tx, recorder, sent.finish)
        _say_busy(tx, session, recorder)
    status = session.status
    if sent.finish is not None:
        status = sent.finish.status
    return Appended(len(drafts), unchanged, session.steps + len(drafts), status)


def _is_ended_so(tx: Tx, session: store_sessions.RecordedSession, finish: Finish) -> bool:
    """Tell whether a session has the end that a sender, who got no answer, sends again."""
    ended, outcome, answer = store_sessions.ended(tx, session.conversation_id)
    return (
        finish.status == ended
        and finish.outcome in (None, outcome)
        and (answer is None or finish.result_summary in (None, answer))
    )


def _new(
    tx: Tx, session: store_sessions.RecordedSession, steps: Sequence[Step]
) -> tuple[list[StepDraft], int]:
    """Return the steps that are new; the others must be what is there under their number."""
    if steps and steps[0].step_id > session.steps + 1:
        raise ConflictError(
            f"Step {session.steps + 1} is missing: the session has {session.steps}"
            f" steps, and this is step {steps[0].step_id}",
            code="step_out_of_order",
        )
    old = [step for step in steps if step.step_id <= session.steps]
    fresh = [step for step in steps if step.step_id > session.steps]
    stored = store.steps_at(tx, session.conversation_id, [step.step_id for step in old])
    for step in old:
        part, digest = stored[step.step_id]
        # Of a turn whose details were deleted nobody can tell any more.
        if digest is not None and bytes(digest) != store.digest(step_draft(part, step)):
            raise ConflictError(
                f"Step {step.step_id} is there with another content", code="step_conflict"
            )
    working: bool | None = None
    drafts = []
    for step in fresh:
        if step.source == "user" and working is None:
            working = store.last_step_works(tx, session.conversation_id)
        drafts.append(step_draft(_part(step, working=bool(working)), step))
        working = _works_on(step) if step.source == "agent" else working
    return drafts, len(old)


def _part(step: Step, *, working: bool) -> Part:
    """A message that arrives while the agent works is a steer; otherwise it opens a turn."""
    if step.source == "agent":
        return "agent"
    if step.source == "system":
        return "system"
    return "steer" if working else "prompt"


def _works_on(step: Step) -> bool:
    """Tell whether the agent has results it has not answered yet."""
    calls = {call.tool_call_id for call in step.tool_calls or ()}
    results = step.observation.results if step.observation else []
    return bool(calls) and calls <= {result.source_call_id for result in results}


def _recorder(tx: Tx, session: store_sessions.RecordedSession) -> Recorder:
    target = Target(
        conversation_id=session.conversation_id,
        workspace_id=session.workspace_id,
        organization_id=session.organization_id,
        agent_model=session.model,
        source="run",
        speaker_id=session.owner_id,
    )
    recorder = Recorder(tx, target)
    last = store.last_turn(tx, session.conversation_id)
    if last is not None and last.status == "running":
        recorder.open = OpenTurn(last.id, last.variant_id, last.run_id, -1, last.next_round)
    return recorder


def _say_busy(tx: Tx, session: store_sessions.RecordedSession, recorder: Recorder) -> None:
    """Say which turn the agent answers now; when it answers none, what waited has its turn."""
    active = None if recorder.open is None else recorder.open.id
    if active != session.active_turn_id:
        store_turns.set_active_turn(tx, session.conversation_id, active)
    if active is None:
        conversing.go_on(tx, session.conversation_id)


def _settle(tx: Tx, recorder: Recorder, finish: Finish | None) -> None:
    conversation_id = recorder.target.conversation_id
    if finish is not None:
        at = now()
        if recorder.open is not None:
            recorder.ends[recorder.open.ordinal] = (_ENDS[finish.status], None)
        status = recorder.close(outcome=finish.outcome, answer=finish.result_summary)
        sessions.update(
            tx,
            conversation_id,
            status=finish.status,
            outcome=finish.outcome or ("success" if status == "completed" else None),
            ended_at=at,
        )
        store_sessions.touch(tx, conversation_id, at)
    elif recorder.open is not None:
        store.keep_round(tx, recorder.open)
    if recorder.audio:
        sessions.update(tx, conversation_id, audio=1)
