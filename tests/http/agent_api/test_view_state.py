"""How turns look from a conversation and from its forks, against a plain account of it."""

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import story
from people import make_org
from stenograph.conversations import side, turn
from stenograph.errors import ConflictError, ForbiddenError, NotFoundError
from stenograph.retention import erasing
from stenograph.retention.integrity import check
from stenograph.storage.location import connect

TURNS = 4
VISIBILITIES = ("visible", "excluded_from_context", "hidden")


@dataclass
class Look:
    """How one turn looks from one place."""

    visibility: str = "visible"
    concealed: bool = False


@dataclass
class Seen:
    """A conversation as it should be seen: its turns in order, each with its look.

    `own` are those that it may change itself; `pinned` how many of them a fork shows.
    """

    where: story.Place
    turns: list[turn.Turn]
    own: set[str]
    looks: dict[str, Look] = field(default_factory=dict)
    pinned: set[str] = field(default_factory=set)
    side: bool = False


ACTS = st.one_of(
    st.tuples(
        st.just("look"),
        st.integers(0, 9),
        st.integers(0, TURNS + 3),
        st.none() | st.sampled_from(VISIBILITIES),
        st.none() | st.booleans(),
    ),
    st.tuples(st.just("fork"), st.integers(0, 9), st.integers(0, TURNS)),
    st.tuples(st.just("beside"), st.integers(0, 9)),
    st.tuples(st.just("say"), st.integers(0, 9)),
    st.tuples(st.just("delete"), st.integers(0, 9), st.integers(0, TURNS + 3)),
)


def expect(act):
    """Do `act` on the record; returns the code that it was refused with."""
    try:
        act()
    except (ConflictError, ForbiddenError, NotFoundError) as error:
        return error.code
    return None


def look(database, seen, number, visibility, concealed):
    if number >= len(seen.turns):
        return
    chosen = seen.turns[number]
    now = seen.looks[chosen.public_id]
    is_apex = chosen.public_id in seen.own and number == len(seen.turns) - 1
    wanted = None
    newly = concealed and not now.concealed
    if newly and is_apex and chosen.public_id not in seen.pinned:
        wanted = "apex_never_conceals"
    found = expect(
        lambda: database.write(
            lambda tx: turn.set_view_state(
                tx,
                seen.where.conversation,
                chosen.public_id,
                visibility=visibility,
                concealed=concealed,
            )
        ),
    )
    assert found == wanted
    if wanted is None:
        now.visibility = visibility or now.visibility
        now.concealed = now.concealed if concealed is None else concealed


def beside(database, worlds, seen):
    """Talk beside a conversation: all its turns are inherited, and nothing is adopted."""
    if seen.side:
        return
    made = database.write(
        lambda tx: side.create(
            tx,
            seen.where.caller,
            seen.where.workspace,
            seen.where.conversation,
            running=None,
            snapshot=None,
        )
    )
    where = story.Place(seen.where.caller, seen.where.workspace, made)
    looks = {it.public_id: replace(seen.looks[it.public_id]) for it in seen.turns}
    worlds.append(Seen(where, [*seen.turns], set(), looks, side=True))
    for other in worlds:
        other.pinned |= looks.keys() & other.own


def fork(database, worlds, seen, number):
    if seen.side or number >= len(seen.turns):
        return
    if seen.looks[seen.turns[number].public_id].concealed:
        return
    point = seen.turns[number]
    made = story.forked(database, seen.where, point)
    with database.read() as tx:
        (own,) = [
            it.turn
            for it in turn.window(tx, made.conversation, limit=100, hidden=True)
            if not it.turn.inherited
        ]
    inherited = seen.turns[:number]
    looks = {it.public_id: replace(seen.looks[it.public_id]) for it in inherited}
    looks[own.public_id] = Look(seen.looks[point.public_id].visibility)
    worlds.append(Seen(made, [*inherited, own], {own.public_id}, looks))
    for other in worlds:
        other.pinned |= {it.public_id for it in inherited} & other.own


def say(database, seen):
    said = story.message(database, seen.where).turn
    seen.turns.append(said)
    seen.own.add(said.public_id)
    seen.looks[said.public_id] = Look()


def delete(database, seen, number):
    if number >= len(seen.turns):
        return
    chosen = seen.turns[number]
    wanted = None
    if chosen.public_id not in seen.own:
        wanted = "not_authorized"
    elif number != len(seen.turns) - 1:
        wanted = "apex_only"
    elif chosen.public_id in seen.pinned:
        wanted = "descendant_pinned"
    found = expect(
        lambda: database.write(
            lambda tx: erasing.delete_turn(tx, seen.where.conversation, chosen.public_id)
        ),
    )
    assert found == wanted
    if wanted is None:
        seen.turns.pop()
        seen.own.discard(chosen.public_id)


def compare(database, seen):
    """Hold every reading to the account."""
    conversation = seen.where.conversation
    shown = [it for it in seen.turns if not seen.looks[it.public_id].concealed]
    plain = [it for it in shown if seen.looks[it.public_id].visibility != "hidden"]
    with database.read() as tx:
        for hidden, wanted in ((True, shown), (False, plain)):
            found = turn.window(tx, conversation, limit=100, hidden=hidden)
            assert [it.turn.public_id for it in found] == [it.public_id for it in wanted]
            for it in found:
                assert it.turn.visibility == seen.looks[it.turn.public_id].visibility
                assert it.turn.inherited == (it.turn.public_id not in seen.own)
        newest = turn.window(tx, conversation, before=2**31 - 1, limit=2)
        assert [it.turn.public_id for it in newest] == [it.public_id for it in plain[-2:]]
        for it in seen.turns:
            try:
                turn.find(tx, conversation, it.public_id)
                concealed = False
            except NotFoundError:
                concealed = True
            assert concealed == seen.looks[it.public_id].concealed


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_a_view_is_each_conversations_own(request, engine):
    place = request.getfixturevalue(f"{engine}_location")
    database = connect(place)
    owner = make_org(database).owner

    @given(st.lists(ACTS, max_size=12))
    @settings(
        max_examples=40 if engine == "sqlite" else 12,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    def check_acts(acts):
        start = Seen(story.place(database, owner), [], set())
        worlds = [start]
        for _ in range(TURNS):
            say(database, start)
        for kind, which, *rest in acts:
            seen = worlds[which % len(worlds)]
            match kind:
                case "look":
                    look(database, seen, *rest)
                case "fork":
                    fork(database, worlds, seen, *rest)
                case "beside":
                    beside(database, worlds, seen)
                case "say":
                    say(database, seen)
                case "delete":
                    delete(database, seen, *rest)
            for one in worlds:
                compare(database, one)

    try:
        check_acts()
        assert check(database) == []
    finally:
        database.close()
