"""Conversations as agent-api.md 2, 3, 5 and 6 have them, as plain values in memory.

What is shared is one object, what a conversation sees for itself is a dictionary of its own, what
is gone is in no list any more. Each verb refuses as the API does (`Refused`) or changes the values.
What they show is said in `plain_readings`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

UNSETTLED = ("pending", "running")
DAY = 86_400 * 1_000_000
#: How a turn's status reads in the message feed.
WORDS = {"completed": "exit", "failed": "error", "timed_out": "error", "canceled": "cancelled"}


class Refused(Exception):
    """What the API answers instead."""

    def __init__(self, status: int, code: str) -> None:
        super().__init__(f"{status} {code}")
        self.status, self.code = status, code


NOT_FOUND = (404, "not_found")
NOT_AUTHORIZED = (403, "not_authorized")


class Brief:
    """What hypothesis tells by its short name, not by all that hangs on it."""

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))


@dataclass(eq=False)
class Thought:
    """A model call as the reasoning page lists it; without text there is nothing to display."""

    key: str | None
    text: str | None = None


@dataclass(eq=False, repr=False)
class Candidate(Brief):
    """One answer of a turn. `begun`: somebody works on it, a `run` in rounds. `asked`: a model call
    is under way. `calls`: of tools, that wait. `aged_at`: when its details began to age."""

    source: str
    prompt: str | None = None
    content: str | None = None
    status: str = "completed"
    origin: Candidate | None = None
    thoughts: list[Thought] = field(default_factory=list)
    steers: list[str] = field(default_factory=list)
    begun: bool = False
    asked: bool = False
    missed: bool = False
    calls: int = 0
    aged_at: int | None = None
    concealed: bool = False
    pruned: bool = False
    id: str | None = None

    def __repr__(self) -> str:
        return f"<{self.source} {self.status}>"

    @property
    def settled(self) -> bool:
        return self.status not in UNSETTLED


@dataclass(eq=False, repr=False)
class Turn(Brief):
    """A slot. It stands as the candidate does that it shows."""

    owner: Conversation
    position: int
    kind: str
    role: str
    deck: list[Candidate]
    active: Candidate
    id: str | None = None

    def __repr__(self) -> str:
        return f"<{self.kind} at {self.position} of {self.owner}: {self.deck}>"

    @property
    def working(self) -> Iterator[Candidate]:
        return (it for it in self.deck if not it.settled)


@dataclass(frozen=True)
class Look:
    """How a turn looks from one conversation."""

    visibility: str = "visible"
    concealed: bool = False

    @property
    def veiled(self) -> bool:
        return self.concealed or self.visibility == "hidden"


@dataclass(eq=False)
class Row:
    """A row of the feed: what opened a turn, a steer (with its text), or the reply."""

    kind: str
    role: str
    turn: Turn
    text: str | None = None
    status: str | None = None
    id: str | None = None


@dataclass(eq=False)
class Step:
    """A step of the trajectory: what opened a turn (`prompt`), a `steer`, or a model's answer
    (`agent`), which is there once it is `done`."""

    part: str
    turn: Turn
    candidate: Candidate
    text: str | None = None
    done: bool = True


@dataclass(eq=False)
class Input:
    """What waits in the queue, or to steer the turn that is being answered."""

    kind: str
    role: str
    text: str
    source: str
    steers: bool


@dataclass(eq=False, repr=False)
class Conversation(Brief):
    """`lineage`: whose turns it shows up to which position, the oldest ancestor first.

    `veiled` are the turns that once were hidden or concealed here, `untold` the receipts of calls
    of which nobody knows what they took.
    """

    creator: str
    default: str = "full"
    entries: dict[str, str] = field(default_factory=dict)
    side: bool = False
    lineage: list[tuple[Conversation, int]] = field(default_factory=list)
    source: Conversation | None = None
    source_turn: Turn | None = None
    source_variant: Candidate | None = None
    own: list[Turn] = field(default_factory=list)
    looks: dict[Turn, Look] = field(default_factory=dict)
    veiled: set[Turn] = field(default_factory=set)
    feed: list[Row] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    inputs: list[Input] = field(default_factory=list)
    receipts: int = 0
    untold: int = 0
    archived: bool = False
    deleted_at: int | None = None
    id: str | None = None

    def __repr__(self) -> str:
        return f"<{'side' if self.side else 'conversation'} {(self.id or '')[-4:]}>"

    @property
    def turns(self) -> list[Turn]:
        """Inherited and own turns in order, concealed ones too."""
        shown = [t for owner, last in self.lineage for t in owner.own if t.position <= last]
        return sorted([*shown, *self.own], key=lambda turn: turn.position)

    @property
    def answering(self) -> Turn | None:
        return next((t for t in self.own if not t.active.settled), None)

    @property
    def next_position(self) -> int:
        if self.own:
            return self.own[-1].position + 1
        return self.lineage[-1][1] + 1 if self.lineage else 0

    def look(self, turn: Turn) -> Look:
        return self.looks.get(turn, Look())

    def see(self, turn: Turn, look: Look) -> None:
        self.looks[turn] = look
        if look.veiled:
            self.veiled.add(turn)

    def level(self, person: str) -> str:
        return "full" if person == self.creator else self.entries.get(person, self.default)


@dataclass
class World:
    """Every conversation that was made and is not gone for good."""

    now: int
    conversations: list[Conversation] = field(default_factory=list)

    # Who may do what (1.3, 2)

    def seen(self, person: str, where: Conversation) -> None:
        if where.deleted_at is not None or where.level(person) == "none":
            raise Refused(*NOT_FOUND)

    def full(self, person: str, where: Conversation) -> None:
        self.seen(person, where)
        if where.level(person) != "full":
            raise Refused(*NOT_AUTHORIZED)

    def there(self, person: str, where: Conversation, turn: Turn) -> None:
        """A turn that the conversation shows; who may change it finds concealed ones too."""
        self.seen(person, where)
        if turn not in where.turns or where.look(turn).concealed:
            raise Refused(*NOT_FOUND)

    def mine(self, person: str, where: Conversation, turn: Turn) -> None:
        self.full(person, where)
        if turn not in where.own:
            raise Refused(*NOT_AUTHORIZED)

    def open(self, where: Conversation) -> None:
        if where.archived:
            raise Refused(409, "conversation_archived")

    # Conversations (3.1)

    def create(self, person: str, default: str) -> Conversation:
        self.conversations.append(Conversation(person, default))
        return self.conversations[-1]

    def set_access(
        self, person: str, where: Conversation, default: str, entries: dict[str, str]
    ) -> None:
        self.full(person, where)
        where.default, where.entries = default, entries

    def archive(self, person: str, where: Conversation, archived: bool) -> None:
        self.full(person, where)
        if where.side:
            raise Refused(422, "side_conversation")
        where.archived = archived

    def delete(self, person: str, where: Conversation) -> None:
        self.full(person, where)
        if any(True for turn in where.own for _ in turn.working):
            raise Refused(409, "conversation_busy")
        where.deleted_at = self.now
        if where.side:
            self.conversations.remove(where)

    def fork(
        self, person: str, source: Conversation, turn: Turn, named: Candidate | None = None
    ) -> Conversation:
        self.full(person, source)
        self.there(person, source, turn)
        if source.side:
            raise Refused(422, "side_of_side")
        adopted = named or turn.active
        if adopted.concealed:
            raise Refused(*NOT_FOUND)
        if not adopted.settled:
            raise Refused(409, "variant_not_forkable")
        made = self._child(person, source, turn.position - 1)
        made.source_turn, made.source_variant = turn, adopted
        thoughts = [] if adopted.source == "run" else adopted.thoughts
        self._adopt(
            made,
            turn,
            source.look(turn).visibility,
            Candidate(
                "fork",
                adopted.prompt,
                adopted.content,
                adopted.status,
                adopted,
                [] if adopted.pruned else [Thought(None, it.text) for it in thoughts if it.text],
                list(adopted.steers),
                aged_at=self.now,
                pruned=adopted.pruned,
            ),
        )
        return made

    def side(self, person: str, source: Conversation) -> Conversation:
        self.full(person, source)
        if source.side:
            raise Refused(422, "side_of_side")
        running = source.answering
        last = source.next_position - 1 if running is None else running.position - 1
        made = self._child(person, source, last)
        made.side = True
        made.source_turn = running or (source.own[-1] if source.own else None)
        if running is not None:
            shown = running.active
            made.source_variant = shown
            said = [it.text for it in source.steps if it.candidate is shown and it.part == "agent"]
            content = "\n\n".join(text for text in said if text) or None
            copy = Candidate("fork", shown.prompt, content, origin=shown, steers=list(shown.steers))
            self._adopt(made, running, source.look(running).visibility, copy)
        return made

    def _child(self, person: str, source: Conversation, last: int) -> Conversation:
        """It shows what its source does up to a position, and as its source does."""
        lineage = [*((owner, min(end, last)) for owner, end in source.lineage), (source, last)]
        entries = {**source.entries, source.creator: "full"}
        entries.pop(person, None)
        made = Conversation(person, source.default, entries, lineage=lineage, source=source)
        for turn, look in source.looks.items():
            if turn.position <= last:
                made.see(turn, look)
        self.conversations.append(made)
        return made

    def _adopt(self, made: Conversation, point: Turn, visibility: str, copy: Candidate) -> None:
        own = Turn(made, point.position, point.kind, point.role, [copy], copy)
        made.own.append(own)
        made.see(own, Look(visibility))
        if own.kind == "message" or copy.prompt is not None:
            self._place(made, own)
        if own.kind == "direct_reply":
            for text in copy.steers:
                made.steps.append(Step("steer", own, copy, text))
                made.feed.append(Row("message", "user", own, text))
            made.steps.append(Step("agent", own, copy))
            self._reply(own)

    # What is said (3.2)

    def say(
        self, person: str, where: Conversation, kind: str, role: str, text: str, *,
        source: str, steer: bool,
    ) -> None:  # fmt: skip
        self.full(person, where)
        self.open(where)
        running = where.answering
        wanted = steer and kind == "direct_reply"
        taken = wanted and running is not None and running.active.source == "run"
        where.inputs.append(Input(kind, role, text, source, taken))
        self._advance(where)

    def _advance(self, where: Conversation) -> None:
        """First in, first out, as long as nothing is being answered."""
        if where.answering is not None:
            return
        for waiting in where.inputs:
            waiting.steers = False
        while where.inputs and where.answering is None:
            head = where.inputs.pop(0)
            if head.kind == "message":
                said, role = Candidate("manual", content=head.text), head.role
            else:
                said, role = Candidate(head.source, head.text, status="pending"), "assistant"
            made = Turn(where, where.next_position, head.kind, role, [said], said)
            where.own.append(made)
            self._place(where, made)

    def _place(self, where: Conversation, turn: Turn) -> None:
        """What opens a turn has a row of the feed and a step; a system message a step only."""
        role = "user" if turn.kind == "direct_reply" else turn.role
        part = {"user": "prompt", "assistant": "agent"}.get(role, "system")
        where.steps.append(Step(part, turn, turn.active))
        if part != "system":
            first = turn.position == 0 and role == "user"
            where.feed.append(Row("prompt" if first else "message", role, turn))

    # How it is answered (4)

    def begin(self, turn: Turn, candidate: Candidate) -> None:
        candidate.status, candidate.begun = "running", True

    def ask(self, turn: Turn, candidate: Candidate) -> None:
        """A model is asked: for a round of its own, or again where there was no answer."""
        where = turn.owner
        self.begin(turn, candidate)
        candidate.asked = True
        if candidate.missed:
            candidate.missed = False
            return
        if candidate.source == "run":
            self._steer(turn, candidate)
        key = f"r{len(candidate.thoughts) + 1}" if candidate.source == "run" else None
        candidate.thoughts.append(Thought(key))
        where.steps.append(Step("agent", turn, candidate, done=False))

    def _steer(self, turn: Turn, candidate: Candidate) -> bool:
        where = turn.owner
        taken = [it for it in where.inputs if it.steers and turn.active is candidate]
        for it in taken:
            where.inputs.remove(it)
            candidate.steers.append(it.text)
            where.steps.append(Step("steer", turn, candidate, it.text))
            where.feed.append(Row("message", "user", turn, it.text))
        return bool(taken)

    def hear(self, turn: Turn, candidate: Candidate, text: str, thought: str, calls: int) -> None:
        """The model answers. Too late, the answer is not kept; it was billed all the same."""
        candidate.asked = False
        turn.owner.receipts += 1
        if candidate.settled:
            return
        candidate.thoughts[-1].text = thought or None
        round = [s for s in turn.owner.steps if s.candidate is candidate and s.part == "agent"][-1]
        round.text, round.done = text, True
        candidate.calls = calls
        if candidate.source == "run" and (calls or self._steer(turn, candidate)):
            return
        self._deliver(turn, candidate, text)

    def call(self, candidate: Candidate) -> None:
        candidate.calls = 0

    def miss(self, candidate: Candidate) -> None:
        candidate.asked, candidate.missed, candidate.aged_at = False, True, self.now

    def lose(self, turn: Turn, candidate: Candidate) -> None:
        """Whoever asked is gone, and another takes up: nobody knows what that call took."""
        candidate.asked = False
        if not candidate.settled:
            candidate.missed, candidate.aged_at = True, self.now
        if not candidate.pruned:
            turn.owner.receipts += 1
            turn.owner.untold += 1

    def _deliver(self, turn: Turn, candidate: Candidate, text: str) -> None:
        candidate.status, candidate.content, candidate.aged_at = "completed", text, self.now
        turn.active = candidate
        self._reply(turn)
        self._advance(turn.owner)

    def fail(self, turn: Turn, candidate: Candidate, status: str) -> None:
        """It ends without an answer; the turn follows if it shows it."""
        candidate.status, candidate.calls = status, 0
        if candidate.source == "run" or candidate.asked:
            candidate.aged_at = self.now
        if turn.active is candidate:
            self._reply(turn)
        self._advance(turn.owner)

    def _reply(self, turn: Turn) -> None:
        """A reply that is decided again moves behind everything else."""
        rows = turn.owner.feed
        known = next((it for it in rows if it.turn is turn and it.kind == "reply"), None)
        if known is None:
            known = Row("reply", "assistant", turn)
        else:
            rows.remove(known)
        known.status = WORDS[turn.active.status]
        rows.append(known)

    def cancel(self, person: str, where: Conversation) -> None:
        self.full(person, where)
        live = [turn for turn in where.own if any(True for _ in turn.working)]
        if not live:
            raise Refused(422, "not_running")
        for turn in live:
            for candidate in list(turn.working):
                self.fail(turn, candidate, "canceled")

    def _run(self, person: str, turn: Turn, candidate: Candidate) -> Conversation:
        where = turn.owner
        self.there(person, where, turn)
        if candidate.concealed:
            raise Refused(*NOT_FOUND)
        self.full(person, where)
        if candidate.pruned:
            raise Refused(410, "execution_details_pruned")
        return where

    def stop(self, person: str, turn: Turn, candidate: Candidate) -> None:
        self._run(person, turn, candidate)
        if candidate.settled:
            raise Refused(409, "run_settled")
        self.fail(turn, candidate, "canceled")

    def retry(self, person: str, turn: Turn, candidate: Candidate) -> None:
        """A run that failed is taken up at the round that gave no answer."""
        where = self._run(person, turn, candidate)
        self.open(where)
        if not candidate.settled:
            raise Refused(409, "not_terminal")
        if candidate.status not in ("failed", "timed_out"):
            raise Refused(409, "run_settled")
        self._quiet(where, turn)
        candidate.status, candidate.aged_at = "pending", None

    # Turns and candidates (3.3)

    def view(
        self, person: str, where: Conversation, turn: Turn,
        visibility: str | None, concealed: bool | None,
    ) -> None:  # fmt: skip
        """For an inherited turn, this conversation only sees it so."""
        self.seen(person, where)
        if where.level(person) != "full":
            self.there(person, where, turn)
        self.full(person, where)
        if turn not in where.turns:
            raise Refused(*NOT_FOUND)
        look = where.look(turn)
        apex = where.own[-1:] == [turn] and not self.pinned(turn)
        if concealed and not look.concealed and apex:
            raise Refused(409, "apex_never_conceals")
        if visibility is not None:
            look = replace(look, visibility=visibility)
        if concealed is not None:
            look = replace(look, concealed=concealed)
        where.see(turn, look)

    def pinned(self, turn: Turn) -> bool:
        """Whether a fork that is there shows it."""
        return any(
            owner is turn.owner and turn.position <= last
            for it in self.conversations
            if it.deleted_at is None
            for owner, last in it.lineage
        )

    def conceal(
        self, person: str, where: Conversation, turn: Turn, candidate: Candidate, concealed: bool
    ) -> None:
        """A candidate is one row for all who see it."""
        self.there(person, where, turn)
        own = where.level(person) == "full" and turn in where.own
        if candidate.concealed and not own:
            raise Refused(*NOT_FOUND)
        self.mine(person, where, turn)
        if concealed and turn.active is candidate:
            raise Refused(409, "variant_active")
        if concealed and not candidate.settled:
            raise Refused(409, "run_live")
        candidate.concealed = concealed

    def activate(self, person: str, where: Conversation, turn: Turn, candidate: Candidate) -> None:
        self.there(person, where, turn)
        if candidate.concealed:
            raise Refused(*NOT_FOUND)
        self.mine(person, where, turn)
        self.open(where)
        if not candidate.settled:
            raise Refused(409, "variant_not_active")
        replaced = turn.active
        if replaced is candidate:
            return
        turn.active = candidate
        if not replaced.settled:
            self.fail(turn, replaced, "canceled")
        if turn.kind == "direct_reply":
            self._reply(turn)

    def _quiet(self, where: Conversation, turn: Turn) -> None:
        if any(True for _ in turn.working):
            raise Refused(409, "run_live")
        if where.answering is not None:
            raise Refused(409, "conversation_busy")
        if where.own[-1] is not turn:
            raise Refused(409, "branch_required")

    def edit(self, person: str, where: Conversation, turn: Turn, text: str) -> None:
        """Put a text in the place of what the newest turn says."""
        self.there(person, where, turn)
        self.mine(person, where, turn)
        self.open(where)
        self._quiet(where, turn)
        before = turn.active
        steers = list(before.steers)
        made = Candidate("edit", before.prompt, text, origin=before, steers=steers)
        turn.deck.append(made)
        turn.active = made
        role = "user" if turn.kind == "direct_reply" else turn.role
        part = {"user": "prompt", "assistant": "agent"}.get(role, "system")
        if turn.kind == "message":
            where.steps.append(Step(part, turn, made))
            return
        if made.prompt is not None:
            where.steps.append(Step("prompt", turn, made))
        where.steps += [Step("steer", turn, made, it) for it in steers]
        where.steps.append(Step("agent", turn, made))
        self._reply(turn)

    def regenerate(self, person: str, where: Conversation, turn: Turn) -> None:
        """The answer that is shown stays until the new one is there."""
        self.there(person, where, turn)
        self.mine(person, where, turn)
        self.open(where)
        if turn.active.prompt is None:
            raise Refused(409, "unsupported_turn_type")
        if turn.active.pruned or turn.deck[0].pruned:
            raise Refused(409, "execution_details_pruned")
        self._quiet(where, turn)
        asked = [it for it in turn.deck if it.source in ("run", "inference") and not it.concealed]
        like = turn.active if turn.active in asked else (asked[-1] if asked else None)
        source = "run" if like is None else like.source
        made = Candidate(source, turn.active.prompt, status="pending")
        turn.deck.append(made)
        where.steps.append(Step("prompt", turn, made))

    def erase(self, person: str, where: Conversation, turn: Turn) -> None:
        """Delete the newest turn for good. What it cost stays in the account."""
        self.seen(person, where)
        if where.level(person) != "full":
            self.there(person, where, turn)
        if turn not in where.turns:
            raise Refused(*NOT_FOUND)
        self.mine(person, where, turn)
        self.open(where)
        if where.own[-1] is not turn:
            raise Refused(409, "apex_only")
        if self.pinned(turn):
            raise Refused(409, "descendant_pinned")
        if any(True for _ in turn.working):
            raise Refused(409, "run_live")
        self._remove(turn)

    def _remove(self, turn: Turn) -> None:
        where = turn.owner
        where.own.remove(turn)
        where.feed = [row for row in where.feed if row.turn is not turn]
        where.steps = [step for step in where.steps if step.turn is not turn]
        for it in self.conversations:
            it.looks.pop(turn, None)
            if it.source_turn is turn:
                it.source_turn = it.source_variant = None
            for copy in [c for own in it.own for c in own.deck if c.origin in turn.deck]:
                copy.origin = None

    # What is forgotten (2, 6)

    def prune(self, days: int) -> None:
        """Each candidate ages alone; a copy that a fork adopted goes with its original."""
        self.reap()
        cutoff = self.now - days * DAY
        every = [(turn, it) for c in self.conversations for turn in c.own for it in turn.deck]
        for turn, it in every:
            if self._is_due(turn, it, cutoff):
                it.pruned = True
        for _, it in every:
            if it.origin is not None and it.origin.pruned and it.thoughts:
                it.pruned = True

    def _is_due(self, turn: Turn, it: Candidate, cutoff: int) -> bool:
        if it.pruned or not it.settled or it.aged_at is None or it.aged_at > cutoff:
            return False
        if it.asked and it.aged_at > self.now - DAY:
            return False  # its model call has not said yet what it took
        has_details = it.begun if it.source == "run" else bool(it.thoughts)
        return has_details and not any(
            self._prepares(own)
            for reader in self.conversations
            if turn in reader.turns
            for own in reader.own
        )

    def _prepares(self, turn: Turn) -> bool:
        """What has not asked its model yet may still read all that was before it."""
        return any(it.source in ("run", "inference") and not it.thoughts for it in turn.working)

    def reap(self) -> None:
        """What was deleted 30 days ago goes as far as no fork reads it, the newest first."""
        cutoff = self.now - 30 * DAY

        def is_due(it: Conversation) -> bool:
            return it.deleted_at is not None and it.deleted_at <= cutoff

        for it in [c for c in reversed(self.conversations) if is_due(c)]:
            forks = [c for c in self.conversations if any(o is it for o, _ in c.lineage)]
            read = [last for c in forks if not is_due(c) for o, last in c.lineage if o is it]
            for turn in [t for t in it.own if t.position > max(read, default=-1)]:
                self._remove(turn)
            if not forks:
                self.conversations.remove(it)
