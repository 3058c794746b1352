"""Whoever follows a feed by its cursors misses nothing and gets nothing twice."""

import threading

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from feeds import answer, ask, new_session, whole
from stenograph.sessions import messages
from stenograph.sessions.messages import Message

WRITERS, EACH = 4, 40

operations = st.lists(
    st.one_of(
        st.tuples(st.just("notices"), st.integers(1, 7)),
        st.tuples(st.just("ask"), st.just(0)),
        st.tuples(st.just("answer"), st.integers(0, 3)),
        st.tuples(st.just("read"), st.integers(1, 9)),
    ),
    max_size=25,
)


class Follower:
    """Reads pages of a size by `end_cursor` and keeps what it got, in order."""

    def __init__(self, database, session):
        self.database, self.session = database, session
        self.after, self.got = None, []

    def read(self, size):
        with self.database.read() as tx:
            page = messages.page(tx, self.session, self.after, size)
        assert len(page.items) <= size
        if page.items:
            assert page.end_cursor == str(page.items[-1].cursor)
        else:
            assert page.end_cursor == self.after
        self.got += page.items
        self.after = page.end_cursor
        return page.has_next_page

    def drain(self, size):
        while self.read(size):
            pass


@settings(
    max_examples=20,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(operations=operations, size=st.integers(1, 9))
def test_a_follower_gets_every_row_once_whatever_is_written_between(
    database, org, operations, size
):
    session = new_session(database, org.owner)
    follower = Follower(database, session)
    turns = []
    for name, number in operations:
        if name == "notices":
            rows = [Message("message", "assistant", content="n")] * number
            database.write(lambda tx, rows=rows: messages.append_all(tx, session, rows))
        elif name == "ask":
            turns.append(database.write(lambda tx: ask(tx, org.owner, session, "q")))
        elif name == "answer" and turns:
            # Again and again too: a reply that is decided anew moves.
            turn = turns[number % len(turns)]
            database.write(lambda tx, turn=turn: answer(tx, session, turn, "a"))
        elif name == "read":
            follower.read(number)
    follower.drain(size)
    cursors = [item.cursor for item in follower.got]
    assert cursors == sorted(set(cursors))
    with database.read() as tx:
        standing = whole(tx, session)
    # Every row was read where it stands now; what was read elsewhere is a reply that moved.
    got = {(item.public_id, item.cursor) for item in follower.got}
    assert {(item.public_id, item.cursor) for item in standing} <= got
    moved = got - {(item.public_id, item.cursor) for item in standing}
    replies = {item.public_id for item in standing if item.kind == "reply"}
    assert {public_id for public_id, _ in moved} <= replies


def test_a_follower_misses_nothing_of_writers_at_work(database, org):
    session = new_session(database, org.owner)
    total = WRITERS * EACH

    def write(name):
        for n in range(EACH):
            row = Message("message", "assistant", content=f"{name}:{n}")
            database.write(lambda tx, row=row: messages.append(tx, session, row))

    writers = [threading.Thread(target=write, args=(name,)) for name in range(WRITERS)]
    follower = Follower(database, session)
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        follower.drain(7)
    for writer in writers:
        writer.join()
    follower.drain(7)
    with database.read() as tx:
        assert follower.got == whole(tx, session)
    assert len(follower.got) == total
    for name in range(WRITERS):
        own = [i.content for i in follower.got if i.content.startswith(f"{name}:")]
        assert own == [f"{name}:{n}" for n in range(EACH)]
