"""What a message feed shows, in which order, and what is a cursor of it."""

import pytest

from feeds import answer, ask, fork, new_session, notices, say, whole
from people import make_org
from stenograph.errors import InvalidInputError
from stenograph.sessions import messages
from stenograph.sessions.messages import Message


def texts(items):
    return [(item.kind, item.content) for item in items]


def test_a_feed_is_the_prompt_the_messages_and_the_replies_in_order(database, org):
    session = new_session(database, org.owner)

    def talk(tx):
        say(tx, org.owner, session, "hello", "hi")
        say(tx, org.owner, session, "more", "")
        messages.append(tx, session, Message("message", "assistant", content="a notice"))

    database.write(talk)
    with database.read() as tx:
        items = whole(tx, session)
    assert texts(items) == [
        ("prompt", "hello"),
        ("reply", "hi"),
        ("message", "more"),
        ("reply", ""),
        ("message", "a notice"),
    ]
    assert [item.role for item in items] == ["user", "assistant", "user", "assistant", "assistant"]
    assert [item.cursor for item in items] == sorted({item.cursor for item in items})
    assert [item.status for item in items] == [None, "exit", None, "exit", None]


def test_the_text_of_a_turn_that_is_a_message_is_its_candidates(database, org):
    session = new_session(database, org.owner)

    def greet(tx):
        turn = ask(tx, org.owner, session, "unused")
        tx.run("UPDATE turns SET kind = 'message' WHERE id = :id", id=turn.id)
        tx.run("UPDATE variants SET content = 'good day' WHERE id = :id", id=turn.variant_id)

    database.write(greet)
    with database.read() as tx:
        assert [item.content for item in whole(tx, session)] == ["good day"]


def test_a_reply_that_is_decided_again_moves_and_keeps_its_id(database, org):
    session = new_session(database, org.owner)
    turn = database.write(lambda tx: say(tx, org.owner, session, "q", "half"))
    with database.read() as tx:
        before = whole(tx, session)
    database.write(lambda tx: answer(tx, session, turn, "whole", "error"))
    with database.read() as tx:
        after = whole(tx, session)
        news = messages.page(tx, session, str(before[-1].cursor), 50)
    assert texts(after) == [("prompt", "q"), ("reply", "whole")]
    assert after[-1].public_id == before[-1].public_id
    assert after[-1].cursor > before[-1].cursor
    assert news.items == after[-1:]
    assert news.items[0].status == "error"


@pytest.mark.parametrize(
    "conceal",
    [
        "UPDATE turns SET deleted_at = 1 WHERE id = :turn",
        "UPDATE turns SET visibility = 'hidden' WHERE id = :turn",
        "UPDATE variants SET deleted_at = 1 WHERE turn_id = :turn",
    ],
)
def test_what_is_concealed_or_hidden_is_not_in_the_feed(database, org, conceal):
    session = new_session(database, org.owner)

    def talk(tx):
        say(tx, org.owner, session, "one", "1")
        gone = say(tx, org.owner, session, "two", "2")
        say(tx, org.owner, session, "three", "3")
        tx.run(conceal, turn=gone.id)

    database.write(talk)
    with database.read() as tx:
        items = whole(tx, session)
        assert [item.content for item in items] == ["one", "1", "three", "3"]
        # What was handed out before it was concealed still says where a reader stands.
        assert messages.page(tx, session, str(items[1].cursor + 1), 50).items == items[2:]


def test_a_turn_out_of_the_context_is_still_in_the_feed(database, org):
    session = new_session(database, org.owner)
    turn = database.write(lambda tx: say(tx, org.owner, session, "one", "1"))
    database.write(
        lambda tx: tx.run(
            "UPDATE turns SET visibility = 'excluded_from_context' WHERE id = :id", id=turn.id
        )
    )
    with database.read() as tx:
        assert len(whole(tx, session)) == 2


NO_CURSORS = [
    "0", "-1", "+1", " 1", "1 ", "01", "1.0", "1e0", "", "x", "null", "٣", "１", "1_0", "0x1",
    "4", "99", "9223372036854775807", "9223372036854775808", "1" * 400, "1\n", "MQ",
    str(2**32 + 1), str(2**32),
]  # fmt: skip


@pytest.mark.parametrize("after", NO_CURSORS)
def test_what_this_list_could_not_have_issued_is_no_cursor(sqlite_database, after):
    org = make_org(sqlite_database)
    session = new_session(sqlite_database, org.owner)
    notices(sqlite_database, session, 3)
    with sqlite_database.read() as tx, pytest.raises(InvalidInputError) as refused:
        messages.page(tx, session, after, 50)
    assert refused.value.code == "invalid_cursor"


