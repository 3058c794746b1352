"""Children: what a `spawn` leaves in both sessions, what bounds it, and how both end together."""

import json
from pathlib import Path
from typing import Any

import pytest

from engine.driving import Driven, Tools, scene
from engine.test_rounds import account, facts, feed, tasks, valid
from engine.test_turns import SLOW
from people import Org
from stenograph.conversations import conversation as conversations
from stenograph.conversations import workspace as workspaces
from stenograph.conversations.access import Conversation
from stenograph.engine import children, ending, start, store_children
from stenograph.engine.engine import Place
from stenograph.engine.toolbox import Together
from stenograph.engine.toolboxes.spawn import Spawn
from stenograph.engine.work import load
from stenograph.retention.integrity import check
from stenograph.runs import approval, transcript
from stenograph.sessions import (
    activity,
    conversing,
    messages,
    reason,
    secret,
    sending,
    session,
)
from stenograph.sessions import ending as end_of_sessions
from stenograph.sessions.sending import NewMessage
from stenograph.sessions.session import Details
from stenograph.storage.database import Database, Tx
from stenograph.storage.sealing import Sealer


def calling(*prompts: str, **more: Any) -> str:
    """A scene that spawns a child for each prompt, and says what they reported."""
    made = ", ".join(
        f"{{ tool = 'spawn', arguments = {_toml({'prompt': prompt, **more})} }}"
        for prompt in prompts
    )
    return scene(f'[[round]]\ncall = [{made}]\n[[round]]\nsay = "They said: {{results}}"\n')


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{k} = {_toml(v)}" for k, v in value.items()) + " }"
    return json.dumps(value)


@pytest.fixture
def parent(database: Database, org: Org, tmp_path: Path) -> Driven:
    """An engine whose sessions can have children."""
    place = Place(f"sqlite:///{tmp_path / 'engine.db'}")
    return Driven(database, org.owner, place, Together(Tools(), Spawn()))


def family(driven: Driven, session_id: str) -> list[str]:
    """The children of a session, by public id, in order of making."""

    def look(tx: Tx) -> Details:
        found = session.find(tx, driven.owner, session_id)
        return session.details(tx, [found])[found.id]

    return driven.read(look).child_public_ids


def child_slow(tx: Tx) -> bool:
    """Whether some child's tool is at work."""
    return bool(
        tx.value(
            "SELECT 1 FROM tasks k JOIN runs r ON r.id = k.run_id"
            " JOIN sessions s ON s.conversation_id = r.conversation_id"
            " WHERE s.parent_conversation_id IS NOT NULL AND k.name = 'slow'"
            " AND k.status = 'running'"
        )
    )


# --- what is left in the record ----------------------------------------------------------------


def test_a_childs_answer_is_the_result_of_the_call(parent: Driven) -> None:
    session_id = parent.open("[dev:subagent]", model="dev/thinker", reasoning_effort="high")
    parent.settle()
    (child,) = family(parent, session_id)
    found, above = facts(parent, child), facts(parent, session_id)
    assert (found.parent_public_id, found.title) == (session_id, "helper")
    assert (found.status, found.outcome) == ("exit", "success")
    for inherited in ("mode", "owner_id", "workspace_id", "reason_id", "model", "reasoning_effort"):
        assert getattr(found, inherited) == getattr(above, inherited)
    assert feed(parent, child) == [
        ("prompt", "Say what you find.", None, None),
        ("reply", "You said: Say what you find.", "exit", "success"),
    ]
    assert [it[1:3] for it in tasks(parent, session_id)] == [
        ("model_task", "completed"),
        ("tool_task", "completed"),
        ("model_task", "completed"),
    ]
    assert check(parent.database) == []


