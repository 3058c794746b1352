"""Branches that a person left, imported again and again: each is there once."""

import pytest

from exports import exported
from stenograph.trajectories.recording.record import record
from trajectories.importers import claude_code_lines as claude
from trajectories.importers import codex_lines as codex


def take_in(database, org, draft):
    return database.write(lambda tx: record(tx, org.owner, draft))[0]


def counts(database):
    with database.read() as tx:
        tables = ("sessions", "variants", "steps", "usage_receipts")
        return [tx.value(f"SELECT count(*) FROM {table}") for table in tables]


def back_to_the_start():
    log = claude.Log()
    for n in (1, 2):
        log.user(f"q{n}")
        log.answer(f"m{n}", claude.text(f"a{n}"))
    log.last = None
    log.user("from the start")
    log.answer("m3", claude.text("a3"))
    return log


def rolled_back():
    log = codex.Log()
    for n in (1, 2):
        log.message("user", f"q{n}")
        log.message("assistant", f"a{n}")
    log.event("thread_rolled_back", num_turns=1)
    return log


@pytest.mark.parametrize("make", [back_to_the_start, rolled_back])
def test_imported_again_a_branch_is_not_there_twice(database, org, make):
    log = make()
    first = take_in(database, org, log.read())
    before = counts(database)
    for _ in range(2):
        again = take_in(database, org, log.read())
        assert (again.session_id, again.change) == (first.session_id, "unchanged")
        assert counts(database) == before


def test_a_branch_at_the_end_of_the_main_line_continues_all_of_it(database, org):
    take_in(database, org, rolled_back().read())
    with database.read() as tx:
        (fork,) = tx.rows("SELECT public_id FROM conversations WHERE source_id IS NOT NULL")
    steps = exported(database, fork[0])["steps"]
    assert [step["message"] for step in steps] == ["q1", "a1", "q2", "a2"]
    assert [step.get("is_copied_context") for step in steps] == [True, True, None, None]


def test_a_branch_that_is_the_main_line_again_is_counted_once(database, org):
    log = back_to_the_start()
    main = take_in(database, org, log.read())
    log.last = "u4"  # the second answer of the branch that was left
    log.user("on with the first one")
    log.answer("m4", claude.text("a4"))
    grown = take_in(database, org, log.read())
    assert (grown.session_id, grown.change) == (main.session_id, "grown")
    with database.read() as tx:
        keys = [row[0] for row in tx.rows("SELECT external_key FROM steps")]
        receipts = tx.value("SELECT count(*) FROM usage_receipts")
    assert len(keys) == len(set(keys)) == 8
    assert receipts == 4
    document = exported(database, main.session_id)
    assert [s["message"] for s in document["steps"]] == [
        "q1", "a1", "q2", "a2", "on with the first one", "a4",
    ]  # fmt: skip


def test_what_a_fork_shows_is_not_taken_from_under_it(database, org):
    log = claude.Log()
    for n in (1, 2):
        log.user(f"q{n}")
        log.answer(f"m{n}", claude.text(f"a{n}"))
    take_in(database, org, log.read())

    def fork(tx):
        # As the Agent API forks: at the second turn, with a conversation of its own.
        columns = (
            "workspace_id, creator_id, metadata, access_default, last_activity_at, created_at,"
            " updated_at"
        )
        tx.run(
            f"INSERT INTO conversations (public_id, source_id, {columns})"
            f" SELECT 'fork', id, {columns} FROM conversations"
        )
        tx.run(
            "INSERT INTO ancestries (conversation_id, depth, ancestor_id, boundary_position)"
            " SELECT id, 1, source_id, 1 FROM conversations WHERE public_id = 'fork'"
        )

    database.write(fork)
    log.last = "u2"
    log.user("instead")
    log.answer("m3", claude.text("a3"))
    before = counts(database)
    found = take_in(database, org, log.read())
    assert found.change == "unchanged"
    assert "fork" in found.warnings[-1]
    assert counts(database) == before
