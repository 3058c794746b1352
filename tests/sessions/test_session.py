"""Sessions: who sees and drives one, what is told of it, how it is cancelled."""

import dataclasses

import pytest

from feeds import ask, new_session, say, whole
from stenograph.errors import ForbiddenError, NotFoundError
from stenograph.sessions import ending, reason, session
from stenograph.sessions.reason import Profile
from stenograph.sessions.session import Account, Filters

AGENT = {"name": "a", "version": "1"}


def public(database, session_id):
    with database.read() as tx:
        return tx.value("SELECT public_id FROM conversations WHERE id = :id", id=session_id)


def find(database, caller, session_id):
    name = public(database, session_id)
    with database.read() as tx:
        return session.find(tx, caller, name)


def sees(database, caller, session_id):
    """Whether a caller finds a session; a list agrees with it."""
    with database.read() as tx:
        listed = session.listed(tx, caller, Filters(), before=None, limit=50)
    try:
        find(database, caller, session_id)
    except NotFoundError:
        assert session_id not in {s.id for s in listed}
        return False
    assert session_id in {s.id for s in listed}
    return True


def run(database, sql, **values):
    return database.write(lambda tx: tx.run(sql, **values))


def test_a_recorded_session_is_seen_by_the_organization_and_nobody_else(database, org):
    made = new_session(database, org.member, agent=AGENT)
    for caller in (org.owner, org.admin, org.member):
        assert sees(database, caller, made)
    assert not sees(database, org.stranger, made)


def test_a_session_of_a_private_workspace(database, org):
    made = new_session(database, org.member, agent=AGENT)
    colleague = dataclasses.replace(org.agent, plane="api")
    run(database, "UPDATE workspaces SET access_mode = 'private'")
    assert sees(database, org.member, made)  # its own
    assert sees(database, org.admin, made)  # an administrator
    assert not sees(database, colleague, made)
    run(
        database,
        "INSERT INTO workspace_members SELECT id, :who FROM workspaces",
        who=colleague.principal_id,
    )
    assert sees(database, colleague, made)


def test_a_conversation_that_is_closed_to_someone_is_no_session_of_theirs(database, org):
    made = new_session(database, org.owner, agent=AGENT)
    run(
        database,
        "INSERT INTO conversation_access VALUES (:id, :who, 'none')",
        id=made,
        who=org.member.principal_id,
    )
    assert not sees(database, org.member, made)
    run(database, "DELETE FROM conversation_access")
    assert sees(database, org.member, made)
    run(database, "UPDATE conversations SET access_default = 'none'")
    assert not sees(database, org.member, made)
    assert sees(database, org.admin, made)


def test_a_session_of_a_reason_is_not_even_an_administrators(database, org):
    mine = database.write(lambda tx: reason.create(tx, org.member, Profile("mine")))
    made = new_session(database, org.member, agent=AGENT, reason=mine)
    assert sees(database, org.member, made)
    assert not sees(database, org.owner, made)
    assert not sees(database, org.admin, made)
    database.write(lambda tx: reason.share(tx, org.member, mine.public_id, ["admin"]))
    assert sees(database, org.admin, made)
    assert not sees(database, org.owner, made)


@pytest.mark.parametrize("table", ["conversations", "workspaces"])
def test_what_is_deleted_is_not_there(database, org, table):
    made = new_session(database, org.owner, agent=AGENT)
    run(database, f"UPDATE {table} SET deleted_at = 1")
    assert not sees(database, org.owner, made)


def test_who_may_drive_a_session(database, org):
    made = find(database, org.owner, new_session(database, org.member, agent=AGENT))
    session.require_control(org.member, made)
    session.require_control(org.admin, made)
    with pytest.raises(ForbiddenError):
        session.require_control(dataclasses.replace(org.member, principal_id=0), made)
    mine = database.write(lambda tx: reason.create(tx, org.member, Profile("mine")))
    database.write(lambda tx: reason.share(tx, org.member, mine.public_id, ["admin"]))
    shared = new_session(database, org.member, agent=AGENT, reason=mine)
    with pytest.raises(ForbiddenError):
        session.require_control(org.admin, find(database, org.admin, shared))