def test_the_report_is_an_item_of_the_parents_feed_once(parent: Driven) -> None:
    session_id = parent.open("[dev:subagent]")
    parent.settle()

    def look(tx: Tx) -> list[tuple[Any, ...]]:
        found = session.find(tx, parent.owner, session_id)
        items = messages.page(tx, found.id, None, 50).items
        return [(it.kind, it.role, it.source, it.content) for it in items]

    report = "You said: Say what you find."
    assert parent.read(look) == [
        ("prompt", "user", None, "[dev:subagent]"),
        ("message", "user", "subagent", report),
        ("reply", "assistant", None, f"The helper said: {report}"),
    ]


def test_a_trajectory_embeds_children_and_counts_them_apart(parent: Driven) -> None:
    session_id = parent.open("[dev:subagents]")
    parent.settle()
    document = valid(parent, session_id)
    embedded = {it["trajectory_id"]: it for it in document["subagent_trajectories"]}
    assert list(embedded) == family(parent, session_id)
    results = document["steps"][1]["observation"]["results"]
    reader, thinker = (
        embedded[it["subagent_trajectory_ref"][0]["trajectory_id"]] for it in results
    )
    assert [call["function_name"] for call in reader["steps"][1]["tool_calls"]] == ["read", "read"]
    # Totals hold the children, the session's own and its usage do not.
    own = document["final_metrics"]["extra"]["session_totals"]["total_prompt_tokens"]
    assert thinker["steps"][0]["message"] == "Think about it."
    below = [it["final_metrics"]["total_prompt_tokens"] for it in embedded.values()]
    assert document["final_metrics"]["total_prompt_tokens"] == own + sum(below)
    assert account(parent, session_id).input_tokens == own
    assert [account(parent, it).input_tokens for it in family(parent, session_id)] == below
    assert check(parent.database) == []


def test_other_readings_name_the_child_of_a_call(parent: Driven) -> None:
    session_id = parent.open("[dev:subagent]")
    parent.settle()
    (child,) = family(parent, session_id)

    def look(tx: Tx) -> tuple[Any, ...]:
        found = session.find(tx, parent.owner, session_id)
        events = activity.page(tx, found.id, -1, 100, diagnostic=False, longest=1000)
        candidate = tx.value("SELECT public_id FROM variants ORDER BY id LIMIT 1")
        work = load(tx, candidate)
        assert work is not None
        assert work.run is not None
        rounds = transcript.page(tx, work.run, size=100).rounds
        row = tx.value("SELECT id FROM conversations WHERE public_id = :id", id=child)
        made = load(tx, tx.value("SELECT public_id FROM variants ORDER BY id DESC LIMIT 1"))
        assert made is not None
        assert made.conversation.id == row
        return events, rounds, conversations.document(tx, made.conversation), made.turn

    events, rounds, document, turn = parent.read(look)
    told = [it.data["child_session_id"] for it in events if it.type == "tool"]
    assert told[-1] == child
    assert rounds[0].calls[0].child == child
    assert (document.parent, document.spawn_key, document.label) == (session_id, "r2t0", "helper")
    assert turn.origin == "agent"


def test_children_of_one_round_are_at_work_at_once(parent: Driven) -> None:
    session_id = parent.open(calling("[dev:call slow]", "[dev:call slow]", "[dev:call slow]"))

    async def act() -> None:
        await parent.until(
            lambda tx: (
                len(tx.rows("SELECT 1 FROM tasks WHERE name = 'slow' AND status='running'")) == 3
            )
        )
        parent.write(lambda tx: start.cancel_session(tx, parent.owner, session_id))

    parent.during(act)
    assert len(family(parent, session_id)) == 3


def test_secrets_of_a_session_reach_its_children(parent: Driven, sealer: Sealer) -> None:
    value = "a secret of ten thousand"

    parent.write(lambda tx: secret.create(tx, parent.owner, sealer, "TOKEN", value))
    given = parent.write(lambda tx: secret.take(tx, parent.owner, sealer, ["TOKEN"]))
    session_id = parent.open(calling("[dev:answer]"), secrets=given)
    parent.settle()
    (child,) = family(parent, session_id)
    row = facts(parent, child).id
    assert parent.read(lambda tx: secret.values(tx, sealer, row)) == (value,)


