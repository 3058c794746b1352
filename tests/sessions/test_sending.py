"""Messages to a Reason or a session: what they open, what they join, who may send them."""

import threading

import pytest

from feeds import new_session, whole
from stenograph.errors import ConflictError
from stenograph.events import feed
from stenograph.sessions import ending, reason, sending, session
from stenograph.sessions.reason import Profile
from stenograph.sessions.sending import NewMessage


@pytest.fixture
def mine(database, org):
    return database.write(
        lambda tx: reason.create(tx, org.owner, Profile("mine", default_model="a/b"))
    )


def send(database, org, mine, text, **more):
    return database.write(
        lambda tx: sending.to_reason(tx, org.owner, mine.public_id, NewMessage(text, **more))
    )


def conversation(database, org, mine):
    with database.read() as tx:
        known = reason.find(tx, org.owner, mine.public_id)
        return session.find(tx, org.owner, known.session_public_id)


def test_the_first_message_opens_the_conversation_as_its_prompt(database, org, mine):
    item = send(database, org, mine, " Plan\nthe trip ", attachments=[{"id": "f"}])
    assert (item.kind, item.role, item.content, item.cursor) == (
        "prompt", "user", " Plan\nthe trip ", 1,
    )  # fmt: skip
    opened = conversation(database, org, mine)
    assert (opened.title, opened.status, opened.model) == ("Plan the trip", "running", "a/b")
    assert opened.reason_public_id == mine.public_id
    assert opened.runs_here
    assert not opened.recorded
    with database.read() as tx:
        assert whole(tx, opened.id) == [item]
        assert tx.rows("SELECT kind, status, position FROM turns") == [
            ("direct_reply", "pending", 0)
        ]
        assert tx.rows("SELECT prompt, model_ref FROM variants") == [(" Plan\nthe trip ", "a/b")]
        assert [e.type for e in feed.page(tx, opened.id, 0, 9)] == ["turn_created"]


def test_what_is_said_while_a_turn_waits_belongs_to_it(database, org, mine):
    send(database, org, mine, "one")
    item = send(database, org, mine, "two")
    assert (item.kind, item.content) == ("message", "two")
    opened = conversation(database, org, mine)
    with database.read() as tx:
        assert [i.content for i in whole(tx, opened.id)] == ["one", "two"]
        assert tx.value("SELECT count(*) FROM turns") == 1
        assert tx.rows("SELECT part, text, position FROM steps ORDER BY position") == [
            ("prompt", None, 1),
            ("steer", "two", 2),
        ]
        assert [e.type for e in feed.page(tx, opened.id, 0, 9)] == [
            "turn_created", "input_accepted",
        ]  # fmt: skip


def test_what_is_said_after_an_end_opens_a_turn_and_the_session_runs_again(database, org, mine):
    send(database, org, mine, "one")
    opened = conversation(database, org, mine)
    database.write(lambda tx: ending.cancel(tx, org.owner, opened.public_id))
    item = send(database, org, mine, "two", model="c/d", reasoning_effort="high")
    assert (item.kind, item.content) == ("message", "two")
    again = conversation(database, org, mine)
    assert (again.public_id, again.status, again.ended_at) == (opened.public_id, "running", None)
    assert again.reason_code is None
    with database.read() as tx:
        kinds = [i.kind for i in whole(tx, opened.id)]
        assert tx.rows("SELECT model_ref, reasoning_effort FROM variants ORDER BY id") == [
            ("a/b", None),
            ("c/d", "high"),
        ]
    assert kinds == ["prompt", "reply", "message"]


def test_two_first_messages_at_once_open_one_conversation(database, org, mine):
    barrier = threading.Barrier(4)

    def write(number):
        barrier.wait()
        send(database, org, mine, f"m{number}")

    writers = [threading.Thread(target=write, args=(n,)) for n in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    opened = conversation(database, org, mine)
    with database.read() as tx:
        items = whole(tx, opened.id)
        assert tx.value("SELECT count(*) FROM sessions") == 1
        assert tx.value("SELECT count(*) FROM workspaces") == 1
    assert sorted(i.content for i in items) == ["m0", "m1", "m2", "m3"]
    assert [i.kind for i in items] == ["prompt", "message", "message", "message"]


def test_an_agent_that_runs_elsewhere_gets_no_messages(database, org):
    made = new_session(database, org.owner, agent={"name": "a", "version": "1"})
    with database.read() as tx:
        name = tx.value("SELECT public_id FROM conversations WHERE id = :id", id=made)
    with pytest.raises(ConflictError) as refused:
        database.write(lambda tx: sending.to_session(tx, org.owner, name, NewMessage("x")))
    assert refused.value.code == "session_target_unavailable"
    with database.read() as tx:
        assert whole(tx, made) == []


def test_a_message_to_the_session_is_one_to_its_reason(database, org, mine):
    send(database, org, mine, "one")
    opened = conversation(database, org, mine)
    item = database.write(
        lambda tx: sending.to_session(tx, org.owner, opened.public_id, NewMessage("two"))
    )
    with database.read() as tx:
        assert whole(tx, opened.id)[-1] == item
