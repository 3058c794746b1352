"""Every reading of the API, held against what the plain model shows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from model import plain_readings as plain
from model.plain_model import Candidate, Conversation, Look, Turn, World
from model.shapes import same, told_hit, told_item, told_turn, told_variant, turn_of, variant_of
from serving import Api

#: Of a person: the names of their keys to the Agent API and to v3.
KEYS = {
    "owner": ("member", "api"),
    "member": ("member:member", "api:member"),
    "stranger": ("member:stranger", "api:stranger"),
}
NOWHERE = "00000000-0000-7000-8000-000000000000"


@dataclass
class Reader:
    """Somebody who polls the feed of a conversation with `end_cursor`."""

    end: str | None = None
    cursor: int = 0
    seen: set[str] = field(default_factory=set)


@dataclass
class Readings:
    """The API as two people read it. `word` is in every text of the model."""

    api: Api
    world: World
    workspace: str
    word: str
    readers: dict[Conversation, Reader] = field(default_factory=dict)
    receipts: dict[Conversation, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.nothing = self.api.get(f"{self.workspace}/conversations/{NOWHERE}").content

    # Asking

    def path(self, where: Conversation) -> str:
        return f"{self.workspace}/conversations/{where.id}"

    def turn(self, where: Conversation, turn: Turn) -> str:
        return f"{self.path(where)}/turns/{turn.id}"

    def variant(self, where: Conversation, turn: Turn, candidate: Candidate) -> str:
        return f"{self.turn(where, turn)}/variants/{candidate.id}"

    def get(self, person: str, path: str, **query: Any) -> tuple[int, Any]:
        """Return status and body; nobody learns from a 404 what there is not."""
        key = KEYS[person][path.startswith("/v3")]
        answer = self.api.get(path, params=query, key=key)
        if answer.status_code == 404 and not path.startswith("/v3"):
            assert answer.content == self.nothing, (path, answer.text)
        return answer.status_code, answer.json()

    def found(self, person: str, path: str, **query: Any) -> Any:
        status, body = self.get(person, path, **query)
        assert status == 200, (person, path, query, status, body)
        return body

    # Comparing

    def learn(self) -> None:
        """Give what the model made the ids that the API gave it, by their places."""
        for where in self.world.conversations:
            if where.deleted_at is not None:
                continue
            new = [t for t in where.own if t.id is None or any(v.id is None for v in t.deck)]
            if not new:
                continue
            path = f"{self.path(where)}/turns"
            query = {"after_position": new[0].position - 1} if new[0].position else {}
            known = {
                it["position"]: it["public_id"]
                for it in self.found(
                    where.creator, path, include_hidden="true", limit=100, **query
                )["turns"]
            }
            for turn in new:
                turn.id = turn.id or known[turn.position]
                if not where.look(turn).concealed:
                    self._learn_deck(where, turn)

    def _learn_deck(self, where: Conversation, turn: Turn) -> None:
        listed = self.found(where.creator, f"{self.turn(where, turn)}/variants")["variants"]
        for candidate, it in zip(plain.deck(turn), listed, strict=True):
            candidate.id = candidate.id or it["public_id"]

    def quick(self, where: Conversation) -> None:
        """What is cheap: the timeline, and the poll of a feed."""
        if where.deleted_at is None:
            self._timeline(where.creator, where)
            self.poll(where)

    def everything(self) -> None:
        """All readings of all conversations by all people."""
        for where in self.world.conversations:
            for person in ("owner", "member", "stranger"):
                level = "none" if person == "stranger" else where.level(person)
                if where.deleted_at is not None or level == "none":
                    self._nothing(person, where)
                else:
                    self.conversation(person, where)
            if where.deleted_at is None:
                self.session(where)
        for person in ("owner", "member"):
            self.lists(person)
            self.search(person)

    def conversation(self, person: str, where: Conversation) -> None:
        """Read all of one conversation in the Agent API."""
        self._document(person, where)
        self._timeline(person, where)
        self._windows(person, where)
        self._history(person, where)
        self._events(person, where)
        for turn in where.turns:
            self._turn(person, where, turn, where.look(turn))
        for other in self.world.conversations:
            for turn in other.own[-1:]:
                if turn not in where.turns:
                    self._elsewhere(person, where, turn)

    def _nothing(self, person: str, where: Conversation) -> None:
        path = self.path(where)
        for under in ("", "/turns", "/events", "/history", "/inputs"):
            assert self.get(person, path + under)[0] == 404
        for turn in where.turns:
            self._elsewhere(person, where, turn)
        tried = self.get(person, f"{Api.v3}/sessions/{where.id}/conversation")[0]
        admin = person == "owner" and where.deleted_at is None
        assert tried == (200 if admin else 404)

    def _document(self, person: str, where: Conversation) -> None:
        it = self.found(person, self.path(where))["conversation"]
        source, turn, variant = where.source, where.source_turn, where.source_variant
        running = where.answering
        usage = it["usage_summary"]
        told = {
            "side": it["side"],
            "archived": it["archived_at"] is not None,
            "active turn": it["active_turn_public_id"],
            "source": it["source_conversation_public_id"],
            "forked from turn": it["forked_from_turn_public_id"],
            "forked from variant": it["forked_from_variant_public_id"],
            "default": it["access"]["default"],
            "entries": {one["handle"]: one["level"] for one in it["access"]["entries"]},
            "requests": usage["request_count"],
            "tokens": usage["total_tokens"],
        }
        expected = {
            "side": where.side,
            "archived": where.archived,
            "active turn": running and running.id,
            "source": source and source.id,
            "forked from turn": turn and turn.id,
            "forked from variant": variant and variant.id,
            "default": where.default,
            "entries": where.entries,
            "requests": where.receipts,
            "tokens": 12 * (where.receipts - where.untold),
        }
        same(told, expected, where)
        assert where.receipts >= self.receipts.get(where, 0)
        self.receipts[where] = where.receipts

    def _timeline(self, person: str, where: Conversation) -> None:
        path = f"{self.path(where)}/turns"
        for hidden in (False, True):
            shown = plain.timeline(where, hidden=hidden)
            told = self.found(person, path, limit=100, include_hidden=str(hidden).lower())["turns"]
            same(
                [told_turn(it) for it in told],
                [turn_of(where, turn, look) for turn, look in shown],
                where,
            )

    def _windows(self, person: str, where: Conversation) -> None:
        """Pages of two, forward from the oldest and backward from behind the newest."""
        shown = [turn.id for turn, _ in plain.timeline(where, hidden=False)]
        forward = self._pages(person, where, "after_position", {})
        same([it for page in forward for it in page], shown, where)
        last = {"before_position": where.next_position}
        backward = [*self._pages(person, where, "before_position", last)][::-1]
        same([it for page in backward for it in page], shown, where)

    def _pages(
        self, person: str, where: Conversation, by: str, query: dict[str, Any]
    ) -> Iterator[list[str]]:
        while True:
            page = self.found(person, f"{self.path(where)}/turns", limit=2, **query)
            if not page["turns"]:
                return
            yield [it["public_id"] for it in page["turns"]]
            query = {by: page["pagination"][by]}

    def _elsewhere(self, person: str, where: Conversation, turn: Turn) -> None:
        """A turn that this conversation does not show."""
        for path in (
            self.turn(where, turn),
            f"{self.turn(where, turn)}/variants",
            f"{self.variant(where, turn, turn.active)}/reasoning",
        ):
            assert self.get(person, path, include_hidden="true")[0] == 404, path

    def _turn(self, person: str, where: Conversation, turn: Turn, look: Look) -> None:
        """A turn that is the conversation's own or inherited, concealed or not."""
        path = self.turn(where, turn)
        for hidden in (False, True):
            status, body = self.get(person, path, include_hidden=str(hidden).lower())
            gone = look.concealed or (look.veiled and not hidden)
            assert status == (404 if gone else 200), (path, hidden)
            if status == 200:
                same(told_turn(body["turn"]), turn_of(where, turn, look), path)
        status, body = self.get(person, f"{path}/variants")
        assert status == (404 if look.concealed else 200), path
        if status == 200:
            same(body["turn"], {"public_id": turn.id, "inherited": turn not in where.own}, path)
            same(
                [told_variant(it, active=it["active"]) for it in body["variants"]],
                [variant_of(it, active=it is turn.active) for it in plain.deck(turn)],
                path,
            )
            if turn in where.own:
                for candidate, it in zip(plain.deck(turn), body["variants"], strict=True):
                    if "run_public_id" in it:
                        self._run(person, candidate, it["run_public_id"])
        for candidate in turn.deck:
            if candidate.id is not None:
                self._reasoning(person, where, turn, candidate)

    def _run(self, person: str, candidate: Candidate, run: str) -> None:
        """The run of a candidate that the conversation has itself."""
        path = f"{self.workspace}/runs/{run}"
        status, body = self.get(person, f"{path}/transcript", limit=100)
        assert status == (410 if candidate.pruned else 200), path
        if status == 200:
            keys = [thought.key for thought in candidate.thoughts]
            same([it["task_key"] for it in body["rounds"]], keys, path)
        overview = self.found(person, path)["run"]
        assert ("details_pruned_at" in overview) == candidate.pruned, path
        assert (not overview["tasks"]) == (candidate.pruned or not candidate.thoughts), path

    def _reasoning(
        self, person: str, where: Conversation, turn: Turn, candidate: Candidate
    ) -> None:
        path = f"{self.variant(where, turn, candidate)}/reasoning"
        expected = plain.reasoning(where, turn, candidate)
        if isinstance(expected, int):
            assert self.get(person, path)[0] == expected, path
            return
        pages: list[list[dict[str, Any]]] = []
        query: dict[str, Any] = {"limit": 2}
        while True:
            body = self.found(person, path, **query)
            pages.append([told_item(it) for it in body["items"]])
            if not body["pagination"]["has_older"]:
                break
            query["before"] = body["pagination"]["next_before"]
        same([it for page in reversed(pages) for it in page], expected, path)

    def _history(self, person: str, where: Conversation) -> None:
        body = self.found(person, f"{self.path(where)}/history", limit=50)
        names = ("prompt", "steers", "content")
        told = [
            (it["public_id"], {name: it[name] for name in names if name in it})
            for it in body["turns"]
        ]
        shown = [turn for turn, _ in plain.timeline(where, hidden=False)]
        same(told, [(turn.id, plain.fields(turn)) for turn in shown], where)

    def _events(self, person: str, where: Conversation) -> None:
        """Numbered from 1 without a gap, up to the watermark."""
        sequences: list[int] = []
        query: dict[str, Any] = {"limit": 200}
        while True:
            body = self.found(person, f"{self.path(where)}/events", **query)
            sequences += [it["sequence"] for it in body["events"]]
            if not body["events"]:
                break
            query["after"] = body["pagination"]["next_after"]
        same(sequences, [*range(1, body["pagination"]["watermark"] + 1)], where)

    def lists(self, person: str) -> None:
        """Which conversations a person finds in which list."""
        path = f"{self.workspace}/conversations"
        for which, under, query in (
            ("working", "", {}),
            ("sides", "", {"side": "1"}),
            ("archived", "/archived", {}),
        ):
            body = self.found(person, path + under, limit=100, **query)
            told = [it["public_id"] for it in body["conversations"]]
            same(told, plain.members(self.world, person, which), which)

    def search(self, person: str) -> None:
        """Find the word that is in every text, in every mode, page by page."""
        for mode, archived, auxiliary in (("exclude", False, False), ("include", True, True)):
            query: dict[str, Any] = {
                "query": self.word,
                "archived": mode,
                "include_auxiliary": str(auxiliary).lower(),
                "limit": 50,
            }
            told: list[tuple[str, ...]] = []
            while True:
                body = self.found(person, f"{self.workspace}/conversation_search", **query)
                told += [told_hit(it) for it in body["matches"]]
                if body["pagination"]["next_after"] is None:
                    break
                query["after"] = body["pagination"]["next_after"]
            expected = plain.hits(
                self.world, person, self.word, archived=archived, auxiliary=auxiliary
            )
            same(sorted(told), sorted(expected), f"search by {person}")

    # The session (reason-api.md 4 and 5)

    def session(self, where: Conversation) -> None:
        """Read feed and trajectory, as each person who may."""
        person = "member" if where.level("member") != "none" else "owner"
        base = f"{Api.v3}/sessions/{where.id}"
        rows = plain.feed(where)
        items = self.found(person, f"{base}/conversation", first=200)["items"]
        same(
            [(it["kind"], it["role"], it["content"], it.get("status")) for it in items],
            [(row.kind, row.role, plain.content(row), row.status) for row in rows],
            f"feed of {where}",
        )
        for row, it in zip(rows, items, strict=True):
            assert row.id in (None, it["id"])
            row.id = it["id"]
        self.poll(where)
        reader = self.readers[where]
        for row, it in zip(rows, items, strict=True):
            assert it["id"] in reader.seen or row.turn in where.veiled, "a reader missed it"
        works = any(True for turn in where.own for _ in turn.working)
        assert (self.found(person, base)["status"] == "running") == works, where
        document = self.found(person, f"{base}/trajectory")
        told = [
            (it["source"], it["message"], it.get("is_copied_context", False))
            for it in document["steps"]
        ]
        same(told, plain.trajectory(where), f"trajectory of {where}")

    def poll(self, where: Conversation) -> None:
        """Read on behind what was read: each place comes once, in order."""
        reader = self.readers.setdefault(where, Reader())
        more = True
        while more:
            query = {"first": 3} if reader.end is None else {"first": 3, "after": reader.end}
            path = f"{Api.v3}/sessions/{where.id}/conversation"
            page = self.found("owner", path, **query)
            for it in page["items"]:
                assert it["cursor"] > reader.cursor
                reader.cursor = it["cursor"]
                reader.seen.add(it["id"])
            reader.end, more = page["end_cursor"], page["has_next_page"]
