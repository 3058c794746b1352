"""The input queue against a list: whatever is done to it, the same turns come in the same order."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    multiple,
    precondition,
    rule,
    run_state_machine_as_test,
)

import story
from people import make_org
from stenograph import clock
from stenograph.conversations import input as inputs
from stenograph.conversations import (
    input_changes,
    input_queue,
    input_row,
    store_inputs,
    store_turns,
    turn,
    variant,
)
from stenograph.conversations.input_changes import Draft
from stenograph.conversations.wishes import Wishes
from stenograph.errors import ConflictError
from stenograph.storage.database import Database, Tx


@dataclass
class Waiting:
    """An input of the model; `tail`: how many turns there may be when it becomes one."""

    id: str
    kind: str
    text: str
    due: int
    tail: int | None
    blocked: bool = False


@dataclass
class Model:
    """The queue as a list, and what became turns."""

    waiting: list[Waiting] = field(default_factory=list)
    turns: list[str] = field(default_factory=list)
    active: bool = False

    def advance(self, now: int) -> None:
        while not self.active:
            head = next((it for it in self.waiting if it.due <= now), None)
            if head is None or head.blocked:
                return
            if head.tail not in (None, len(self.turns)):
                head.blocked = True
                return
            self.waiting.remove(head)
            self.turns.append(head.text)
            self.active = head.kind == "direct_reply"


class Queue(RuleBasedStateMachine):
    """Accept, edit, delete, reorder, settle, let time pass; each step is compared."""

    ids = Bundle("ids")

    def __init__(self, database: Database, where: story.Place, time: SimpleNamespace) -> None:
        super().__init__()
        self.database, self.time = database, time
        self.place = story.another(database, where)
        self.conversation = self.place.conversation
        self.model = Model()
        self.count = 0

    @property
    def now(self) -> int:
        return clock.now()

    def tail(self, tx: Tx) -> str | None:
        return store_turns.head(tx, self.conversation.id)[1]

    @rule(
        target=ids,
        kind=st.sampled_from(["message", "direct_reply"]),
        later=st.sampled_from([0, 0, 0, 5, 60]),
        fenced=st.booleans(),
    )
    def accept(self, kind: Any, later: int, fenced: bool) -> Any:
        self.count += 1
        text, due = f"text {self.count}", self.now + later * clock.SECOND

        def put(tx: Tx) -> str:
            tail = self.tail(tx) if fenced else None
            wishes = Wishes(deliver_at=due if later else None, expected_tail_turn_public_id=tail)
            return inputs.accept(
                tx, self.place.caller, self.conversation, kind=kind, text=text, wishes=wishes
            ).public_id

        if len(self.model.waiting) >= inputs.LIMIT:
            with pytest.raises(ConflictError, match="Too many"):
                self.database.write(put)
            return multiple()
        public_id = self.database.write(put)
        tail = len(self.model.turns) if fenced and self.model.turns else None
        self.model.waiting.append(Waiting(public_id, kind, text, due, tail))
        self.model.advance(self.now)
        return public_id

    @rule(public_id=ids, later=st.sampled_from([None, 0, 30]))
    def edit(self, public_id: str, later: int | None) -> None:
        self.count += 1
        text = f"text {self.count}"
        due = None if later is None else self.now + later * clock.SECOND

        def change(was: input_row.Input) -> Draft:
            at = was.wishes.deliver_at if due is None else due
            return Draft(was.role, text, Wishes(deliver_at=at))

        def put(tx: Tx) -> None:
            input_changes.edit(tx, self.conversation, public_id, change)

        found = next((it for it in self.model.waiting if it.id == public_id), None)
        if found is None:
            with pytest.raises(ConflictError) as refused:
                self.database.write(put)
            assert refused.value.code == "stale_object"
            return
        self.database.write(put)
        found.text, found.tail, found.blocked = text, None, False
        found.due = found.due if due is None else due
        self.model.advance(self.now)

    @rule(public_id=consumes(ids))
    def delete(self, public_id: str) -> None:
        found = next((it for it in self.model.waiting if it.id == public_id), None)
        if found is None:
            return

        def take(tx: Tx) -> None:
            input_changes.delete(tx, self.conversation, public_id)

        self.database.write(take)
        self.model.waiting.remove(found)
        self.model.advance(self.now)

    @rule(data=st.data())
    def reorder(self, data: Any) -> None:
        order = data.draw(st.permutations(self.model.waiting))
        named = [it.id for it in order]
        if self.model.waiting:
            with pytest.raises(ConflictError, match="Other inputs"):
                self.database.write(
                    lambda tx: input_changes.reorder(tx, self.conversation, named[1:])
                )
        self.database.write(lambda tx: input_changes.reorder(tx, self.conversation, named))
        self.model.waiting = list(order)
        self.model.advance(self.now)

    @precondition(lambda self: self.model.active)
    @rule(status=st.sampled_from(["completed", "failed", "canceled"]))
    def settle(self, status: Any) -> None:
        def end(tx: Tx) -> None:
            active = store_turns.active_turn(tx, self.conversation.id)
            assert active is not None
            found = turn.find(tx, self.conversation, store_turns.turn_public_id(tx, active))
            (shown,) = variant.deck(tx, found)
            variant.settle(tx, found, shown, status, content="an answer")
            inputs.advance(tx, self.conversation.id)

        self.database.write(end)
        self.model.active = False
        self.model.advance(self.now)

    @rule(seconds=st.sampled_from([1, 5, 30, 60]))
    def wait(self, seconds: int) -> None:
        self.time.at += seconds * clock.SECOND
        with self.database.read() as tx:
            due = store_inputs.due(tx, self.now, 100)
        for conversation_id in due:
            self.database.write(lambda tx, it=conversation_id: input_queue.fall_due(tx, it))
        with self.database.read() as tx:
            assert store_inputs.due(tx, self.now, 100) == []
        self.model.advance(self.now)

    @invariant()
    def they_agree(self) -> None:
        with self.database.read() as tx:
            rows = input_row.queue(tx, self.conversation)
            asked = tx.rows(
                "SELECT coalesce(v.prompt, v.content) FROM turns t"
                " JOIN variants v ON v.turn_id = t.id WHERE t.conversation_id = :id"
                " ORDER BY t.position",
                id=self.conversation.id,
            )
            held = store_inputs.is_held(tx, self.conversation.id, self.now)
            blocked = tx.value(
                "SELECT count(*) FROM events WHERE conversation_id = :id"
                " AND type = 'input_blocked'",
                id=self.conversation.id,
            )
        assert [(it.public_id, it.text, it.state) for it in rows] == [
            (it.id, it.text, "blocked" if it.blocked else "pending") for it in self.model.waiting
        ]
        assert [row[0] for row in asked] == self.model.turns
        head = next((it for it in self.model.waiting if it.due <= self.now), None)
        assert held == (head is not None and head.blocked)
        assert all(it.blocked_reason == "stale_timeline" for it in rows if it.state == "blocked")
        assert blocked >= sum(it.blocked for it in self.model.waiting)


@pytest.mark.parametrize(("engine", "examples"), [("sqlite", 25), ("postgres", 4)])
def test_the_queue_is_a_list(request, monkeypatch, engine, examples):
    opened = request.getfixturevalue("opened")(engine)
    where = story.place(opened, make_org(opened).owner)
    time = SimpleNamespace(at=clock.now())
    time.time_ns = lambda: time.at * 1_000
    monkeypatch.setattr(clock, "time", time)
    run_state_machine_as_test(
        lambda: Queue(opened, where, time),
        settings=settings(
            max_examples=examples,
            stateful_step_count=25,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.fixture
def opened(request):
    """Open a fresh database of an engine."""
    from stenograph.storage import location

    databases = []

    def open_one(engine: str) -> Database:
        databases.append(location.connect(request.getfixturevalue(f"{engine}_location")))
        return databases[-1]

    yield open_one
    for database in databases:
        database.close()
