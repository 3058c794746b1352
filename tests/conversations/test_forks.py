"""Forks, views and concealment against a plain model in memory, on both engines."""

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import story
from stenograph.conversations import access, turn, variant
from stenograph.errors import ConflictError, ForbiddenError, NotFoundError

VISIBILITIES = st.sampled_from(["visible", "excluded_from_context", "hidden"])


@dataclass(frozen=True)
class Slot:
    """How a turn looks from one conversation."""

    turn: str
    position: int
    inherited: bool
    visibility: str = "visible"
    concealed: bool = False


@dataclass
class Branch:
    """A conversation as it should be: its slots by position."""

    where: story.Place
    slots: list[Slot] = field(default_factory=list)

    def own_apex(self) -> int | None:
        return max((s.position for s in self.slots if not s.inherited), default=None)


class Forks(RuleBasedStateMachine):
    database = None
    owner = None

    def __init__(self):
        super().__init__()
        self.branches = [Branch(story.place(self.database, self.owner))]

    def pick(self, data, *, concealed=True):
        """Choose a conversation and one of its slots."""
        branch = data.draw(st.sampled_from([b for b in self.branches if b.slots]), "branch")
        slots = [s for s in branch.slots if concealed or not s.concealed]
        return branch, data.draw(st.sampled_from(slots), "slot") if slots else None

    @rule(data=st.data())
    def say(self, data):
        branch = data.draw(st.sampled_from(self.branches), "branch")
        said = story.message(self.database, self.fresh(branch), "x")
        position = max((s.position for s in branch.slots), default=-1) + 1
        assert said.turn.position == position
        branch.slots.append(Slot(said.turn.public_id, position, inherited=False))

    @precondition(lambda self: any(b.slots for b in self.branches) and len(self.branches) < 6)
    @rule(data=st.data())
    def fork(self, data):
        branch, slot = self.pick(data, concealed=False)
        if slot is None:
            return
        where = self.fresh(branch)
        with self.database.read() as tx:
            point = turn.find(tx, where.conversation, slot.turn)
        made = story.forked(self.database, where, point)
        inherited = [replace(s, inherited=True) for s in branch.slots if s.position < slot.position]
        with self.database.read() as tx:
            (adopted,) = [
                one.turn
                for one in turn.window(tx, made.conversation, limit=100, hidden=True)
                if not one.turn.inherited
            ]
        assert adopted.position == slot.position
        own = Slot(adopted.public_id, slot.position, False, slot.visibility)
        self.branches.append(Branch(made, [*inherited, own]))

    @precondition(lambda self: any(b.slots for b in self.branches))
    @rule(
        data=st.data(),
        visibility=st.none() | VISIBILITIES,
        concealed=st.none() | st.booleans(),
    )
    def view(self, data, visibility, concealed):
        branch, slot = self.pick(data)
        pinned = any(s.turn == slot.turn and s.inherited for b in self.branches for s in b.slots)
        apex = not slot.inherited and slot.position == branch.own_apex() and not pinned
        refused = bool(concealed) and not slot.concealed and apex

        def change(tx):
            where = self.fresh(branch, tx)
            return turn.set_view_state(
                tx, where.conversation, slot.turn, visibility=visibility, concealed=concealed
            )

        if refused:
            with pytest.raises(ConflictError) as raised:
                self.database.write(change)
            assert raised.value.code == "apex_never_conceals"
            return
        changed = self.database.write(change)
        assert changed.inherited == slot.inherited
        branch.slots[branch.slots.index(slot)] = replace(
            slot,
            visibility=visibility or slot.visibility,
            concealed=slot.concealed if concealed is None else concealed,
        )

    @precondition(lambda self: any(s.inherited for b in self.branches for s in b.slots))
    @rule(data=st.data())
    def content_of_others_is_theirs(self, data):
        branch, slot = self.pick(data, concealed=False)
        if slot is None or not slot.inherited:
            return

        def change(tx):
            where = self.fresh(branch, tx)
            found = turn.find(tx, where.conversation, slot.turn)
            (only,) = variant.deck(tx, found)
            variant.set_view_state(
                tx, where.conversation, slot.turn, only.public_id, concealed=True
            )

        with pytest.raises(ForbiddenError):
            self.database.write(change)

    @rule(
        data=st.data(),
        position=st.integers(0, 8),
        limit=st.integers(1, 5),
        older=st.booleans(),
        hidden=st.booleans(),
    )
    def window(self, data, position, limit, older, hidden):
        branch = data.draw(st.sampled_from(self.branches), "branch")
        shown = [s for s in self.shown(branch) if hidden or s.visibility != "hidden"]
        if older:
            expected = [s for s in shown if s.position < position][-limit:]
            bounds = {"before": position}
        else:
            expected = [s for s in shown if s.position > position][:limit]
            bounds = {"after": position}
        with self.database.read() as tx:
            where = self.fresh(branch, tx)
            page = turn.window(tx, where.conversation, limit=limit, hidden=hidden, **bounds)
        assert [slot_of(one.turn) for one in page] == expected

    @invariant()
    def every_conversation_shows_its_own_view(self):
        with self.database.read() as tx:
            for branch in self.branches:
                where = self.fresh(branch, tx)
                page = turn.window(tx, where.conversation, limit=1000, hidden=True)
                assert [slot_of(one.turn) for one in page] == self.shown(branch)

    def teardown(self):
        """At the end, every turn looked for from every conversation is there or is not."""
        every = {slot.turn for branch in self.branches for slot in branch.slots}
        with self.database.read() as tx:
            for branch in self.branches:
                where = self.fresh(branch, tx)
                known = {slot.turn: slot for slot in self.shown(branch)}
                for public_id in every:
                    if public_id in known:
                        found = turn.find(tx, where.conversation, public_id)
                        assert slot_of(found) == known[public_id]
                    else:
                        with pytest.raises(NotFoundError):
                            turn.find(tx, where.conversation, public_id)

    def shown(self, branch):
        return sorted((s for s in branch.slots if not s.concealed), key=lambda slot: slot.position)

    def fresh(self, branch, tx=None):
        """Find the conversation as it is now, as a request would."""
        if tx is None:
            with self.database.read() as own:
                return self.fresh(branch, own)
        found = access.find(
            tx,
            branch.where.caller,
            branch.where.workspace.public_id,
            branch.where.conversation.public_id,
        )
        return replace(branch.where, conversation=found)


