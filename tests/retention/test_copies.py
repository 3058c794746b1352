"""What forks adopted of a candidate goes with it, and nothing that is not a copy of its details."""

import pytest

import story
from stenograph.clock import DAY
from stenograph.conversations import fork, side, turn
from stenograph.retention.prune import prune
from stenograph.runs import snapshot


@pytest.fixture
def where(database, org):
    return story.place(database, org.owner)


def adopted(api, place):
    """The candidate of a fork's own turn."""
    *_, own = api.get(f"{place.path}/turns").json()["turns"]
    assert not own["inherited"]
    path = f"{place.path}/turns/{own['public_id']}/variants/{own['active_variant']['public_id']}"
    return api.get(f"{path}/reasoning")


def test_a_fork_at_an_inherited_turn_keeps_no_copy(api, database, where):
    said = story.direct_reply(database, where)
    between = story.forked(database, where, story.message(database, where))
    copied = story.forked(database, between, said)
    with database.read() as tx:
        (own,) = turn.window(tx, copied.conversation)
    again = story.forked(database, copied, own.turn)
    assert adopted(api, again).json()["items"][0]["text"] == "I add the numbers."
    # By themselves the copies are not due yet.
    story.run_sql(
        database,
        "UPDATE variants SET completed_at = completed_at + :day WHERE source = 'fork'",
        day=DAY,
    )
    prune(database, 0, rewrite=False)
    assert adopted(api, copied).status_code == 410
    assert adopted(api, again).status_code == 410


def test_a_sides_snapshot_is_no_copy_of_details(api, database, where):
    said = database.write(lambda tx: story.open_run(tx, where))

    def beside(tx):
        held = fork.hold_source(tx, where.conversation)
        running = side.under_way(tx, held)
        taken = snapshot.of(tx, running.variant)
        return side.create(tx, where.caller, where.workspace, held, running=running, snapshot=taken)

    made = story.Place(where.caller, where.workspace, database.write(beside))
    database.write(lambda tx: story.finish(tx, said))
    prune(database, 0, rewrite=False)
    assert api.get(where.reasoning(said)).status_code == 410
    assert adopted(api, made).json()["items"] == []
