"""Tombstones: what stays of them while forks read it, and that nothing does afterwards."""

import threading

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import story
from retention.bytes_left import in_files, in_tables
from stenograph.clock import DAY, now
from stenograph.conversations import access, archive, side, turn, variant, workspace
from stenograph.conversations import fork as forks
from stenograph.conversations import input as inputs
from stenograph.retention import integrity, nightly, reap
from stenograph.retention.prune import prune
from stenograph.runs import snapshot
from stenograph.sessions import conversing, forking


def session(database, where):
    """Let a conversation of a story be a session, as one of the API is."""
    database.write(lambda tx: conversing.begin(tx, where.caller, where.conversation.id))
    return where


def say(database, where, text):
    """Say something over the whole way that an input of the API takes."""

    def make(tx):
        here = access.find(
            tx, where.caller, where.workspace.public_id, where.conversation.public_id
        )
        sent = inputs.accept(tx, where.caller, here, kind="message", text=text)
        conversing.catch_up(tx, here.id)
        made = inputs.materialization(tx, here, sent.public_id)
        return turn.find(tx, here, made.turn)

    return database.write(make)


def fork(database, where, point):
    """Fork as the API does."""

    def make(tx):
        made = forks.create(tx, where.caller, where.workspace, here(tx, where), point.public_id)
        forking.begin(tx, where.caller, where.conversation, made)
        return story.Place(where.caller, where.workspace, made)

    return database.write(make)


def aside(database, where):
    """Open a side as the API does."""

    def make(tx):
        held = forks.hold_source(tx, here(tx, where))
        running = side.under_way(tx, held)
        taken = None if running is None else snapshot.of(tx, running.variant)
        made = side.create(tx, where.caller, where.workspace, held, running=running, snapshot=taken)
        forking.begin(tx, where.caller, where.conversation, made)
        return story.Place(where.caller, where.workspace, made)

    return database.write(make)


def here(tx, where):
    return access.find(tx, where.caller, where.workspace.public_id, where.conversation.public_id)


def delete(database, where, days=31):
    """Delete a conversation so many days ago."""
    database.write(lambda tx: archive.delete(tx, here(tx, where)))
    story.run_sql(
        database,
        "UPDATE conversations SET deleted_at = :at WHERE id = :id",
        at=now() - days * DAY,
        id=where.conversation.id,
    )


def shown(database, where):
    """What a conversation shows: ids, places and words of its turns."""
    with database.read() as tx:
        listed = [one.turn for one in turn.window(tx, here(tx, where), limit=1000, hidden=True)]
        decks = {one.id: variant.deck(tx, one) for one in listed}
    return [
        (one.public_id, one.position, one.inherited, [v.content for v in decks[one.id]])
        for one in listed
    ]


def counts(database, *tables):
    with database.read() as tx:
        return [tx.value(f"SELECT count(*) FROM {table}") for table in tables]


def faults(database):
    with database.read() as tx:
        return list(integrity.findings(tx))


HOLDS = (
    "conversations", "ancestries", "turns", "turn_overrides", "variants", "variant_details",
    "runs", "tasks", "task_details", "invocations", "invocation_details", "inputs", "steps",
    "messages", "events", "sessions", "usage_receipts", "usage_totals", "conversation_access",
    "attachments",
)  # fmt: skip


def test_a_tombstone_stands_30_days_and_no_longer(database, org):
    young, old = (session(database, story.place(database, org.owner)) for _ in range(2))
    for where, days in ((young, 29), (old, 30)):
        say(database, where, "x")
        story.rounds(database, where, ["thought", None])
        delete(database, where, days)
    assert reap.reap(database).conversations == 1
    with database.read() as tx:
        assert tx.rows("SELECT id FROM conversations") == [(young.conversation.id,)]
        owners = tx.rows("SELECT DISTINCT conversation_id FROM turns")
    assert owners == [(young.conversation.id,)]
    story.run_sql(database, "UPDATE conversations SET deleted_at = 1")
    assert reap.reap(database).conversations == 1
    assert counts(database, *HOLDS) == [0] * len(HOLDS)
    assert reap.reap(database) == reap.Reaped(0, 0)