def test_children_carry_the_reason_and_end_with_it(parent: Driven) -> None:
    profile = reason.Profile("helper", instructions="Be brief.")
    made = parent.write(lambda tx: reason.create(tx, parent.owner, profile))
    said = NewMessage(calling("[dev:call slow]"))
    parent.write(lambda tx: sending.to_reason(tx, parent.owner, made.public_id, said))
    sessions: list[str] = []

    async def act() -> None:
        await parent.until(child_slow)
        listed = parent.rows("SELECT public_id FROM conversations ORDER BY id")
        sessions.extend(row[0] for row in listed)
        for one in sessions:
            assert facts(parent, one).reason_public_id == made.public_id
            assert valid(parent, one)["steps"][0]["message"] == "Be brief."
        parent.write(lambda tx: end_of_sessions.delete_reason(tx, parent.owner, made.public_id))
        await parent.settled()

    parent.during(act)
    assert len(sessions) == 2
    statuses = parent.rows("SELECT status FROM sessions")
    assert statuses == [("cancelled",), ("cancelled",)]
    assert check(parent.database) == []


def test_what_a_parent_may_not_do_its_children_may_not(parent: Driven) -> None:
    rules = [{"tool": "spawn", "decision": "allow"}, {"tool": "*", "decision": "deny"}]
    session_id = parent.open(
        calling("[dev:call read]"), options={"session_policy": {"approval_rules": rules}}
    )
    parent.settle()
    (child,) = family(parent, session_id)
    assert "The rules of this session deny calls of read." in feed(parent, child)[-1][1]


def test_a_run_that_asks_more_has_children_that_ask_as_much(parent: Driven) -> None:
    def make(tx: Tx) -> Conversation:
        workspace = workspaces.create(tx, parent.owner, name="w", access_mode="account_wide")
        found = conversations.create(tx, parent.owner, workspace, title=None)
        conversing.begin(tx, parent.owner, found.id)
        return found

    conversation = parent.write(make)
    asks = calling("[dev:call read]")
    parent.ask(conversation, asks, tool_names=["spawn"], approval_mode="ask", model="dev/thinker")

    async def act() -> None:
        await parent.until(lambda tx: tx.rows("SELECT 1 FROM tasks WHERE status='needs_approval'"))
        parent.write(lambda tx: _approve(tx, parent, conversation))
        await parent.settled()

    parent.during(act)
    (child,) = family(parent, conversation.public_id)
    # Nor has it tools that its parent's input left out.
    assert "There is no tool named 'read'; there are: spawn" in feed(parent, child)[-1][1]
    modes = parent.rows("SELECT approval_mode FROM runs ORDER BY id")
    assert modes == [("ask",), ("ask",)]


def _approve(tx: Tx, driven: Driven, conversation: Conversation) -> None:
    approval.decide_in_session(tx, driven.owner, conversation.id, "r2t0", "approve")


# --- how it ends otherwise ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prompt", "told"),
    [
        ("[dev:refuse]", "The subagent failed: refused."),
        ('[dev:call finish {"outcome": "failure", "summary": "No."}]',
         "(The subagent declares: failure.)\nNo."),
    ],
)  # fmt: skip
def test_how_a_child_failed_is_the_result(parent: Driven, prompt: str, told: str) -> None:
    session_id = parent.open(calling(prompt))
    parent.settle()
    assert feed(parent, session_id)[-1][1:] == (f"They said: {told}", "exit", "success")
    failed = told.startswith("The subagent failed")
    assert tasks(parent, session_id)[1][2] == ("failed" if failed else "completed")
    assert feed(parent, session_id)[1][1] == told
    assert check(parent.database) == []


