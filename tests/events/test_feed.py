"""Reading a journal: in order, behind a number, and only what a reader may know of."""

import pytest

from feeds import ask, new_session
from stenograph.events import feed, journal
from stenograph.events.journal import Event


@pytest.fixture
def session(database, org):
    return new_session(database, org.owner)


def append(database, session, *events):
    return database.write(lambda tx: journal.append(tx, session, *events))


def page(database, session, after=0, limit=50, types=None):
    with database.read() as tx:
        return feed.page(tx, session, after, limit, types)


def test_events_come_in_order_behind_a_number(database, org, session):
    append(database, session, *(Event("usage", payload={"n": n}) for n in range(5)))
    everything = page(database, session)
    assert [e.payload["n"] for e in everything] == [0, 1, 2, 3, 4]
    assert [e.sequence for e in everything] == [1, 2, 3, 4, 5]
    assert page(database, session, after=2, limit=2) == everything[2:4]
    assert page(database, session, after=5) == []
    assert page(database, new_session(database, org.owner)) == []


def test_an_event_names_what_it_points_at(database, org, session):
    turn = database.write(lambda tx: ask(tx, org.owner, session, "q"))
    append(database, session, Event("turn_created", turn.id, turn.variant_id))
    (entry,) = page(database, session)
    with database.read() as tx:
        assert entry.turn_public_id == tx.value("SELECT public_id FROM turns")
    assert (entry.turn_position, entry.variant_id, entry.concealed) == (0, turn.variant_id, False)
    assert (entry.run_public_id, entry.task_key, entry.step_id) == (None, None, None)


@pytest.mark.parametrize(
    "conceal",
    [
        "UPDATE turns SET deleted_at = 1",
        "UPDATE turns SET visibility = 'hidden'",
        "UPDATE variants SET deleted_at = 1",
    ],
)
def test_chosen_types_leave_out_what_is_concealed(database, org, session, conceal):
    turn = database.write(lambda tx: ask(tx, org.owner, session, "q"))
    append(database, session, Event("turn_created", turn.id, turn.variant_id), Event("usage"))
    types = ("turn_created", "usage")
    assert len(page(database, session, types=types)) == 2
    assert [e.type for e in page(database, session, types=("usage",))] == ["usage"]
    database.write(lambda tx: tx.run(conceal))
    assert [e.type for e in page(database, session, types=types)] == ["usage"]
    assert [e.concealed for e in page(database, session)] == [True, False]


def test_chosen_types_leave_out_hidden_tasks_and_the_state_of_model_calls(database, org, session):
    turn = database.write(lambda tx: ask(tx, org.owner, session, "q"))

    def work(tx):
        run_id = tx.insert(
            "runs", public_id="r", workspace_id=1, conversation_id=session, status="running",
            variant_id=turn.variant_id, approval_mode="bypass", created_at=1, updated_at=1,
        )  # fmt: skip
        for key, kind, visibility in (
            ("r1", "model_task", "visible"),
            ("t1", "tool_task", "collapsed"),
            ("t2", "tool_task", "hidden"),
        ):
            task_id = tx.insert(
                "tasks", run_id=run_id, key=key, kind=kind, status="completed",
                transcript_visibility=visibility, created_at=1,
            )  # fmt: skip
            journal.append(tx, session, Event("task_status", run_id=run_id, task_id=task_id))
            journal.append(tx, session, Event("round_result", run_id=run_id, task_id=task_id))

    database.write(work)
    shown = page(database, session, types=("task_status", "round_result"))
    assert [(e.type, e.task_key) for e in shown] == [
        ("round_result", "r1"), ("task_status", "t1"), ("round_result", "t1"),
    ]  # fmt: skip
    assert len(page(database, session)) == 6
    assert {e.run_public_id for e in shown} == {"r"}