def test_what_a_fork_reads_stays_and_the_rest_goes(database, org):
    where = session(database, story.place(database, org.owner, title="the title"))
    said = [say(database, where, f"word{n}") for n in range(5)]
    kept = fork(database, where, said[2])
    before = shown(database, kept)
    delete(database, where)
    reaped = reap.reap(database)
    assert reaped.conversations == 0
    assert reaped.pieces > 0
    assert shown(database, kept) == before
    left = in_tables(database, {"title": "the title"} | {f"word{n}": f"word{n}" for n in range(5)})
    assert left == {"word0", "word1", "word2"}
    with database.read() as tx:
        rows = tx.rows(
            "SELECT position FROM turns WHERE conversation_id = :id ORDER BY position",
            id=where.conversation.id,
        )
    assert rows == [(0,), (1,)]
    assert faults(database) == []
    assert reap.reap(database).pieces == 0


def test_it_goes_with_the_last_fork_that_reads_it(database, org):
    where = session(database, story.place(database, org.owner))
    said = [say(database, where, f"m{n}") for n in range(4)]
    low, high = fork(database, where, said[1]), fork(database, where, said[3])
    below = fork(database, high, said[2])
    for gone in (where, high):
        delete(database, gone)
    views = [shown(database, one) for one in (low, below)]
    reap.reap(database)
    assert [shown(database, one) for one in (low, below)] == views
    assert faults(database) == []
    delete(database, below)
    # The chain goes in one night: the forks first, then what they held on to.
    assert reap.reap(database).conversations == 2
    assert shown(database, low) == views[0]
    delete(database, low)
    assert reap.reap(database).conversations == 2
    assert counts(database, *HOLDS) == [0] * len(HOLDS)


def test_a_side_holds_its_source_as_a_fork_does(database, org):
    where = session(database, story.place(database, org.owner))
    say(database, where, "heard")
    beside = aside(database, where)
    delete(database, where)
    before = shown(database, beside)
    reap.reap(database)
    assert shown(database, beside) == before
    gone = database.write(lambda tx: archive.delete(tx, here(tx, beside)))
    database.write(lambda tx: reap.destroy(tx, gone))
    assert reap.reap(database).conversations == 1
    assert counts(database, "conversations", "turns") == [0, 0]


def test_a_subagent_that_a_fork_reads_outlives_who_started_it(database, org):
    where = session(database, story.place(database, org.owner))
    child = session(database, story.another(database, where))
    for table, column in (("conversations", "id"), ("sessions", "conversation_id")):
        parent = "parent_id" if table == "conversations" else "parent_conversation_id"
        story.run_sql(
            database,
            f"UPDATE {table} SET {parent} = :parent WHERE {column} = :id",
            parent=where.conversation.id,
            id=child.conversation.id,
        )
    said = [say(database, child, f"m{n}") for n in range(2)]
    kept = fork(database, child, said[1])
    before = shown(database, kept)
    delete(database, where)
    story.run_sql(database, "UPDATE conversations SET deleted_at = 1 WHERE deleted_at IS NOT NULL")
    assert reap.reap(database).conversations == 1
    assert shown(database, kept) == before
    assert faults(database) == []


def test_what_works_is_left_alone(database, org):
    where = session(database, story.place(database, org.owner))
    said = database.write(lambda tx: story.open_run(tx, where))
    story.tombstone(database, where)
    assert reap.reap(database) == reap.Reaped(0, 0)
    database.write(lambda tx: story.finish(tx, said))
    assert reap.reap(database).conversations == 1


