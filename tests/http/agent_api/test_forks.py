"""Forks and sides over HTTP: what they show, what they cost, and what is refused."""

import pytest

import story
from stenograph.conversations import conversation, fork, turn, variant
from stenograph.retention import integrity
from stenograph.sessions import conversing

NOWHERE = "00000000-0000-7000-8000-000000000000"


@pytest.fixture
def where(database, org):
    made = story.place(database, org.owner, answerer="agent", billing_subject="team-a")
    database.write(lambda tx: conversing.begin(tx, org.owner, made.conversation.id))
    return made


def code(answer):
    return answer.status_code, answer.json()["error"]["code"]


def ask(api, where, key="k", caller="member", **body):
    headers = {"Idempotency-Key": key}
    return api.post(f"{where.path}/forks", json={"fork": body}, headers=headers, key=caller)


def made(api, where, **body):
    """Fork, and return the path of the fork."""
    answer = ask(api, where, **body)
    assert answer.status_code == 201, answer.text
    return where.path.rpartition("/")[0] + "/" + answer.json()["conversation"]["public_id"]


def turns(api, path, **query):
    return api.get(f"{path}/turns", params=query).json()["turns"]


def faults(database):
    """What is wrong with the record; stories leave some things open."""
    with database.read() as tx:
        return list(integrity.findings(tx))


# --- forks --------------------------------------------------------------------------------------


def test_a_fork_inherits_under_the_same_ids_and_adopts_its_point(api, database, where):
    said = [story.message(database, where, f"m{n}") for n in range(4)]
    path = made(api, where, turn_public_id=said[2].turn.public_id, title="Elsewhere")
    shown = turns(api, path)
    assert [t["public_id"] for t in shown[:2]] == [s.turn.public_id for s in said[:2]]
    assert [(t["position"], t["inherited"]) for t in shown] == [(0, True), (1, True), (2, False)]
    adopted = shown[2]
    assert adopted["public_id"] != said[2].turn.public_id
    assert adopted["active_variant"]["source"] == "fork"
    assert adopted["active_variant"]["content"] == "m2"
    assert adopted["active_variant"]["origin_variant_public_id"] == said[2].variant.public_id
    found = api.get(path).json()["conversation"]
    assert (found["title"], found["billing_subject"], found["side"]) == (
        "Elsewhere",
        "team-a",
        False,
    )
    assert found["forked_from_turn_public_id"] == said[2].turn.public_id
    assert found["source_conversation_public_id"] == where.conversation.public_id
    event = api.get(f"{where.path}/events").json()["events"][-1]
    assert event["type"] == "fork_created"
    assert event["payload"]["fork_public_id"] == found["public_id"]


def test_a_fork_takes_a_candidate_that_is_not_shown(api, database, where):
    said = story.message(database, where, "first")
    other = database.write(
        lambda tx: variant.add(
            tx, said.turn, source="edit", status="completed", content="second", activate=False
        )
    )
    turn_id = said.turn.public_id
    path = made(api, where, turn_public_id=turn_id, variant_public_id=other.public_id)
    (adopted,) = turns(api, path)
    assert adopted["active_variant"]["content"] == "second"


def test_the_forker_makes_it_and_who_always_had_access_is_named(api, database, org):
    where = story.place(
        database,
        org.owner,
        answerer="agent",
        access_default="none",
        entries=[conversation.Entry("admin", "full"), conversation.Entry("member", "read")],
    )
    said = story.message(database, where)
    path = made(api, where, caller="member:admin", turn_public_id=said.turn.public_id)
    found = api.get(path).json()["conversation"]["access"]
    assert found["default"] == "none"
    levels = {entry["handle"]: entry["level"] for entry in found["entries"]}
    assert levels == {"owner": "full", "member": "read"}
    assert api.get(path, key="member:agent").status_code == 200


