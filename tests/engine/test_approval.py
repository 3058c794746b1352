"""Calls that wait for a person: what is asked about, who decides, and that nothing is lost."""

from typing import Any

import pytest

from engine.driving import Driven, scene
from engine.test_rounds import facts, tasks, valid
from people import Org
from stenograph.accounts.access import Caller
from stenograph.conversations import conversation as conversations
from stenograph.conversations import workspace as workspaces
from stenograph.conversations.access import Conversation
from stenograph.engine import start
from stenograph.engine.work import load
from stenograph.errors import ConflictError, ForbiddenError, InvalidInputError, NotFoundError
from stenograph.retention.integrity import check
from stenograph.runs import approval
from stenograph.runs.approval import Decision
from stenograph.storage.database import Tx

TWO = scene(
    """
[[round]]
say = "Two calls."
call = [{ tool = "read", arguments = { path = "a" } }, { tool = "glob" }]
[[round]]
say = "They say: {results}"
"""
)
ONE = scene(
    """
[[round]]
say = "One call."
call = [{ tool = "read", arguments = { path = "a" } }]
[[round]]
say = "It says: {results}"
"""
)


def policy(**members: Any) -> dict[str, Any]:
    return {"options": {"session_policy": members}}


def waiting(tx: Tx) -> list[Any]:
    return tx.rows(
        "SELECT k.key, v.public_id FROM approvals a JOIN tasks k ON k.id = a.task_id"
        " JOIN runs r ON r.id = k.run_id JOIN variants v ON v.id = r.variant_id"
        " WHERE a.decision IS NULL AND k.status = 'needs_approval' ORDER BY k.id"
    )


def both(tx: Tx) -> list[Any]:
    found = waiting(tx)
    return found if len(found) == 2 else []


def decide(
    driven: Driven, key: str, decision: Decision, note: str | None = None, who: Caller | None = None
) -> approval.Approval:
    def act(tx: Tx) -> approval.Approval:
        candidate = str(tx.value("SELECT max(public_id) FROM variants"))
        work = load(tx, candidate)
        assert work is not None
        assert work.run is not None
        caller = who or driven.owner
        return approval.decide(tx, caller, work.conversation, work.run, key, decision, note)

    return driven.write(act)


def decided(driven: Driven, **decisions: Decision) -> None:
    """Drive what waits, and decide about each call once all of them wait."""

    async def act() -> None:
        await driven.until(lambda tx: len(waiting(tx)) == len(decisions))
        for key, decision in decisions.items():
            decide(driven, key, decision, "not that one" if decision == "deny" else None)
        await driven.settled()

    driven.during(act)


def test_a_call_is_made_when_a_person_approves_and_not_when_one_denies(driven: Driven) -> None:
    session_id = driven.open(TWO, **policy(approval_mode="ask"))
    decided(driven, r2t0="approve", r2t1="deny")
    assert [name for name, _, _ in driven.tools.made] == ["read"]
    assert [(key, status) for key, _, status, _ in tasks(driven, session_id)] == [
        ("r1", "completed"), ("r2t0", "completed"), ("r2t1", "failed"), ("r2", "completed"),
    ]  # fmt: skip
    found = facts(driven, session_id)
    assert (found.status, found.outcome) == ("exit", "success")
    denial = "The person denied this call: not that one"
    assert valid(driven, session_id)["steps"][-1]["message"] == (
        f"They say: the content of a, {denial}"
    )
    assert check(driven.database) == []


def test_the_session_runs_and_says_that_it_waits(driven: Driven) -> None:
    session_id = driven.open(ONE, **policy(approval_mode="ask"))

    async def act() -> None:
        await driven.until(waiting)
        assert facts(driven, session_id).status == "running"
        [(_, candidate)] = driven.read(waiting)
        work = driven.read(lambda tx: load(tx, candidate))
        assert work is not None
        run = work.run
        assert run is not None
        assert (run.status, run.approval_mode) == ("running", "ask")
        assert driven.read(lambda tx: approval.waiting(tx, run)) == ["r2t0"]
        decide(driven, "r2t0", "approve")
        assert driven.read(lambda tx: approval.waiting(tx, run)) == []
        await driven.settled()

    driven.during(act)
    told = driven.rows(
        "SELECT e.type, e.payload FROM events e JOIN tasks k ON k.id = e.task_id"
        " WHERE k.key = 'r2t0' ORDER BY e.sequence"
    )
    assert [kind for kind, _ in told] == [
        "task_status", "task_status", "attention_required", "task_status", "task_status",
        "task_status",
    ]  # fmt: skip
    assert '"reason":"approval"' in told[2][1]
    assert '"decision":"approve"' in told[3][1]


def test_rules_ask_allow_and_deny_by_name_and_finish_is_never_asked_about(driven: Driven) -> None:
    rules = [
        {"tool": "gl*", "decision": "deny"},
        {"tool": "glob", "decision": "allow"},
        {"tool": "read", "decision": "allow"},
        {"tool": "*", "decision": "deny"},
    ]
    ending = TWO.replace(
        'say = "They say: {results}"',
        'call = [{ tool = "finish", arguments = { outcome = "success", summary = "{results}" } }]',
    )
    driven.open(ending, **policy(approval_rules=rules))
    driven.settle()
    assert [name for name, _, _ in driven.tools.made] == ["read"]
    assert driven.rows("SELECT content FROM variants") == [
        ("the content of a, The rules of this session deny calls of glob.",)
    ]
    assert driven.rows("SELECT count(*) FROM approvals") == [(0,)]
    assert driven.rows("SELECT approval_mode FROM runs") == [("rules",)]


