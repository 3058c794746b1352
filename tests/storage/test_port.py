"""The port to the database: what it promises, on both engines."""

import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stenograph.ids import new_id
from stenograph.storage import location
from stenograph.storage.database import among

COUNT = 20
NAMES = "SELECT name FROM organizations ORDER BY id"


def add(tx, name, slug=None):
    return tx.insert(
        "organizations", public_id=new_id(), slug=slug or new_id(), name=name, created_at=1
    )


def names(database):
    with database.read() as tx:
        return [name for (name,) in tx.rows(NAMES)]


# --- writing -----------------------------------------------------------------------------------


def test_a_write_returns_its_value_and_is_seen_by_the_next_read(database):
    first = database.write(lambda tx: add(tx, "a"))
    second = database.write(lambda tx: add(tx, "b"))
    assert second > first
    assert names(database) == ["a", "b"]


def test_a_failed_write_leaves_nothing_and_raises_its_error(database):
    def fail(tx):
        add(tx, "gone")
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        database.write(fail)
    database.write(lambda tx: add(tx, "kept"))
    assert names(database) == ["kept"]


def test_an_error_of_the_database_itself_leaves_nothing_either(database):
    def fail(tx):
        add(tx, "gone", slug="same")
        add(tx, "gone", slug="same")

    with pytest.raises(Exception, match=r"(?i)unique"):
        database.write(fail)
    assert names(database) == []


def test_many_writers_at_once_lose_nothing(database):
    with ThreadPoolExecutor(16) as pool:
        ids = list(pool.map(lambda n: database.write(lambda tx: add(tx, str(n))), range(200)))
    assert len(set(ids)) == 200
    assert sorted(names(database), key=int) == [str(n) for n in range(200)]


def test_one_that_fails_in_a_group_spoils_no_other(database):
    def act(n):
        def write(tx):
            add(tx, str(n))
            if n % 3 == 0:
                raise ValueError(n)
            return n

        return write

    futures = [database.submit(act(n)) for n in range(60)]
    outcomes = [f.exception() or f.result() for f in futures]
    for n, outcome in enumerate(outcomes):
        assert isinstance(outcome, ValueError) if n % 3 == 0 else outcome == n
    assert sorted(names(database), key=int) == [str(n) for n in range(60) if n % 3]


def test_waiting_writes_share_a_commit_on_sqlite(sqlite_database):
    release = threading.Event()
    statements = []
    first = sqlite_database.submit(lambda tx: release.wait(10))
    rest = [sqlite_database.submit(lambda tx, n=n: add(tx, str(n))) for n in range(50)]
    sqlite_database._writer.set_trace_callback(statements.append)
    release.set()
    for future in [first, *rest]:
        future.result()
    assert sum(statement == "COMMIT" for statement in statements) == 1
    assert len(names(sqlite_database)) == 50


def test_acts_after_commit_run_when_it_is_durable_and_never_after_a_rollback(database):
    seen = []

    def write(tx):
        add(tx, "a")
        tx.after_commit(lambda: seen.append(names(database)))

    database.write(write)
    assert seen == [["a"]]

    def fail(tx):
        tx.after_commit(lambda: seen.append("never"))
        raise ValueError

    with pytest.raises(ValueError):
        database.write(fail)
    assert seen == [["a"]]


def test_run_tells_how_many_rows_it_touched(database):
    database.write(lambda tx: [add(tx, n) for n in "abc"])
    touched = database.write(lambda tx: tx.run("UPDATE organizations SET name = 'x'"))
    assert touched == 3
    assert database.write(lambda tx: tx.run("DELETE FROM organizations WHERE name = 'y'")) == 0


def test_a_read_modify_write_on_one_row_counts_every_time(database):
    row = database.write(lambda tx: add(tx, "0"))

    def increment(tx):
        held = f"SELECT name FROM organizations WHERE id = :id{tx.for_update}"
        count = int(tx.value(held, id=row)) + 1
        tx.run("UPDATE organizations SET name = :name WHERE id = :id", name=str(count), id=row)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: database.write(increment), range(80)))
    assert names(database) == ["80"]


# --- reading -----------------------------------------------------------------------------------


def test_a_snapshot_does_not_see_what_commits_meanwhile(database):
    database.write(lambda tx: add(tx, "before"))
    with database.read() as tx:
        assert tx.rows(NAMES) == [("before",)]
        database.write(lambda tx: add(tx, "meanwhile"))
        assert tx.rows(NAMES) == [("before",)]
        with database.read() as other:
            assert len(other.rows(NAMES)) == 2
    assert names(database) == ["before", "meanwhile"]


def test_a_read_writes_nothing(database):
    with pytest.raises(Exception, match=r"(?i)readonly|read-only"), database.read() as tx:
        add(tx, "sneaked in")
    assert names(database) == []