def test_a_fork_is_a_session_with_a_feed_and_a_trajectory(api, database, where):
    story.message(database, where, "before")
    said = story.rounds(database, where, ["a", None])
    before = faults(database)
    path = made(api, where, turn_public_id=said.turn.public_id)
    assert faults(database) == before
    session = f"{api.v3}/sessions/{path.rpartition('/')[2]}"
    feed = api.get(f"{session}/conversation").json()["items"]
    contents = [(item["role"], item["content"]) for item in feed]
    assert contents[-2:] == [("user", "Look around."), ("assistant", "Two files.")]
    steps = api.get(f"{session}/trajectory").json()["steps"]
    assert [(s["source"], s["message"]) for s in steps][-2:] == [
        ("user", "Look around."),
        ("agent", "Two files."),
    ]


def test_what_runners_did_is_not_known_once_details_are_gone(api, database, where):
    said = story.rounds(database, where, ["a"])
    fresh = ask(api, where, key="a", turn_public_id=said.turn.public_id)
    assert fresh.json()["runner_effects"] == {"status": "untouched", "runners": []}
    story.run_sql(database, "UPDATE runs SET details_pruned_at = 1")
    late = ask(api, where, key="b", turn_public_id=said.turn.public_id)
    assert late.json()["runner_effects"] == {
        "status": "unavailable",
        "runners": [],
        "reason": "execution_details_pruned",
    }


def test_a_file_of_an_adopted_turn_is_the_forks_own(api, database, where):
    said = story.message(database, where)
    columns = (
        "public_id", "conversation_id", "variant_id", "filename", "content_type", "byte_size",
        "data", "created_at",
    )  # fmt: skip
    row = ("f", where.conversation.id, said.variant.id, "a.txt", "text/plain", 1, b"x", 1)
    database.write(lambda tx: tx.insert_many("attachments", columns, [row]))
    made(api, where, turn_public_id=said.turn.public_id)
    with database.read() as tx:
        rows = tx.rows("SELECT public_id, conversation_id, filename, data FROM attachments")
    assert len({row[0] for row in rows}) == len({row[1] for row in rows}) == 2
    assert {(row[2], bytes(row[3])) for row in rows} == {("a.txt", b"x")}


@pytest.mark.parametrize(
    ("body", "status", "word"),
    [
        ({}, 400, "parameter_missing"),
        ({"turn_public_id": 5}, 400, "parameter_invalid"),
        ({"turn_public_id": "t", "side": True}, 400, "parameter_invalid"),
        ({"turn_public_id": NOWHERE}, 404, "not_found"),
        ({"side": True, "title": "x" * 256}, 422, "validation_failed"),
    ],
)
def test_a_bad_fork_is_refused_and_leaves_nothing(api, database, where, body, status, word):
    story.message(database, where)
    assert code(ask(api, where, **body)) == (status, word)
    assert ask(api, where, side=True).status_code == 201  # the key is not used up
    answer = api.post(f"{where.path}/forks", json={"fork": {"side": True}})
    assert code(answer) == (400, "idempotency_key_required")


def test_what_is_concealed_is_no_point_to_fork_at(api, database, where):
    said = story.message(database, where)
    story.message(database, where)
    other = database.write(
        lambda tx: variant.add(tx, said.turn, source="edit", status="completed", content="b")
    )
    story.run_sql(database, "UPDATE variants SET deleted_at = 1 WHERE id = :id", id=said.variant.id)
    turn_id = said.turn.public_id
    concealed = ask(api, where, turn_public_id=turn_id, variant_public_id=said.variant.public_id)
    assert code(concealed) == (404, "not_found")
    api.patch(where.turn(said), json={"turn": {"concealed": True}})
    for variant_id in (None, other.public_id):
        answer = ask(api, where, turn_public_id=turn_id, variant_public_id=variant_id)
        assert (answer.status_code, answer.content) == (404, concealed.content)


