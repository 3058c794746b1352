"""A conversation that shows another one's turns, without a turn of its own at the fork point."""

import story
from stenograph.conversations import conversation, fork, turn
from stenograph.conversations.fork import Point
from stenograph.sessions import messages


def linked(database, source, point):
    def make(tx):
        made = conversation.create(tx, source.caller, source.workspace)
        fork.link(tx, made.id, source.conversation.id, point)
        return made.public_id

    public_id = database.write(make)
    with database.read() as tx:
        found = conversation.access.find(tx, source.caller, source.workspace.public_id, public_id)
    return story.Place(source.caller, source.workspace, found)


def positions(database, where):
    with database.read() as tx:
        return [one.turn.position for one in turn.window(tx, where.conversation)]


def test_nothing_behind_the_point_is_shown_of_older_ancestors_either(database, org):
    root = story.place(database, org.owner)
    said = [story.message(database, root) for _ in range(5)]
    middle = story.forked(database, root, said[4])
    low = linked(database, middle, Point(said[1].turn.id, 1))
    assert positions(database, low) == [0, 1]
    with database.read() as tx:
        rows = tx.rows(
            "SELECT ancestor_id, boundary_position FROM ancestries WHERE conversation_id = :id"
            " ORDER BY depth",
            id=low.conversation.id,
        )
    assert rows == [(middle.conversation.id, 1), (root.conversation.id, 1)]
    own = story.message(database, low)
    assert own.turn.position == 2


def test_what_is_concealed_there_is_concealed_here(database, org):
    root = story.place(database, org.owner)
    said = [story.message(database, root) for _ in range(3)]
    database.write(
        lambda tx: turn.set_view_state(
            tx, root.conversation, said[0].turn.public_id, concealed=True
        )
    )
    assert positions(database, linked(database, root, Point(said[1].turn.id, 1))) == [1]


def test_without_a_point_nothing_is_shared(database, org):
    root = story.place(database, org.owner)
    story.message(database, root)
    alone = linked(database, root, None)
    assert positions(database, alone) == []
    with database.read() as tx:
        facts = conversation.document(tx, alone.conversation)
        assert facts.source == root.conversation.public_id
        assert messages.page(tx, alone.conversation.id, None, 10).items == []