def test_nothing_waits_for_an_open_read(database):
    with database.read() as tx:
        tx.rows(NAMES)
        for n in range(5):
            database.write(lambda tx, n=n: add(tx, str(n)))
    assert len(names(database)) == 5


def test_each_gives_every_row_in_order_a_few_at_a_time(database):
    rows = [(n, new_id(), new_id(), str(n), 1) for n in range(1, 2501)]
    columns = ("id", "public_id", "slug", "name", "created_at")
    database.write(lambda tx: tx.insert_many("organizations", columns, rows))
    with database.read() as tx:
        stream = tx.each("SELECT id FROM organizations WHERE id > :low ORDER BY id", low=10)
        assert next(stream) == (11,)
        # Others may be asked in between.
        assert tx.value("SELECT count(*) FROM organizations") == 2500
        assert [row[0] for row in stream] == list(range(12, 2501))
    with database.read() as tx:
        assert next(tx.each("SELECT id FROM organizations ORDER BY id")) == (1,)


def test_row_and_value_are_none_where_nothing_is(database):
    with database.read() as tx:
        assert tx.row(NAMES) is None
        assert tx.value(NAMES) is None
        assert tx.rows(NAMES) == []


# --- values ------------------------------------------------------------------------------------

TEXTS = ["", "\0", "a\0b\0", "\U0001f600 \U0010ffff", "é e\u0301", "\uf8f0", "\uf8f00\uf8f01",
         "\r\n\t\x1b", "\\N \\. \\", "%s :name %(x)s ?", "'; DROP TABLE x; --"]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
def test_text_comes_back_as_it_went_in(database, text):
    columns = ("public_id", "slug", "name", "created_at")

    def write(tx):
        add(tx, text)
        tx.insert_many("organizations", columns, [(new_id(), new_id(), text, 1)])

    database.write(write)
    assert names(database) == [text, text]
    with database.read() as tx:
        found = tx.rows("SELECT name FROM organizations WHERE name = :text", text=text)
    assert found == [(text,), (text,)]


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=50), max_size=20))
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_text_comes_back(database, texts):
    columns = ("public_id", "slug", "name", "created_at")
    rows = [(new_id(), new_id(), text, 1) for text in texts]

    def write(tx):
        tx.run("DELETE FROM organizations")
        tx.insert_many("organizations", columns, rows)

    database.write(write)
    assert names(database) == texts


@pytest.mark.parametrize("data", [b"", b"\0", bytes(range(256)), b"\\x00"])
def test_bytes_come_back_as_they_went_in(database, data):
    def write(tx):
        who = add(tx, "o")
        person = tx.insert("principals", public_id=new_id(), organization_id=who, kind="human",
                           handle="h", display_name="H", role="owner", created_at=1)  # fmt: skip
        tx.insert("credentials", public_id=new_id(), organization_id=who, principal_id=person,
                  plane="api", name="", digest=data, hint="", scopes="", created_at=1)  # fmt: skip

    database.write(write)
    with database.read() as tx:
        assert bytes(tx.value("SELECT digest FROM credentials")) == data
        assert tx.value("SELECT count(*) FROM credentials WHERE digest = :d", d=data) == 1


@pytest.mark.parametrize("number", [0, -1, 2**63 - 1, -(2**63)])
def test_whole_numbers_of_64_bits_come_back(database, number):
    database.write(
        lambda tx: tx.insert(
            "organizations", public_id=new_id(), slug="s", name="n", created_at=number
        )
    )
    with database.read() as tx:
        assert tx.value("SELECT created_at FROM organizations") == number


def test_booleans_go_in_as_such_and_come_back_as_numbers(database):
    with database.read() as tx:
        assert tx.value("SELECT CASE WHEN :yes = 1 THEN 1 ELSE 0 END", yes=True) == 1
        assert tx.value("SELECT CASE WHEN :no = 0 THEN 1 ELSE 0 END", no=False) == 1


def test_among(database):
    ids = database.write(lambda tx: [add(tx, n) for n in "abc"])
    with database.read() as tx:
        assert tx.rows(f"SELECT name FROM organizations WHERE {among('id', ids[1:])}") == [
            ("b",), ("c",),
        ]  # fmt: skip
        assert tx.rows(f"SELECT name FROM organizations WHERE {among('id', [])}") == []


# --- ids ---------------------------------------------------------------------------------------


def test_allocated_ids_are_fresh_and_ascending(database):
    def write(tx):
        before = add(tx, "a")
        ids = tx.allocate("organizations", 5)
        columns = ("id", "public_id", "slug", "name", "created_at")
        tx.insert_many("organizations", columns, [(i, new_id(), new_id(), "x", 1) for i in ids])
        return before, ids, add(tx, "b")

    before, ids, after = database.write(write)
    assert ids == sorted(set(ids))
    assert len(ids) == 5
    assert before < ids[0]
    assert after > ids[-1]