def test_a_list_that_has_issued_nothing_has_no_cursor(sqlite_database):
    org = make_org(sqlite_database)
    session = new_session(sqlite_database, org.owner)
    with sqlite_database.read() as tx:
        assert messages.page(tx, session, None, 50) == messages.Page([], False, None)
        with pytest.raises(InvalidInputError):
            messages.page(tx, session, "1", 50)


def test_an_empty_page_gives_back_the_cursor_that_was_sent(database, org):
    session = new_session(database, org.owner)
    notices(database, session, 3)
    with database.read() as tx:
        page = messages.page(tx, session, "3", 50)
    assert page == messages.Page([], False, "3")


# Forks


def test_a_fork_shows_what_it_inherits_and_then_its_own(database, org):
    source = new_session(database, org.owner)

    def talk(tx):
        for n in range(4):
            say(tx, org.owner, source, f"q{n}", f"a{n}")
        made = fork(tx, org.owner, source, 1)
        say(tx, org.owner, made, "q2 anew", "a2 anew")
        return made

    made = database.write(talk)
    with database.read() as tx:
        items = whole(tx, made)
        inherited = whole(tx, source)[:4]
    assert texts(items) == [
        ("prompt", "q0"), ("reply", "a0"), ("message", "q1"), ("reply", "a1"),
        ("message", "q2 anew"), ("reply", "a2 anew"),
    ]  # fmt: skip
    assert [i.public_id for i in items[:4]] == [i.public_id for i in inherited]
    cursors = [item.cursor for item in items]
    assert cursors == sorted(set(cursors))
    assert max(cursors) < 2**53  # exact in JavaScript
    with database.read() as tx:
        for size in (1, 2, 3, 5, 200):
            after, pages = None, []
            while True:
                page = messages.page(tx, made, after, size)
                pages += page.items
                after = page.end_cursor
                if not page.has_next_page:
                    break
            assert pages == items


def test_the_source_goes_on_without_its_fork(database, org):
    source = new_session(database, org.owner)

    def talk(tx):
        say(tx, org.owner, source, "q0", "a0")
        return fork(tx, org.owner, source, 0)

    made = database.write(talk)
    with database.read() as tx:
        last = whole(tx, made)[-1].cursor
    database.write(lambda tx: say(tx, org.owner, source, "q1", "a1"))
    with database.read() as tx:
        assert [i.content for i in whole(tx, made)] == ["q0", "a0"]
        assert messages.page(tx, made, str(last), 50) == messages.Page([], False, str(last))
        # The source has issued these cursors since; the fork has not.
        for cursor in (3, 4):
            messages.page(tx, source, str(cursor), 50)
            with pytest.raises(InvalidInputError):
                messages.page(tx, made, str(cursor), 50)


def test_concealing_in_a_fork_and_in_its_source_are_apart(database, org):
    source = new_session(database, org.owner)

    def talk(tx):
        turns = [say(tx, org.owner, source, f"q{n}", f"a{n}") for n in range(3)]
        made = fork(tx, org.owner, source, 2)
        tx.run("UPDATE turns SET deleted_at = 1 WHERE id = :id", id=turns[0].id)
        for turn, column, value in (
            (turns[1], "deleted_at", 1),
            (turns[2], "visibility", "hidden"),
        ):
            tx.run(
                f"INSERT INTO turn_overrides (conversation_id, turn_id, {column})"
                " VALUES (:made, :turn, :value)",
                made=made,
                turn=turn.id,
                value=value,
            )
        return made

    made = database.write(talk)
    with database.read() as tx:
        assert [i.content for i in whole(tx, made)] == ["q0", "a0"]
        assert [i.content for i in whole(tx, source)] == ["q1", "a1", "q2", "a2"]


def test_a_fork_from_within_what_its_source_inherited_shows_no_more_of_it(database, org):
    first = new_session(database, org.owner)

    def talk(tx):
        for n in range(4):
            say(tx, org.owner, first, f"q{n}", f"a{n}")
        second = fork(tx, org.owner, first, 3)
        say(tx, org.owner, second, "second", "2")
        return fork(tx, org.owner, second, 1)

    third = database.write(talk)
    with database.read() as tx:
        assert [i.content for i in whole(tx, third)] == ["q0", "a0", "q1", "a1"]
        again = messages.page(tx, third, str(whole(tx, third)[-1].cursor), 1)
        assert again.items == []


def test_a_page_costs_the_same_however_wide_and_however_long_the_history(database, org):
    short, long = new_session(database, org.owner), new_session(database, org.owner)
    notices(database, short, 100)
    notices(database, long, 5_000)
    seen = []
    database.observer = seen.append
    counts = set()
    with database.read() as tx:
        for session in (short, long):
            for first in (1, 200):
                seen.clear()
                messages.page(tx, session, "50", first)
                counts.add(len(seen))
    database.observer = None
    assert len(counts) == 1
    assert counts.pop() <= 3
