"""Reads cost the same however wide the page and however long the history; none locks a row."""

import pytest

import story
from people import make_org
from stenograph.conversations import turn, variant
from stenograph.runs import store_reads


@pytest.fixture
def where(database, org):
    return story.place(database, org.owner)


@pytest.fixture
def asked(api, database):
    """Return the statements that one GET runs."""

    def ask(path, **parameters):
        seen: list[str] = []
        database.observer = seen.append
        answer = api.get(path, params=parameters)
        database.observer = None
        assert answer.status_code == 200, answer.text
        assert not [sql for sql in seen if "FOR UPDATE" in sql or "FOR SHARE" in sql]
        assert not [sql for sql in seen if "OFFSET" in sql]
        return seen

    return ask


def test_reasoning_runs_the_same_statements_at_limit_2_and_25(asked, database, where):
    said = story.rounds(database, where, ["thought"] * 26)
    narrow = asked(where.reasoning(said), limit=2)
    assert len(asked(where.reasoning(said), limit=25)) == len(narrow) <= 7


def test_the_transcript_runs_the_same_statements_at_limit_2_and_25(asked, database, where):
    said = story.rounds(database, where, ["thought"] * 26)
    path = where.run(said) + "/transcript"
    assert len(asked(path, limit=2)) == len(asked(path, limit=25)) <= 8


def test_turns_run_the_same_statements_at_limit_2_and_25(asked, database, where):
    for n in range(13):
        story.message(database, where)
        story.rounds(database, where, [f"thought {n}", None])
    path = where.path + "/turns"
    assert len(asked(path, limit=2)) == len(asked(path, limit=25)) <= 8


def test_a_fork_of_forks_runs_the_same_statements(asked, database, where):
    for _ in range(4):
        story.message(database, where)
    deep = where
    for _ in range(6):
        tip = story.message(database, deep)
        deep = story.forked(database, deep, tip)
    shallow = story.forked(database, where, story.message(database, where))
    assert len(asked(deep.path + "/turns", limit=25)) == len(asked(shallow.path + "/turns"))


def test_lists_and_events_run_the_same_statements(asked, database, where):
    for _ in range(26):
        story.message(database, story.another(database, where))
        story.message(database, where)
    listed = where.path.rpartition("/")[0]
    for path in (listed, where.path + "/events"):
        assert len(asked(path, limit=2)) == len(asked(path, limit=25)) <= 5


def test_a_run_as_a_whole_takes_the_same_statements_however_long(asked, database, where):
    short = story.rounds(database, where, ["thought"] * 2)
    long = story.rounds(database, where, ["thought"] * 25)
    for path in ("", "/graph", "/phases"):
        few, many = asked(where.run(short) + path), asked(where.run(long) + path)
        assert len(few) == len(many) <= 10, path


def test_a_deck_takes_the_same_statements_however_many_candidates(asked, database, where):
    said = story.rounds(database, where, ["a"])
    few = asked(where.turn(said) + "/variants")

    def more(tx):
        for _ in range(23):
            variant.add(tx, said.turn, source="edit", status="completed", content="x")

    database.write(more)
    assert len(asked(where.turn(said) + "/variants")) == len(few) <= 8


def big_run(database, where, tasks):
    """A run of so many model tasks, each with two calls, inserted as an importer does."""

    def make(tx):
        said = story.open_run(tx, where)
        ids = tx.allocate("tasks", tasks * 3)
        calls = tx.allocate("invocations", tasks)
        rounds = ids[::3]
        columns = (
            "id", "run_id", "key", "kind", "status", "transcript_visibility", "mainline",
            "parent_id", "round_id", "call_index", "selected_invocation_id", "created_at",
        )  # fmt: skip
        rows = []
        for n, (id, call) in enumerate(zip(rounds, calls, strict=True), 1):
            rows.append(
                (id, said.run.id, f"r{n}", "model_task", "completed", "visible", 1,
                 None, None, None, call, 1)
            )  # fmt: skip
            rows += [
                (id + i, said.run.id, f"r{n + 1}t{i - 1}", "tool_task", "completed",
                 "collapsed", 1, id, id, i - 1, None, 1)
                for i in (1, 2)
            ]  # fmt: skip
        tx.insert_many("tasks", columns, rows)
        tx.insert_many(
            "invocations",
            ("id", "task_id", "status", "created_at"),
            [(call, id, "completed", 1) for id, call in zip(rounds, calls, strict=True)],
        )
        tx.insert_many(
            "invocation_details",
            ("invocation_id", "reasoning"),
            [(call, "thought") for call in calls],
        )
        return said

    return database.write(make)