def listed(database, caller, **filters):
    with database.read() as tx:
        found = session.listed(tx, caller, Filters(**filters), before=None, limit=50)
    return [s.id for s in found]


def test_lists_are_narrowed_and_paged(database, org):
    mine = database.write(lambda tx: reason.create(tx, org.owner, Profile("mine")))
    one = new_session(database, org.owner, agent=AGENT, tags=["a", 'x","y'])
    two = new_session(database, org.owner, agent=AGENT, tags=["b"], reason=mine)
    three = new_session(database, org.owner, agent=AGENT)
    for number, row_id in enumerate((one, two, three), 1):
        run(database, "UPDATE sessions SET created_at = :at WHERE conversation_id = :id",
            at=number, id=row_id)  # fmt: skip
    run(database, "UPDATE sessions SET status = 'exit' WHERE conversation_id = :id", id=two)
    assert listed(database, org.owner) == [three, two, one]
    assert listed(database, org.owner, reason_id=mine.public_id) == [two]
    assert listed(database, org.owner, status="exit") == [two]
    assert listed(database, org.owner, status="running") == [three, one]
    assert listed(database, org.owner, tag="a") == [one]
    assert listed(database, org.owner, tag='x","y') == [one]
    for no_tag in ('","', "x", "A", "a%", "", '["a"'):
        assert listed(database, org.owner, tag=no_tag) == []
    assert listed(database, org.owner, created_after=1) == [three, two]
    assert listed(database, org.owner, created_after=1, created_before=3) == [two]
    with database.read() as tx:
        page = session.listed(tx, org.owner, Filters(), before=three, limit=1)
    assert [s.id for s in page] == [two]


def receipt(database, session_id, **columns):
    database.write(
        lambda tx: tx.insert("usage_receipts", conversation_id=session_id, occurred_at=1, **columns)
    )


def account(database, caller, session_id):
    found = find(database, caller, session_id)
    with database.read() as tx:
        return session.details(tx, [found])[session_id].usage


def test_usage_is_the_sessions_own_and_unknown_is_not_zero(database, org):
    parent, child = (new_session(database, org.owner, agent=AGENT) for _ in "12")
    run(database, "UPDATE sessions SET parent_conversation_id = :p WHERE conversation_id = :c",
        p=parent, c=child)  # fmt: skip
    assert account(database, org.owner, parent) == Account()
    receipt(database, parent, prompt_tokens=10, completion_tokens=0, cost_usd=0.5)
    receipt(database, parent, prompt_tokens=5, cost_usd=0.25)
    receipt(database, child, prompt_tokens=1000, cached_tokens=7, cost_usd=9.0)
    assert account(database, org.owner, parent) == Account(15, None, 0, 0.75)
    receipt(database, parent, completion_tokens=3)  # its cost is not known
    assert account(database, org.owner, parent) == Account(15, None, 3, None)


def test_a_call_without_an_account_leaves_the_cost_unknown(database, org):
    """The export says the same of such a session (fault 22: the two must agree)."""
    made = new_session(database, org.owner, agent=AGENT)
    turn = database.write(lambda tx: ask(tx, org.owner, made, "q"))
    receipt(database, made, prompt_tokens=1, cost_usd=0.0)
    assert account(database, org.owner, made).cost_usd == 0.0

    def call(tx, count):
        run_id = tx.value("SELECT id FROM runs WHERE variant_id = :v", v=turn.variant_id)
        run_id = run_id or tx.insert(
            "runs", public_id="r", workspace_id=1, conversation_id=made, status="running",
            variant_id=turn.variant_id, approval_mode="bypass", created_at=1, updated_at=1,
        )  # fmt: skip
        task_id = tx.insert(
            "tasks", run_id=run_id, key=f"r{count}", kind="model_task", status="completed",
            transcript_visibility="visible", created_at=1,
        )  # fmt: skip
        invocation_id = tx.insert(
            "invocations", task_id=task_id, status="completed", llm_call_count=count, created_at=1
        )
        tx.run("UPDATE tasks SET selected_invocation_id = :i WHERE id = :t",
               i=invocation_id, t=task_id)  # fmt: skip

    database.write(lambda tx: call(tx, 0))  # no model was asked at all
    assert account(database, org.owner, made).cost_usd == 0.0
    database.write(lambda tx: call(tx, 1))
    assert account(database, org.owner, made).cost_usd is None


