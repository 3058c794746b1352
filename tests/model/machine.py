"""Conversations, forks, edits, concealment, activation, pruning and archive in any order, against
the plain model: whatever is done, every reading agrees."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, TypeAlias

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from model import answering
from model.answering import Asked
from model.plain_model import Candidate, Conversation, Refused, Turn, World
from model.readings import KEYS, Readings
from model.shapes import same
from serving import Api
from stenograph import clock
from stenograph.conversations import workspace
from stenograph.retention import integrity, prune, reap

PEOPLE = st.sampled_from(["owner", "member"])
LEVELS = st.sampled_from(["full", "full", "full", "read", "none"])
VISIBILITIES = st.sampled_from(["visible", "excluded_from_context", "hidden"])
Who: TypeAlias = tuple[str, Conversation]
#: After how many steps everything is read.
EVERY = 8
ONE_IN_EIGHT = st.sampled_from([False] * 7 + [True])
#: A word that every text holds; no stemmer knows it.
WORD = "zyxq"


def has_choice(turn: Turn) -> bool:
    return len(turn.deck) > 1


def is_newest(turn: Turn) -> bool:
    return turn.owner.own[-1] is turn and not any(turn.working)


def was_asked(turn: Turn) -> bool:
    return is_newest(turn) and turn.active.prompt is not None


def hears(where: Conversation) -> bool:
    return where.answering is not None and where.answering.active.source == "run"


def may_be_retried(turn: Turn) -> bool:
    it = turn.active
    return is_newest(turn) and it.source == "run" and it.status in ("failed", "timed_out")


def some(having: Callable[[Turn], Any]) -> Callable[[Any], Callable[..., Any]]:
    """A rule for when there is such a turn in a conversation that is there."""
    return precondition(
        lambda self: any(having(turn) for where in self.living() for turn in where.own)
    )


class Machine(RuleBasedStateMachine):
    """Each rule asks the API and the model the same, and compares what both answer."""

    def __init__(self, api: Api, time: SimpleNamespace) -> None:
        super().__init__()
        self.api, self.time = api, time
        self.world = World(clock.now())
        self.asked: dict[Candidate, Asked] = {}
        self.count = self.steps = 0
        #: Whether the last step came to its end, so that there is something to compare.
        self.sound = True
        owner = api.org.owner
        home = api.database.write(
            lambda tx: workspace.create(tx, owner, "Home", access_mode="account_wide")
        )
        self.home = home.public_id
        path = f"{Api.agent}/workspaces/{home.public_id}"
        self.readings = Readings(api, self.world, path, WORD)

    # What all rules share

    def text(self) -> str:
        self.count += 1
        return f"{WORD} {self.count}"

    def living(self) -> list[Conversation]:
        return [it for it in self.world.conversations if it.deleted_at is None]

    def pick(self, data: Any, having: Callable[[Conversation], Any] = bool) -> Who:
        """A conversation, and somebody who often may do something there; one in eight is any."""
        fit = [it for it in self.living() if having(it)]
        if data.draw(ONE_IN_EIGHT):
            fit = self.world.conversations
        where = data.draw(st.sampled_from(fit or self.world.conversations), "conversation")
        people = [where.creator] * 4 + ["owner", "member"]
        return data.draw(st.sampled_from(people), "person"), where

    def pick_turn(
        self, data: Any, having: Callable[[Turn], Any] = bool
    ) -> tuple[str, Conversation, Turn]:
        """A turn of a conversation; one in eight is looked for where it may not be."""
        every = [turn for it in self.world.conversations for turn in it.own]
        person, where = self.pick(data, lambda it: any(map(having, it.turns)))
        near = [it for it in where.turns if having(it)]
        if data.draw(ONE_IN_EIGHT):
            near = every
        return person, where, data.draw(st.sampled_from(near or every), "turn")

    def pick_candidate(
        self, data: Any, having: Callable[[Turn], Any] = bool
    ) -> tuple[str, Conversation, Turn, Candidate]:
        person, where, turn = self.pick_turn(data, having)
        known = [it for it in turn.deck if it.id is not None]
        return person, where, turn, data.draw(st.sampled_from(known), "candidate")

    def tick(self) -> None:
        self.sound = False
        self.time.at += clock.SECOND
        self.world.now = self.time.at

    def act(
        self,
        change: Callable[[], Any],
        where: Conversation | None,
        person: str,
        method: str,
        path: str,
        **body: Any,
    ) -> None:
        """Change the model, ask the API the same, and compare."""
        self.tick()
        self.count += 1
        made, refused = None, None
        try:
            made = change()
        except Refused as error:
            refused = error
        answer = self.api.request(
            method,
            path,
            key=KEYS[person][0],
            headers={"Idempotency-Key": f"{self.home[-12:]}-{self.count}"},
            **({"json": body} if body else {}),
        )
        told = answer.json() if answer.content else None
        if refused is None:
            assert answer.status_code < 300, answer.text
        else:
            assert told is not None, refused
            same((answer.status_code, told["error"]["code"]), (refused.status, refused.code), path)
        if isinstance(made, Conversation):
            made.id, where = told["conversation"]["public_id"], made
        self.settle(where)

    def settle(self, where: Conversation | None) -> None:
        """Learn what is new, and look at what is cheap; at everything every few steps."""
        self.readings.learn()
        if where is not None and where in self.world.conversations:
            self.readings.quick(where)
        self.steps += 1
        if self.steps % EVERY == 0:
            self.agree()
        self.sound = True

    # Conversations

    @initialize(data=st.data(), defaults=st.tuples(LEVELS, LEVELS))
    def first(self, data: Any, defaults: tuple[str, str]) -> None:
        """Something is there already: two conversations, one with a question that was answered."""
        for person, default in zip(("member", "owner"), defaults, strict=True):
            self.create(person, default)
        for kind in ("message", "direct_reply"):
            where = self.world.conversations[-1]
            self.tell("owner", where, kind, "user", tools=True, steer=False)
        self.answer(data)

    @precondition(lambda self: len(self.living()) < 3)
    @rule(person=PEOPLE, default=LEVELS)
    def create(self, person: str, default: str) -> None:
        self.act(
            lambda: self.world.create(person, default),
            None,
            person,
            "POST",
            f"{self.readings.workspace}/conversations",
            conversation={"access": {"default": default}},
        )

    @rule(data=st.data(), what=st.sampled_from(["access", "archive"]))
    def govern(self, data: Any, what: str) -> None:
        """Say who may do what, or put into the archive, or take out again."""
        person, where = self.pick(data)
        if what == "archive":
            self.archive(person, where, where.archived == data.draw(ONE_IN_EIGHT))
            return
        default, level = data.draw(LEVELS, "default"), data.draw(st.none() | LEVELS, "level")
        self.set_access(person, where, default, level)

    def set_access(self, person: str, where: Conversation, default: str, level: str | None) -> None:
        other = "member" if where.creator == "owner" else "owner"
        entries = {} if level is None else {other: level}
        self.act(
            lambda: self.world.set_access(person, where, default, entries),
            where,
            person,
            "PUT",
            f"{self.readings.path(where)}/access",
            access={
                "default": default,
                "entries": [{"handle": who, "level": it} for who, it in entries.items()],
            },
        )

    def archive(self, person: str, where: Conversation, archived: bool) -> None:
        self.act(
            lambda: self.world.archive(person, where, archived),
            where,
            person,
            "POST",
            f"{self.readings.path(where)}/{'archive' if archived else 'unarchive'}",
        )

    @precondition(lambda self: len(self.living()) > 2)
    @rule(data=st.data())
    def delete(self, data: Any) -> None:
        person, where = self.pick(data)
        self.act(
            lambda: self.world.delete(person, where),
            where,
            person,
            "DELETE",
            self.readings.path(where),
        )

    @precondition(lambda self: self.has_turns() and len(self.living()) < 7)
    @rule(data=st.data(), named=st.booleans())
    def fork(self, data: Any, named: bool) -> None:
        person, where, turn, candidate = self.pick_candidate(data)
        chosen = candidate if named else None
        self.act(
            lambda: self.world.fork(person, where, turn, chosen),
            where,
            person,
            "POST",
            f"{self.readings.path(where)}/forks",
            fork={
                "turn_public_id": turn.id,
                **({"variant_public_id": candidate.id} if named else {}),
            },
        )

    @precondition(lambda self: sum(it.side for it in self.living()) < 2)
    @rule(data=st.data())
    def side(self, data: Any) -> None:
        person, where = self.pick(data, lambda it: not it.side)
        self.act(
            lambda: self.world.side(person, where),
            where,
            person,
            "POST",
            f"{self.readings.path(where)}/forks",
            fork={"side": True},
        )

    # What is said

    @rule(
        data=st.data(),
        kind=st.sampled_from(["message", "direct_reply", "direct_reply"]),
        role=st.sampled_from(["user", "user", "assistant", "system"]),
        tools=st.booleans(),
        steer=st.booleans(),
    )
    def say(self, data: Any, kind: str, role: str, tools: bool, steer: bool) -> None:
        self.tell(*self.pick(data), kind, role, tools=tools, steer=steer)

    @precondition(lambda self: any(map(hears, self.living())))
    @rule(data=st.data())
    def steer(self, data: Any) -> None:
        """Say something into a run that is answering."""
        self.tell(*self.pick(data, hears), "direct_reply", "user", tools=True, steer=True)

    def tell(
        self, person: str, where: Conversation, kind: str, role: str, *, tools: bool, steer: bool
    ) -> None:
        text = self.text()
        source = "run" if tools else "inference"
        asks = kind == "direct_reply"
        self.act(
            lambda: self.world.say(person, where, kind, role, text, source=source, steer=steer),
            where,
            person,
            "POST",
            f"{self.readings.path(where)}/inputs",
            input={
                "kind": kind,
                "text": text,
                **({} if asks else {"role": role}),
                **({"tool_names": []} if asks and tools else {}),
                **({"delivery_mode": "steer"} if asks and steer else {}),
            },
        )

    # How it is answered

    def working(self) -> list[tuple[Turn, Candidate]]:
        """What has no end yet, and what has one while its model call goes on."""
        return [
            (turn, it)
            for where in self.world.conversations
            for turn in where.own
            for it in turn.deck
            if it.id is not None and (not it.settled or it.asked)
        ]

    def has_work(self) -> bool:
        return bool(self.working())

    def has_turns(self) -> bool:
        return any(it.own for it in self.world.conversations)

    @precondition(has_work)
    @rule(data=st.data(), how=st.sampled_from(["begin", "ask", "hear", "miss", "lose"]))
    def work(self, data: Any, how: str) -> None:
        """One step of the engine's loop, or what keeps it from the next."""
        turn, it = data.draw(st.sampled_from(self.working()), "candidate")
        self.tick()
        database, candidate = self.api.database, it.id or ""
        if it.asked and how == "lose":
            del self.asked[it]
            answering.take_up(database, candidate)
            self.world.lose(turn, it)
        elif it.asked and (it.settled or how != "miss"):
            self.hear(data, turn, it)
        elif it.asked:
            answering.miss(database, candidate, self.asked[it])
            self.world.miss(it)
        elif it.calls:
            assert answering.call(database, candidate) == it.calls
            self.world.call(it)
        elif how == "begin":
            answering.take_up(database, candidate)
            self.world.begin(turn, it)
        else:
            self.ask(turn, it)
        self.settle(turn.owner)

    def ask(self, turn: Turn, it: Candidate) -> None:
        self.asked[it] = answering.ask(self.api.database, it.id or "")
        self.world.ask(turn, it)

    @precondition(has_work)
    @rule(data=st.data(), late=st.booleans())
    def fail(self, data: Any, late: bool) -> None:
        """No model answers a candidate, or not in time."""
        fit = [(turn, it) for turn, it in self.working() if not it.settled and not it.calls]
        if not fit:
            return
        turn, it = data.draw(st.sampled_from(fit), "candidate")
        self.tick()
        if not it.asked:
            self.ask(turn, it)
        answering.miss(self.api.database, it.id or "", self.asked[it])
        self.world.miss(it)
        answering.give_up(self.api.database, it.id or "", self.asked.pop(it), late=late)
        self.world.fail(turn, it, "timed_out" if late else "failed")
        self.settle(turn.owner)

    @precondition(has_work)
    @rule(data=st.data())
    def answer(self, data: Any) -> None:
        """Go on until the model has answered once more."""
        turn, it = data.draw(st.sampled_from(self.working()), "candidate")
        self.tick()
        if not it.asked and it.calls:
            answering.call(self.api.database, it.id or "")
            self.world.call(it)
        if not it.asked:
            self.ask(turn, it)
        self.hear(data, turn, it)
        self.settle(turn.owner)

    def hear(self, data: Any, turn: Turn, it: Candidate) -> None:
        text = self.text()
        thought = data.draw(st.sampled_from([f"I think of {text}", "", "  "]), "thought")
        calls = data.draw(st.integers(0, 2), "calls") if it.source == "run" else 0
        asked = self.asked.pop(it)
        answering.hear(self.api.database, it.id or "", asked, text, thought, calls)
        self.world.hear(turn, it, text, thought, calls)

    @precondition(has_work)
    @rule(data=st.data())
    def cancel(self, data: Any) -> None:
        person, where = self.pick(
            data, lambda it: any(True for turn in it.own for _ in turn.working)
        )
        self.act(
            lambda: self.world.cancel(person, where),
            where,
            person,
            "POST",
            f"{self.readings.path(where)}/cancellation",
        )

    def runs(self) -> list[tuple[Turn, Candidate]]:
        return [
            (turn, it)
            for where in self.world.conversations
            for turn in where.own
            for it in turn.deck
            if it.begun and it.source == "run"
        ]

    @precondition(lambda self: bool(self.runs()))
    @rule(data=st.data())
    def stop(self, data: Any) -> None:
        turn, it = data.draw(st.sampled_from(self.runs()), "run")
        person = data.draw(st.sampled_from([turn.owner.creator, "owner", "member"]), "person")
        self.act_on_run(lambda: self.world.stop(person, turn, it), person, turn, it, "cancellation")

    @some(may_be_retried)
    @rule(data=st.data())
    def retry(self, data: Any) -> None:
        """Take up a run that failed; one in eight is any."""
        fit = [(t, it) for t, it in self.runs() if may_be_retried(t) and t.active is it]
        if data.draw(ONE_IN_EIGHT):
            fit = self.runs()
        turn, it = data.draw(st.sampled_from(fit or self.runs()), "run")
        person = data.draw(st.sampled_from([turn.owner.creator, "owner", "member"]), "person")
        self.act_on_run(lambda: self.world.retry(person, turn, it), person, turn, it, "retry")

    def act_on_run(
        self, change: Callable[[], Any], person: str, turn: Turn, it: Candidate, verb: str
    ) -> None:
        run = answering.run_id(self.api.database, it.id or "")
        path = f"{self.readings.workspace}/runs/{run}/{verb}"
        self.act(change, turn.owner, person, "POST", path)

    # Turns and candidates

    @precondition(has_turns)
    @rule(
        data=st.data(),
        visibility=st.none() | VISIBILITIES,
        concealed=st.none() | st.booleans(),
    )
    def view(self, data: Any, visibility: str | None, concealed: bool | None) -> None:
        person, where, turn = self.pick_turn(data)
        state = {"visibility": visibility, "concealed": concealed}
        given = {name: it for name, it in state.items() if it is not None} or {"concealed": False}
        self.act(
            lambda: self.world.view(
                person, where, turn, given.get("visibility"), given.get("concealed")
            ),  # type: ignore[arg-type]
            where,
            person,
            "PATCH",
            self.readings.turn(where, turn),
            turn=given,
        )

    @some(has_choice)
    @rule(data=st.data(), concealed=st.booleans())
    def conceal(self, data: Any, concealed: bool) -> None:
        person, where, turn, candidate = self.pick_candidate(data, has_choice)
        self.act(
            lambda: self.world.conceal(person, where, turn, candidate, concealed),
            where,
            person,
            "PATCH",
            self.readings.variant(where, turn, candidate),
            variant={"concealed": concealed},
        )

    @some(has_choice)
    @rule(data=st.data())
    def activate(self, data: Any) -> None:
        person, where, turn, candidate = self.pick_candidate(data, has_choice)
        self.act(
            lambda: self.world.activate(person, where, turn, candidate),
            where,
            person,
            "POST",
            f"{self.readings.variant(where, turn, candidate)}/activation",
        )

    @some(is_newest)
    @rule(data=st.data())
    def edit(self, data: Any) -> None:
        person, where, turn = self.pick_turn(data, is_newest)
        text = self.text()
        self.act(
            lambda: self.world.edit(person, where, turn, text),
            where,
            person,
            "POST",
            f"{self.readings.turn(where, turn)}/edit",
            edit={"text": text},
        )

    @some(was_asked)
    @rule(data=st.data())
    def regenerate(self, data: Any) -> None:
        person, where, turn = self.pick_turn(data, was_asked)
        self.act(
            lambda: self.world.regenerate(person, where, turn),
            where,
            person,
            "POST",
            f"{self.readings.turn(where, turn)}/regeneration",
            regeneration={},
        )

    @some(is_newest)
    @rule(data=st.data())
    def erase(self, data: Any) -> None:
        person, where, turn = self.pick_turn(data, is_newest)
        self.act(
            lambda: self.world.erase(person, where, turn),
            where,
            person,
            "DELETE",
            self.readings.turn(where, turn),
        )

    # What is forgotten

    @precondition(has_turns)
    @rule(wait=st.sampled_from([0, 1, 31]), days=st.sampled_from([None, 0, 0, 1, 30]))
    def later(self, wait: int, days: int | None) -> None:
        """Time passes; details that are so many days old are pruned, or only what was deleted."""
        self.time.at += wait * clock.DAY
        self.tick()
        if days is None:
            reap.reap(self.api.database)
            self.world.reap()
        else:
            prune.prune(self.api.database, days, rewrite=False)
            self.world.prune(days)
        self.settle(None)

    # All readings

    def agree(self) -> None:
        self.readings.everything()
        same(integrity.check(self.api.database), [], "what is wrong")

    def teardown(self) -> None:
        try:
            if self.sound:
                self.agree()
        finally:
            self.api.close()
            self.api.database.close()