def test_a_child_that_somebody_cancels_is_a_failed_call(parent: Driven) -> None:
    session_id = parent.open(calling("[dev:call slow]"))

    async def act() -> None:
        await parent.until(child_slow)
        (child,) = family(parent, session_id)
        parent.write(lambda tx: start.cancel_session(tx, parent.owner, child))
        await parent.settled()

    parent.during(act)
    said = "They said: The subagent was canceled: run_cancelled."
    assert feed(parent, session_id)[-1][1] == said
    assert check(parent.database) == []


@pytest.mark.parametrize("how", ["session", "turn"])
def test_children_end_with_their_parent(parent: Driven, how: str) -> None:
    session_id = parent.open(calling('[dev:call spawn {"prompt": "[dev:slow]"}]'))

    async def act() -> None:
        await parent.until(
            lambda tx: (
                tx.value("SELECT count(*) FROM invocations WHERE status = 'running'")
                and tx.value("SELECT count(*) FROM sessions") == 3
            )
        )
        if how == "session":
            parent.write(lambda tx: start.cancel_session(tx, parent.owner, session_id))
        else:
            candidate = parent.read(
                lambda tx: tx.value("SELECT public_id FROM variants ORDER BY id LIMIT 1")
            )
            parent.write(lambda tx: ending.cancel(tx, candidate))
        await parent.settled()

    parent.during(act)
    (child,) = family(parent, session_id)
    (grandchild,) = family(parent, child)
    for one in (session_id, child, grandchild):
        assert facts(parent, one).status == "cancelled"
        assert feed(parent, one)[-1][2] == "cancelled"
    # Nobody is told of a child that ended because its parent did.
    assert len(feed(parent, session_id)) == 2
    assert len(valid(parent, session_id)["subagent_trajectories"]) == 1
    assert check(parent.database) == []


def test_children_end_when_the_time_of_their_parent_is_up(parent: Driven) -> None:
    session_id = parent.open(
        calling("[dev:call slow]"), options={"execution_budget": {"wall_clock_max_ms": 700}}
    )
    parent.settle()
    (child,) = family(parent, session_id)
    above, below = facts(parent, session_id), facts(parent, child)
    assert (above.status, above.error_class) == ("error", "quota_exhausted")
    assert below.status in ("error", "cancelled")
    assert 0 <= below.options["execution_budget"]["wall_clock_max_ms"] <= 700
    assert check(parent.database) == []


# --- limits ------------------------------------------------------------------------------------


def test_a_child_has_a_model_and_a_budget_of_its_own(parent: Driven) -> None:
    more = {"model": "dev/small", "label": "one", "budget": {"steps_max": 1, "cost_max_usd": 9.0}}
    session_id = parent.open(
        calling("[dev:files]", **more),
        model="dev/thinker",
        reasoning_effort="low",
        options={"execution_budget": {"cost_max_usd": 2.5}, "completion_mode": "run_outcome"},
    )
    parent.settle()
    (child,) = family(parent, session_id)
    found = facts(parent, child)
    assert (found.model, found.reasoning_effort) == ("dev/small", None)
    assert found.options["execution_budget"]["steps_max"] == 1
    assert found.options["execution_budget"]["cost_max_usd"] == 2.5
    assert found.options["completion_mode"] == "run_outcome"
    assert found.reason_code == "budget_steps"
    assert "The subagent failed: budget_steps." in feed(parent, session_id)[-1][1]