def test_the_observer_sees_each_statement(database):
    seen = []
    database.observer = seen.append
    database.write(lambda tx: add(tx, "a"))
    names(database)
    assert any("INSERT INTO organizations" in text for text in seen)
    assert NAMES in seen


# --- closing and deleting ----------------------------------------------------------------------


def test_a_closed_sqlite_database_takes_nothing(sqlite_location):
    opened = location.connect(sqlite_location)
    opened.close()
    opened.close()
    with pytest.raises(RuntimeError):
        opened.write(lambda tx: None)


def test_a_write_within_a_write_is_refused_on_sqlite(sqlite_database):
    with pytest.raises(RuntimeError, match="wait for itself"):
        sqlite_database.write(lambda tx: sqlite_database.write(lambda tx: None))


def test_what_was_written_before_closing_is_there_after_opening(database_location):
    opened = location.connect(database_location)
    opened.write(lambda tx: add(tx, "kept"))
    opened.close()
    opened = location.connect(database_location)
    assert names(opened) == ["kept"]
    opened.close()


def test_the_database_file_is_its_owners_alone(tmp_path):
    opened = location.connect(location.locate(tmp_path / "data", None))
    opened.write(lambda tx: tx.run("CREATE TABLE t (x)"))
    modes = {p.name: p.stat().st_mode & 0o777 for p in (tmp_path / "data").iterdir()}
    opened.close()
    assert modes["steno.db"] == 0o600
    assert set(modes.values()) == {0o600}


def test_scrubbing_takes_deleted_bytes_out_of_the_files(sqlite_location):
    marker = "the deleted sentence " * 400
    opened = location.connect(sqlite_location)
    folder = sqlite_location.path.parent
    opened.write(lambda tx: [add(tx, marker) for _ in range(20)])
    opened.write(lambda tx: add(tx, "kept"))

    def holding():
        return [p.name for p in folder.iterdir() if b"deleted sentence" in p.read_bytes()]

    assert holding()
    opened.write(lambda tx: tx.run("DELETE FROM organizations WHERE name <> 'kept'"))
    opened.scrub()
    assert holding() == []
    assert names(opened) == ["kept"]
    opened.close()


def test_scrubbing_postgres_leaves_the_rest(postgres_location):
    opened = location.connect(postgres_location)
    opened.write(lambda tx: [add(tx, "gone"), add(tx, "kept")])
    opened.write(lambda tx: tx.run("DELETE FROM organizations WHERE name = 'gone'"))
    opened.scrub()
    assert names(opened) == ["kept"]
    opened.close()


def test_a_full_disk_is_an_error_and_what_was_there_stays(sqlite_location):
    opened = location.connect(sqlite_location)
    opened.write(lambda tx: add(tx, "kept"))
    pages = opened._writer.execute("PRAGMA page_count").fetchone()[0]
    opened._writer.execute(f"PRAGMA max_page_count = {pages + 4}")
    with pytest.raises(sqlite3.OperationalError, match="full"):
        opened.write(lambda tx: [add(tx, "x" * 4000) for _ in range(100)])
    assert names(opened) == ["kept"]
    opened._writer.execute("PRAGMA max_page_count = 1000000")
    opened.write(lambda tx: add(tx, "later"))
    assert names(opened) == ["kept", "later"]
    opened.close()


def test_submit_tells_when_futures_are_settled(database):
    """`answered` comes after the futures, and for all that one commit settled at once."""
    settled: list[int] = []
    told = threading.Event()

    def answered() -> None:
        settled.append(sum(future.done() for future in futures))
        if settled[-1] == len(futures) == COUNT:
            told.set()

    futures: list = []
    release = threading.Event()
    futures.append(database.submit(lambda tx: release.wait(10), answered))
    futures += [database.submit(lambda tx: 1 / 0, answered) for _ in range(COUNT - 1)]
    release.set()
    assert told.wait(10)
    assert futures[0].result() is True
    assert all(isinstance(future.exception(), ZeroDivisionError) for future in futures[1:])
    if database.dialect == "sqlite":
        assert settled == [COUNT]


def test_what_follows_a_commit_may_fail(database):
    def act(tx):
        tx.after_commit(lambda: 1 / 0)
        return 5

    assert database.write(act) == 5
    assert database.write(lambda tx: 6) == 6


def test_once_holds_no_snapshot_and_leaves_none_behind(database):
    with database.once() as tx:
        assert tx.rows(NAMES) == []
        database.write(lambda tx: add(tx, "a"))
        assert tx.rows(NAMES) == [("a",)]
    for _ in range(12):  # as many as there are connections, and more
        with database.read() as tx:
            before = tx.rows(NAMES)
            database.write(lambda tx: add(tx, "b"))
            assert tx.rows(NAMES) == before