@pytest.mark.parametrize(
    ("members", "wish", "tool", "verdict"),
    [
        ({}, None, "read", "allow"),
        ({"approval_mode": "rules"}, None, "read", "ask"),
        ({"approval_mode": "bypass", "approval_rules": [{"tool": "*", "decision": "deny"}]},
         None, "read", "allow"),
        ({"approval_rules": [{"tool": "r*", "decision": "allow"}]}, None, "read", "allow"),
        ({"approval_rules": [{"tool": "r*", "decision": "allow"}]}, "ask", "read", "ask"),
        ({"approval_rules": [{"tool": "r*", "decision": "deny"}]}, "ask", "read", "deny"),
        ({"approval_mode": "ask"}, "bypass", "read", "ask"),
        ({"approval_mode": "bypass"}, "rules", "read", "ask"),
    ],
)  # fmt: skip
def test_an_input_may_tighten_what_the_session_says_never_loosen_it(
    members: dict[str, Any], wish: str | None, tool: str, verdict: str
) -> None:
    found = approval.read_policy({"session_policy": members})
    assert approval.verdict(found, approval.tightened(found.mode, wish), tool) == verdict


@pytest.mark.parametrize(
    "members",
    [
        "ask",
        {"approval_mode": "never"},
        {"approval_rules": [{"tool": "x", "decision": "maybe"}]},
        {"approval_rules": [{"tool": "x"}]},
        {"approval_rules": {"tool": "x", "decision": "ask"}},
    ],
)
def test_a_policy_that_says_nothing_sensible_is_refused(members: Any) -> None:
    with pytest.raises(InvalidInputError) as refused:
        approval.read_policy({"session_policy": members})
    assert refused.value.code == "invalid_session_policy"


def test_an_input_makes_its_own_turn_ask(driven: Driven) -> None:
    conversation = driven.write(lambda tx: _conversation(tx, driven.owner))
    driven.ask(conversation, ONE, approval_mode="ask", tool_names=("read",))
    decided(driven, r2t0="approve")
    driven.ask(conversation, ONE, tool_names=("read",))
    driven.settle()
    assert driven.rows("SELECT approval_mode FROM runs ORDER BY id") == [("ask",), ("bypass",)]
    assert driven.rows("SELECT status FROM variants") == [("completed",), ("completed",)]


def _conversation(tx: Tx, caller: Caller) -> Conversation:
    workspace = workspaces.create(tx, caller, name="w", access_mode="account_wide")
    return conversations.create(tx, caller, workspace, title=None)


def test_the_first_decision_counts_and_the_same_one_is_accepted_again(
    driven: Driven, org: Org
) -> None:
    driven.open(ONE, **policy(approval_mode="ask"))

    async def act() -> None:
        await driven.until(waiting)
        first = decide(driven, "r2t0", "approve")
        again = decide(driven, "r2t0", "approve", "a note that comes too late", org.admin)
        assert (first.decided_at, first.decider) == (again.decided_at, again.decider)
        assert again.note is None
        with pytest.raises(ConflictError) as late:
            decide(driven, "r2t0", "deny")
        assert late.value.code == "not_eligible"
        await driven.settled()

    driven.during(act)
    with pytest.raises(ConflictError):
        decide(driven, "r1", "approve")
    with pytest.raises(NotFoundError):
        decide(driven, "r9t9", "approve")
    assert len(driven.tools.made) == 1


def test_an_agent_decides_nothing(driven: Driven, org: Org) -> None:
    driven.open(ONE, **policy(approval_mode="ask"))

    async def act() -> None:
        await driven.until(waiting)
        with pytest.raises(ForbiddenError):
            decide(driven, "r2t0", "approve", who=org.agent)
        decide(driven, "r2t0", "deny")
        await driven.settled()

    driven.during(act)
    assert driven.tools.made == []


def test_a_server_that_is_started_again_still_waits(driven: Driven) -> None:
    session_id = driven.open(TWO, **policy(approval_mode="ask"))

    async def until_both_wait() -> None:
        await driven.until(both)

    driven.during(until_both_wait)
    decide(driven, "r2t1", "approve")  # while nobody drives
    assert [key for key, _ in driven.read(waiting)] == ["r2t0"]
    decided(driven, r2t0="approve")
    assert sorted(name for name, _, _ in driven.tools.made) == ["glob", "read"]
    assert not any(resumed for _, _, resumed in driven.tools.made)
    assert driven.rows("SELECT count(*) FROM approvals") == [(2,)]
    assert driven.rows("SELECT count(*) FROM events WHERE type = 'attention_required'") == [(2,)]
    valid(driven, session_id)


def test_a_turn_that_is_cancelled_waits_for_nobody(driven: Driven) -> None:
    session_id = driven.open(ONE, **policy(approval_mode="ask"))

    async def act() -> None:
        await driven.until(waiting)
        driven.write(lambda tx: start.cancel_session(tx, driven.owner, session_id))
        await driven.settled()

    driven.during(act)
    with pytest.raises(ConflictError) as late:
        decide(driven, "r2t0", "approve")
    assert late.value.code == "not_eligible"
    assert driven.tools.made == []
    assert check(driven.database) == []


def test_waiting_ends_with_the_time_of_the_turn(driven: Driven) -> None:
    options = {
        "session_policy": {"approval_mode": "ask"},
        "execution_budget": {"wall_clock_max_ms": 2_500},
    }
    session_id = driven.open(ONE, options=options)
    driven.settle()
    assert driven.tools.made == []
    assert ("r2t0", "timed_out") in [(it[0], it[2]) for it in tasks(driven, session_id)]
    found = facts(driven, session_id)
    assert (found.error_class, found.reason_code) == ("quota_exhausted", "budget_wall_clock")