def test_what_children_spend_is_their_parents_money(parent: Driven) -> None:
    """A family that has spent what its eldest may asks no model any more."""
    more = {"execution_budget": {"cost_max_usd": 1.0}}
    session_id = parent.open(calling("[dev:steps]", "[dev:call slow]"), options=more)

    async def act() -> None:
        await parent.until(child_slow)
        both = (
            "SELECT count(DISTINCT u.conversation_id) FROM usage_receipts u JOIN sessions s"
            " ON s.conversation_id = u.conversation_id WHERE s.parent_conversation_id IS NOT NULL"
        )
        await parent.until(lambda tx: tx.value(both) == 2)
        parent.write(
            lambda tx: tx.run(
                "UPDATE usage_receipts SET cost_usd = 0.6 WHERE id IN (SELECT max(id)"
                " FROM usage_receipts u JOIN sessions s ON s.conversation_id = u.conversation_id"
                " WHERE s.parent_conversation_id IS NOT NULL GROUP BY u.conversation_id)"
            )
        )
        spent = facts(parent, session_id).id
        assert parent.read(lambda tx: store_children.spent_usd(tx, spent)) == pytest.approx(1.2)
        slow = family(parent, session_id)[1]
        parent.say(slow, "go on")
        parent.write(lambda tx: tx.run("UPDATE tasks SET status = 'completed' WHERE name = 'slow'"))

    parent.during(act)
    parent.settle()
    assert facts(parent, family(parent, session_id)[1]).reason_code == "budget_cost"
    assert facts(parent, session_id).reason_code == "budget_cost"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({}, "missing required field `prompt`"),
        ({"prompt": ""}, "length >= 1"),
        ({"prompt": "a", "label": "x" * 101}, "length <= 100"),
        ({"prompt": "a", "budget": {"steps": 1}}, "unknown field `steps`"),
    ],
)
def test_arguments_that_are_none_are_told(
    parent: Driven, arguments: dict[str, Any], told: str
) -> None:
    session_id = parent.open(f"[dev:call spawn {json.dumps(arguments)}]")
    parent.settle()
    assert told in feed(parent, session_id)[-1][1]
    assert family(parent, session_id) == []


def test_children_are_nested_and_counted_up_to_a_limit(
    parent: Driven, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(children, "DEPTH", 1)
    monkeypatch.setattr(children, "CHILDREN", 2)
    deep = '[dev:call spawn {"prompt": "deeper"}]'
    session_id = parent.open(calling(deep, deep, deep))
    parent.settle()
    assert len(family(parent, session_id)) == 2
    assert [family(parent, it) for it in family(parent, session_id)] == [[], []]
    said = feed(parent, session_id)[-1][1]
    assert said.count("Subagents are nested at most 1 deep") == 2
    assert said.count("One turn starts at most 2 subagents") == 1
    assert (children.DEPTH, children.CHILDREN) == (1, 2)


def test_a_family_has_its_limit_for_each_turn(
    parent: Driven, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(children, "FAMILY", 3)
    one = "[[round]]\ncall = [{ tool = 'spawn', arguments = %s }]\n"
    asked = one % _toml({"prompt": '[dev:call spawn {"prompt": "deeper"}]'})
    asked = scene(f'{asked}{asked}[[round]]\nsay = "{{results}}"\n')
    session_id = parent.open(asked)
    for turn in (1, 2):
        parent.settle()
        [(made,)] = parent.rows("SELECT count(*) FROM sessions")
        assert made == 1 + turn * 3
        told = "A turn and its subagents start at most 3 subagents in all"
        assert told in feed(parent, session_id)[-1][1]
        parent.say(session_id, asked)
    assert check(parent.database) == []


# --- interruptions -----------------------------------------------------------------------------


def test_a_call_that_is_made_again_finds_its_child(parent: Driven) -> None:
    session_id = parent.open(f"[dev:call spawn {json.dumps({'prompt': SLOW})}]")

    async def leave_off() -> None:
        await parent.until(
            lambda tx: (
                tx.value("SELECT count(*) FROM invocations WHERE status = 'running'")
                and tx.value("SELECT count(*) FROM sessions") == 2
            )
        )

    parent.during(leave_off)
    parent.settle()
    assert len(family(parent, session_id)) == 1
    assert [it[0] for it in feed(parent, session_id)] == ["prompt", "message", "reply"]
    valid(parent, session_id)
    assert check(parent.database) == []
