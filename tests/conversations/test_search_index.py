"""The index is what the record says, whoever wrote it and whatever happened meanwhile."""

import threading
from contextlib import suppress

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

import story
from conversations.searching import everything, places, scan
from conversations.test_words import endless
from people import Org, make_org
from retention import bytes_left
from stenograph.conversations import search_index, store_search_index, turn, variant
from stenograph.errors import ConflictError
from stenograph.retention import store as retention
from stenograph.retention.integrity import check
from stenograph.storage import location
from stenograph.storage.database import Database, Tx
from stenograph.storage.location import Location
from story import Place

VOCABULARY = (
    "run", "running", "file", "Files", "数据库", "数据", "库", "Ärger", "a_b", "7", "ｆｉｌｅ",
)  # fmt: skip
TEXTS = st.lists(st.sampled_from((*VOCABULARY, "?!", "🙂")), min_size=1, max_size=4).map(" ".join)
ACTS = st.one_of(
    st.tuples(st.just("say"), TEXTS),
    st.tuples(st.just("reword"), TEXTS),
    st.tuples(st.just("entitle"), TEXTS),
    st.tuples(st.just("fork"), TEXTS),
    st.tuples(st.sampled_from(["hide", "conceal", "close", "archive", "index", "steer"]), TEXTS),
)
WHICH = st.integers(0, 10)


def apply(database: Database, places: list[Place], which: int, act: str, text: str) -> None:
    """Do one thing to one of the conversations."""
    where = places[which % len(places)]
    with database.read() as tx:
        shown = turn.window(tx, where.conversation, hidden=True)
    turns = [one.turn for one in shown if not one.turn.inherited]
    if act == "say":
        with suppress(ConflictError):  # an archive takes nothing
            story.message(database, where, text)
    elif act == "index":
        search_index.catch_up(database)
    elif act == "entitle":
        story.run_sql(
            database, "UPDATE conversations SET title = :t WHERE id = :id", t=text,
            id=where.conversation.id,
        )  # fmt: skip
    elif act == "close":
        story.run_sql(
            database, "UPDATE conversations SET access_default = 'none' WHERE id = :id",
            id=where.conversation.id,
        )  # fmt: skip
    elif act == "archive":
        story.archive(database, where)
    elif not shown:
        return
    elif act == "fork":
        point = shown[which % len(shown)].turn
        made = story.forked(database, where, point, title=text)
        places.append(made)
    elif act in ("hide", "conceal"):
        state = {"visibility": "hidden"} if act == "hide" else {"concealed": True}
        named = shown[which % len(shown)].turn
        if act == "hide" or named.inherited or named.position < turns[-1].position:
            database.write(
                lambda tx: turn.set_view_state(tx, where.conversation, named.public_id, **state)
            )
    elif turns:
        change(database, where, turns[which % len(turns)], act, text)


def change(database: Database, where: Place, of: turn.Turn, act: str, text: str) -> None:
    def write(tx: Tx) -> None:
        if act == "reword":
            variant.add(tx, of, source="edit", status="completed", prompt=text, content=text[::-1])
            return
        active = tx.value("SELECT active_variant_id FROM turns WHERE id = :id", id=of.id)
        place = tx.value(
            "UPDATE conversations SET next_step = next_step + 1 WHERE id = :id"
            " RETURNING next_step - 1",
            id=where.conversation.id,
        )
        tx.insert(
            "steps", conversation_id=where.conversation.id, position=place, part="steer",
            source="user", turn_id=of.id, variant_id=active, text=text,
        )  # fmt: skip

    database.write(write)


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(acts=st.lists(st.tuples(WHICH, ACTS), max_size=14), asked=TEXTS)
def test_search_finds_what_a_scan_of_the_record_finds(worlds, engine, acts, asked):
    database, org = worlds(engine)
    told = [story.place(database, org.owner, title="run")]
    for which, (act, text) in acts:
        apply(database, told, which, act, text)
    home = told[0].workspace
    for index in (False, True):  # as it happens to be known to the index, and all of it
        if index:
            search_index.catch_up(database)
        for caller in (org.owner, org.member):
            for text in (asked, "run", "数据库 file"):
                found = places(everything(database, caller, home, text, limit=3))
                with database.read() as tx:
                    assert found == scan(tx, caller.principal_id, home.id, text)
    with database.read() as tx:
        assert list(search_index.disagreements(tx)) == []


@pytest.fixture
def worlds(request):
    """One database an engine for all examples of a test, each with a workspace of its own."""
    opened = {}

    def world(engine):
        if engine not in opened:
            database = location.connect(request.getfixturevalue(f"{engine}_location"))
            opened[engine] = (database, make_org(database))
        return opened[engine]

    yield world
    for database, _ in opened.values():
        database.close()