def test_100_tasks_and_5000_tasks_cost_the_same_statements(asked, api, database, where):
    small = big_run(database, where, 33)
    large_place = story.another(database, where)
    large = big_run(database, large_place, 1667)
    for few, many in (
        (where.reasoning(small), large_place.reasoning(large)),
        (where.run(small), large_place.run(large)),
        (where.run(small) + "/transcript", large_place.run(large) + "/transcript"),
        (where.run(small) + "/graph", large_place.run(large) + "/graph"),
        (where.run(small) + "/phases", large_place.run(large) + "/phases"),
        (where.run(small) + "/tasks/r5", large_place.run(large) + "/tasks/r1500"),
        (where.path + "/turns", large_place.path + "/turns"),
    ):
        assert len(asked(few)) == len(asked(many))
    (listed,) = api.get(large_place.path + "/turns").json()["turns"]
    assert len(listed["active_variant"]["rounds"]) == 24
    assert len(api.get(large_place.run(large)).json()["run"]["tasks"]) == 200
    assert len(api.get(large_place.run(large) + "/graph").json()["nodes"]) == 2_000
    assert len(api.get(large_place.run(large) + "/phases").json()["phases"]) == 200


def plan(sqlite_database, sql, **values):
    with sqlite_database.read() as tx:
        return " / ".join(row[3] for row in tx.rows("EXPLAIN QUERY PLAN " + sql, **values))


def test_pages_are_found_by_their_index(sqlite_database):
    """SQLite says how it looks: each page by one index, in order, without sorting."""
    org = make_org(sqlite_database)
    where = story.place(sqlite_database, org.owner)
    said = story.rounds(sqlite_database, where, ["a", "b"])
    seen: list[tuple[str, dict]] = []
    with sqlite_database.read() as tx:
        rows = tx.rows
        tx.rows = lambda sql, **values: seen.append((sql, values)) or rows(sql, **values)
        store_reads.reasoning(tx, said.run.id, 99, 21)
        store_reads.rounds(tx, said.run.id, branch=None, before=99, limit=21, size=9)
    (reasoning, mainline) = [plan(sqlite_database, sql, **values) for sql, values in seen]
    assert "USING INDEX tasks_selected" in reasoning
    assert "USING INDEX tasks_rounds" in mainline
    assert "TEMP B-TREE" not in reasoning + mainline


def test_a_turn_page_reads_no_further_than_it_shows(sqlite_database):
    org = make_org(sqlite_database)
    where = story.place(sqlite_database, org.owner)

    def many(tx):
        for _ in range(300):
            opened = turn.open(tx, where.conversation.id, status="completed")
            variant.add(tx, opened, source="manual", status="completed", content="x")

    sqlite_database.write(many)
    seen: list[tuple[str, dict]] = []
    with sqlite_database.read() as tx:
        rows = tx.rows
        tx.rows = lambda sql, **values: seen.append((sql, values)) or rows(sql, **values)
        page = turn.window(tx, where.conversation, before=200, limit=5)
    assert [one.turn.position for one in page] == [195, 196, 197, 198, 199]
    (found,) = [plan(sqlite_database, sql, **values) for sql, values in seen]
    assert "sqlite_autoindex_turns_2 (conversation_id=? AND position<?)" in found
    assert "TEMP B-TREE" not in found