def test_the_result_is_the_latest_turns_answer(database, org):
    made = new_session(database, org.owner)
    empty = new_session(database, org.owner)

    def result():
        found = [find(database, org.owner, made), find(database, org.owner, empty)]
        with database.read() as tx:
            told = session.details(tx, found)
        assert told[empty].result_summary is None
        return told[made].result_summary

    database.write(lambda tx: say(tx, org.owner, made, "q1", "a1"))
    assert result() == "a1"
    last = database.write(lambda tx: say(tx, org.owner, made, "q2", "a2"))
    assert result() == "a2"
    run(database, "UPDATE turns SET deleted_at = 1 WHERE id = :id", id=last.id)
    assert result() == "a1"
    database.write(lambda tx: ask(tx, org.owner, made, "q3"))
    assert result() is None


def test_details_cost_the_same_for_one_and_for_many(database, org):
    for _ in range(20):
        new_session(database, org.owner, agent=AGENT)
    seen = []
    database.observer = seen.append
    counts = set()
    with database.read() as tx:
        for limit in (1, 20):
            seen.clear()
            found = session.listed(tx, org.owner, Filters(), before=None, limit=limit)
            assert len(session.details(tx, found)) == limit
            counts.add(len(seen))
    database.observer = None
    assert counts == {4}


def test_a_cancelled_session_ends_its_turns_and_its_subagents(database, org):
    parent, child, grandchild, done = (new_session(database, org.owner) for _ in "1234")
    for below, above in ((child, parent), (grandchild, child), (done, parent)):
        run(database, "UPDATE sessions SET parent_conversation_id = :p WHERE conversation_id = :c",
            p=above, c=below)  # fmt: skip
    run(database, "UPDATE sessions SET status = 'exit' WHERE conversation_id = :id", id=done)
    # A session that waits in between must not hide who runs below it.
    run(database, "UPDATE sessions SET status = 'exit' WHERE conversation_id = :id", id=child)
    database.write(lambda tx: say(tx, org.owner, parent, "q1", "a1"))
    database.write(lambda tx: ask(tx, org.owner, parent, "q2"))
    name = public(database, parent)
    ended = database.write(lambda tx: ending.cancel(tx, org.owner, name))
    assert (ended.status, ended.outcome, ended.reason_code) == (
        "cancelled", None, "run_cancelled",
    )  # fmt: skip
    assert ended.ended_at is not None
    assert find(database, org.owner, grandchild).status == "cancelled"
    assert find(database, org.owner, done).status == "exit"
    with database.read() as tx:
        items = whole(tx, parent)
        statuses = tx.rows("SELECT status FROM turns ORDER BY id")
        busy = tx.value("SELECT active_turn_id FROM conversations WHERE id = :id", id=parent)
    assert [(i.kind, i.content, i.status, i.outcome) for i in items[-2:]] == [
        ("message", "q2", None, None),
        ("reply", "", "cancelled", None),
    ]
    assert statuses == [("completed",), ("canceled",)]
    assert busy is None
    again = database.write(lambda tx: ending.cancel(tx, org.owner, name))
    assert again == ended
    with database.read() as tx:
        assert whole(tx, parent) == items


def test_a_session_that_has_ended_stays_as_it_is(database, org):
    made = new_session(database, org.owner)
    run(database, "UPDATE sessions SET status = 'exit', outcome = 'success'")
    before = find(database, org.owner, made)
    assert database.write(lambda tx: ending.cancel(tx, org.owner, before.public_id)) == before