def test_what_is_under_way_is_not_forkable(api, database, where):
    said = database.write(lambda tx: story.open_run(tx, where))
    assert code(ask(api, where, turn_public_id=said.turn.public_id)) == (
        409,
        "variant_not_forkable",
    )


def test_a_fork_that_would_cost_too_much_is_refused(api, database, where, monkeypatch):
    said = [story.message(database, where) for _ in range(4)]
    for one in said[:3]:
        api.patch(where.turn(one), json={"turn": {"visibility": "hidden"}})
    point = said[3].turn.public_id
    monkeypatch.setattr(fork, "VIEWS", 2)
    assert code(ask(api, where, turn_public_id=point)) == (422, "fork_too_large")
    monkeypatch.setattr(fork, "VIEWS", 3)
    path = made(api, where, turn_public_id=point)
    assert [t["visibility"] for t in turns(api, path, include_hidden="1")] == [
        "hidden", "hidden", "hidden", "visible",
    ]  # fmt: skip
    monkeypatch.setattr(fork, "LINEAGE", 1)
    deep = story.Place(where.caller, where.workspace, found(database, where, path))
    (own,) = [t for t in turns(api, path) if not t["inherited"]]
    assert code(ask(api, deep, turn_public_id=own["public_id"])) == (422, "fork_too_large")


def found(database, where, path):
    with database.read() as tx:
        return conversation.access.find(
            tx, where.caller, where.workspace.public_id, path.rpartition("/")[2]
        )


def test_a_fork_stands_on_a_tombstone_as_before(api, database, where):
    said = [story.message(database, where, f"m{n}") for n in range(3)]
    path = made(api, where, turn_public_id=said[2].turn.public_id)
    before = turns(api, path)
    assert api.delete(where.path).status_code == 204
    assert turns(api, path) == before
    assert api.get(f"{path}/turns/{said[0].turn.public_id}").status_code == 200


def statements(database, act):
    """Run `act`, and return the statements that it took and the rows that it wrote."""
    seen: list[str] = []
    with database.read() as tx:
        before = rows(tx)
    database.observer = seen.append
    act()
    database.observer = None
    with database.read() as tx:
        return len(seen), {table: n - before[table] for table, n in rows(tx).items()}


def rows(tx):
    tables = (
        "conversations", "ancestries", "turns", "turn_overrides", "variants", "steps", "messages",
        "events", "conversation_access", "sessions", "runs", "tasks",
    )  # fmt: skip
    return {table: tx.value(f"SELECT count(*) FROM {table}") for table in tables}


def grow(database, where, count):
    """Give a conversation so many turns, as an importer does."""

    def make(tx):
        first = tx.value(
            "SELECT next_position FROM conversations WHERE id = :id", id=where.conversation.id
        )
        ids, candidates = tx.allocate("turns", count), tx.allocate("variants", count)
        tx.insert_many(
            "turns",
            ("id", "public_id", "conversation_id", "position", "kind", "role", "status",
             "active_variant_id", "created_at"),
            [(id, f"t{where.conversation.id}-{n}", where.conversation.id, first + n, "message",
              "user", "completed", candidate, 1)
             for n, (id, candidate) in enumerate(zip(ids, candidates, strict=True))],
        )  # fmt: skip
        tx.insert_many(
            "variants",
            ("id", "public_id", "turn_id", "position", "source", "status", "content", "created_at"),
            [(candidate, f"v{candidate}", id, 0, "manual", "completed", "x", 1)
             for id, candidate in zip(ids, candidates, strict=True)],
        )  # fmt: skip
        tx.run(
            "UPDATE conversations SET next_position = :next WHERE id = :id",
            next=first + count,
            id=where.conversation.id,
        )

    database.write(make)