def test_a_long_conversation_goes_in_bounded_pieces(database, org, monkeypatch):
    monkeypatch.setattr(reap, "TURNS", 3)
    monkeypatch.setattr(reap, "EVENTS", 5)
    where = session(database, story.place(database, org.owner))
    for n in range(10):
        say(database, where, f"m{n}")
    delete(database, where)
    sizes = []
    write = database.write

    def watched(act):
        before = sum(counts(database, "turns", "events"))
        done = write(act)
        sizes.append(before - sum(counts(database, "turns", "events")))
        return done

    monkeypatch.setattr(database, "write", watched, raising=False)
    reap.reap(database)
    assert counts(database, *HOLDS) == [0] * len(HOLDS)
    assert max(sizes) == 5
    assert sum(sizes) > 40


def test_a_workspace_goes_when_nothing_is_in_it_any_more(database, org):
    where = session(database, story.place(database, org.owner))
    said = [say(database, where, f"m{n}") for n in range(2)]
    fork(database, where, said[1])
    database.write(lambda tx: workspace.delete(tx, org.owner, where.workspace, 0))
    assert reap.reap(database) == reap.Reaped(0, 0)
    story.run_sql(database, "UPDATE conversations SET deleted_at = 1")
    assert reap.reap(database).conversations == 2
    assert counts(database, "workspaces") == [1]
    story.run_sql(database, "UPDATE workspaces SET deleted_at = 1")
    reap.reap(database)
    assert counts(database, "workspaces") == [0]


def test_every_night_reaps_and_the_bytes_are_in_no_file(database, database_location, org):
    where = session(database, story.place(database, org.owner, title="titleofthedead"))
    words = {"title": "titleofthedead", "text": "wordsofthedead", "thought": "thoughtsofthedead"}
    say(database, where, words["text"])
    story.rounds(database, where, [words["thought"], None])
    delete(database, where)
    nightly.once(database, threading.Event())
    assert in_tables(database, words) == set()
    assert in_files(database, database_location, words) == set()


def test_a_prune_by_command_reaps_too(database, org):
    where = session(database, story.place(database, org.owner))
    delete(database, where)
    assert prune(database, rewrite=False).reaped == 1


steps = st.lists(
    st.tuples(
        st.sampled_from(["say", "say", "fork", "side", "delete", "reap"]), st.integers(0, 10**6)
    ),
    max_size=25,
)


@given(steps=steps)
@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_whatever_is_deleted_the_living_show_what_they_showed(database, org, steps):
    living = [session(database, story.place(database, org.owner))]
    sides = set()
    say(database, living[0], "first")
    for act, number in steps:
        if not living:
            break
        chosen = living[number % len(living)]
        views = {one.conversation.id: shown(database, one) for one in living}
        if act == "say":
            say(database, chosen, f"said {number}")
            continue
        if act == "delete":
            living.remove(chosen)
            delete(database, chosen, days=31 if number % 3 else 1)
        elif act == "reap":
            reap.reap(database)
        elif chosen.conversation.id not in sides:
            with database.read() as tx:
                listed = turn.window(tx, here(tx, chosen), limit=1000)
            if act == "side":
                living.append(aside(database, chosen))
                sides.add(living[-1].conversation.id)
            elif listed:
                living.append(fork(database, chosen, listed[number % len(listed)].turn))
        for one in living:
            if one.conversation.id in views:
                assert shown(database, one) == views[one.conversation.id]
    assert faults(database) == []
    for one in living:
        delete(database, one)
    story.run_sql(database, "UPDATE conversations SET deleted_at = 1")
    reap.reap(database)
    assert counts(database, *HOLDS) == [0] * len(HOLDS)


def test_all_that_goes_with_a_conversation_is_written_anew(sqlite_database):
    """A table of somebody else that a deletion reaches is to be named in `TOUCHED`."""
    reached, fresh = {"conversations", "workspaces"}, {"conversations"}
    with sqlite_database.read() as tx:
        tables = [row[0] for row in tx.rows("SELECT name FROM sqlite_master WHERE type = 'table'")]
        while fresh:
            fresh = {
                table
                for table in tables
                for key in tx.rows(f"PRAGMA foreign_key_list({table})")
                if key[2] in fresh and key[6] == "CASCADE" and table not in reached
            }
            reached |= fresh
    assert set(reap.TOUCHED) == reached