def slot_of(found: turn.Turn) -> Slot:
    concealed = found.deleted_at is not None
    return Slot(found.public_id, found.position, found.inherited, found.visibility, concealed)


def test_forks_agree_with_a_plain_model(database, org):
    class OnThisDatabase(Forks):
        pass

    OnThisDatabase.database = database
    OnThisDatabase.owner = org.owner
    run_state_machine_as_test(
        OnThisDatabase,
        settings=settings(
            max_examples=20,
            stateful_step_count=20,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_a_chain_of_many_forks_reads_whole(database, org):
    where = story.place(database, org.owner)
    story.message(database, where)
    deep = where
    for _ in range(120):
        deep = story.forked(database, deep, story.message(database, deep))
    with database.read() as tx:
        page = turn.window(tx, deep.conversation, limit=500)
    assert [one.turn.position for one in page] == list(range(121))
    assert [one.turn.inherited for one in page] == [True] * 120 + [False]


def test_a_fork_of_what_is_under_way_is_refused(database, org):
    where = story.place(database, org.owner)
    said = database.write(lambda tx: story.open_run(tx, where))
    with pytest.raises(ConflictError) as raised:
        story.forked(database, where, said)
    assert raised.value.code == "variant_not_forkable"


def test_a_fork_made_before_a_prune_keeps_saying_what_was_pruned(api, database, org):
    where = story.place(database, org.owner)
    said = story.direct_reply(database, where)
    story.run_sql(
        database, "UPDATE variants SET details_pruned_at = 1 WHERE id = :id", id=said.variant.id
    )
    fork = story.forked(database, where, said)
    (adopted,) = api.get(f"{fork.path}/turns").json()["turns"]
    variant_id = adopted["active_variant"]["public_id"]
    path = f"{fork.path}/turns/{adopted['public_id']}/variants/{variant_id}/reasoning"
    assert api.get(path).status_code == 410