@pytest.mark.parametrize("kind", ["fork", "side"])
def test_a_fork_of_10_turns_costs_what_one_of_10_000_does(api, database, where, kind):
    long = story.another(database, where, answerer="agent")
    database.write(lambda tx: conversing.begin(tx, where.caller, long.conversation.id))
    costs = []
    for place, count in ((where, 10), (long, 10_000)):
        grow(database, place, count)
        body = {"side": True}
        if kind == "fork":
            body = {"turn_public_id": f"t{place.conversation.id}-{count - 1}"}
        costs.append(statements(database, lambda place=place, body=body: made(api, place, **body)))
    assert costs[0] == costs[1]
    assert costs[0][1]["turns"] == (1 if kind == "fork" else 0)


# --- sides --------------------------------------------------------------------------------------


def test_a_side_shows_everything_that_has_its_end(api, database, where):
    said = [story.message(database, where, f"m{n}") for n in range(3)]
    path = made(api, where, side=True, title="Aside")
    assert [t["public_id"] for t in turns(api, path)] == [s.turn.public_id for s in said]
    one = api.get(path).json()["conversation"]
    assert (one["side"], one["title"]) == (True, "Aside")
    assert one["forked_from_turn_public_id"] == said[2].turn.public_id
    home = where.path.rpartition("/")[0]
    assert [c["public_id"] for c in api.get(home).json()["conversations"]] == [
        where.conversation.public_id
    ]
    listed = api.get(home, params={"side": "1"}).json()["conversations"]
    assert [c["public_id"] for c in listed] == [one["public_id"]]
    story.message(database, where, "later")
    assert len(turns(api, path)) == 3


def test_a_side_of_nothing_shows_nothing(api, where):
    path = made(api, where, side=True)
    assert turns(api, path) == []


def test_a_side_holds_what_is_under_way_as_it_stands(api, database, where):
    story.message(database, where, "before")
    said = story.branched(database, where)
    wrong = faults(database)
    path = made(api, where, side=True)
    assert faults(database) == wrong
    before, own = turns(api, path)
    assert (before["inherited"], before.get("reference")) == (True, None)
    assert (own["inherited"], own["reference"], own["status"]) == (False, True, "completed")
    candidate = own["active_variant"]
    assert (candidate["source"], candidate["status"]) == ("fork", "completed")
    assert "run_public_id" not in candidate
    assert candidate["prompt_text"] == "Look around."
    assert candidate["content"] == "I look."
    assert api.get(path).json()["conversation"]["active_turn_public_id"] is None
    with database.read() as tx:
        text = tx.value("SELECT reference FROM variant_details WHERE reference IS NOT NULL")
    assert text.splitlines() == [
        "[reply] I look.",
        '[call] delegate_task {"to":"helper"}: completed',
        "helped",
        '[call] ls {"path":"/tmp"}: completed',
        "a",
        "b",
    ]
    database.write(lambda tx: story.finish(tx, said, "The end."))
    assert turns(api, path)[1] == own


def test_a_side_of_a_direct_reply_that_has_said_nothing_yet(api, database, where):
    story.direct_reply(database, where, settled=False)
    (own,) = turns(api, made(api, where, side=True))
    assert own["reference"] is True
    assert own["active_variant"].get("content") is None


def test_a_side_is_never_forked(api, database, where):
    story.message(database, where)
    path = made(api, where, side=True)
    aside = story.Place(where.caller, where.workspace, found(database, where, path))
    (shown,) = turns(api, path)
    for body in ({"side": True}, {"turn_public_id": shown["public_id"]}):
        assert code(ask(api, aside, key="other", **body)) == (422, "side_of_side")


def test_a_side_goes_on_by_itself(api, database, where):
    story.message(database, where, "before")
    path = made(api, where, side=True)
    answer = api.post(
        f"{path}/inputs",
        json={"input": {"kind": "message", "text": "aside"}},
        headers={"Idempotency-Key": "k"},
    )
    assert answer.status_code == 202
    assert [t["active_variant"]["content"] for t in turns(api, path)] == ["before", "aside"]
    with database.read() as tx:
        assert [one.turn.position for one in turn.window(tx, where.conversation)] == [0]