def test_what_changes_while_it_is_indexed_is_indexed_again(database, org, monkeypatch):
    where = story.place(database, org.owner)
    said = story.message(database, where, "first words")
    taken = store_search_index.take_changes

    def meanwhile(tx, ids):
        monkeypatch.setattr(store_search_index, "take_changes", taken)
        tx.run("UPDATE variants SET content = 'other words' WHERE id = :id", id=said.variant.id)
        return taken(tx, ids)

    monkeypatch.setattr(store_search_index, "take_changes", meanwhile)
    search_index.catch_up(database)
    assert [m.excerpt for m in everything(database, org.owner, where.workspace, "words")] == [
        "other words"
    ]
    with database.read() as tx:
        assert list(search_index.disagreements(tx)) == []


def test_an_older_reading_never_replaces_a_newer_one(database, org, monkeypatch):
    where = story.place(database, org.owner)
    said = story.message(database, where, "first words")
    taken = store_search_index.take_changes

    def late(tx, ids):
        """Another process has read on, and was faster."""
        assert taken(tx, ids)
        return taken(tx, ids)

    monkeypatch.setattr(store_search_index, "take_changes", late)
    search_index.catch_up(database)
    with database.read() as tx:
        assert tx.rows("SELECT id FROM search_documents") == []
    assert said.turn.id


def test_the_check_finds_what_the_index_lacks_or_has_wrong_and_rebuilding_mends_it(database, org):
    where = story.place(database, org.owner, title="A title")
    said = [story.message(database, where, f"words {n}") for n in range(3)]
    assert check(database) == []
    search_index.catch_up(database)
    assert check(database) == []

    def spoil(tx: Tx) -> None:
        ids = [said[n].turn.id for n in range(3)]
        tx.run("DELETE FROM search_documents WHERE turn_id = :id", id=ids[0])
        tx.run("UPDATE search_documents SET terms = 'other' WHERE turn_id = :id", id=ids[1])
        tx.run("UPDATE search_documents SET turn_id = 999 WHERE turn_id = :id", id=ids[2])

    database.write(spoil)
    assert {f.sentence for f in check(database)} == {
        "Search does not know its content.",
        "It does not say what its turn shows.",
        "What it is a document of is not there.",
        f"The search index has not all documents of workspace {where.workspace.id}.",
    }
    search_index.rebuild(database)
    assert check(database) == []
    assert len(everything(database, org.owner, where.workspace, "words")) == 3


def test_an_index_that_has_lost_its_entries_is_found_and_mended(sqlite_database):
    org = make_org(sqlite_database)
    where = story.place(sqlite_database, org.owner)
    story.message(sqlite_database, where, "some words")
    search_index.catch_up(sqlite_database)
    sqlite_database.write(
        lambda tx: tx.run("INSERT INTO search_index (search_index) VALUES ('delete-all')")
    )
    assert len(check(sqlite_database)) == 1
    search_index.rebuild(sqlite_database)
    assert check(sqlite_database) == []


def test_no_byte_of_a_deleted_word_is_left(
    database: Database, database_location: Location, org: Org
) -> None:
    where = story.place(database, org.owner)
    filler = [story.message(database, where, f"filler word{n}") for n in range(30)]
    marks = {"turn": "zqxturnmarkzqx", "title": "zqxtitlemarkzqx", "kept": "zqxkeptmarkzqx"}
    said = story.message(database, where, f"a turn {marks['turn']}")
    titled = story.another(database, where, title=f"a title {marks['title']}")
    story.message(database, where, f"what stays {marks['kept']}")
    search_index.catch_up(database)
    for one in filler[:10]:
        story.run_sql(database, "DELETE FROM turns WHERE id = :id", id=one.turn.id)
    story.run_sql(database, "DELETE FROM turns WHERE id = :id", id=said.turn.id)
    story.run_sql(database, f"DELETE FROM inputs WHERE text LIKE '%{marks['turn']}%'")
    story.run_sql(database, "DELETE FROM conversations WHERE id = :id", id=titled.conversation.id)
    search_index.catch_up(database)
    gone = {name: mark for name, mark in marks.items() if name != "kept"}
    assert bytes_left.in_tables(database, {"kept": marks["kept"]}) == {"kept"}
    tables = (*retention.TOUCHED, "turns", "variants", "conversations", "inputs", "events")
    assert database.scrub(tables)
    assert bytes_left.in_tables(database, gone) == set()
    assert bytes_left.in_files(database, database_location, gone) == set()


def test_the_largest_document_is_taken(database, org):
    where = story.place(database, org.owner)
    text = endless()
    story.message(database, where, text + "and much more besides " * 10_000)
    (found,) = everything(database, org.owner, where.workspace, text[20_000:20_300])
    assert found.truncated
    assert text[20_000:20_100] in found.excerpt


def test_upkeep_indexes_what_nobody_asks_for(database, org, monkeypatch):
    monkeypatch.setattr(search_index, "_PAUSE", 0.001)
    done = threading.Event()
    write = search_index._write

    def told(tx, ids, drafts):
        write(tx, ids, drafts)
        tx.after_commit(done.set)

    monkeypatch.setattr(search_index, "_write", told)
    where = story.place(database, org.owner)
    story.message(database, where, "some words")
    with search_index.upkeep(database):
        assert done.wait(30)
    with database.read() as tx:
        assert tx.value("SELECT count(*) FROM search_documents") == 1
