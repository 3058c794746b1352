"""What search promises: every keyword in one field, of what the caller may see, in order."""

from collections.abc import Callable, Collection
from typing import Any

import pytest

import story
from conversations.searching import everything, look, places
from people import Org
from stenograph.accounts.access import Caller
from stenograph.conversations import search, search_documents, search_index, turn, variant, words
from stenograph.conversations.search import Match
from stenograph.retention.prune import prune
from stenograph.sessions import store_turns
from stenograph.storage.database import Database, Tx
from story import Place, Said


@pytest.fixture
def where(database: Database, org: Org) -> Place:
    return story.place(database, org.owner, title="Weekly planning")


@pytest.fixture
def find(database: Database, where: Place) -> Callable[..., list[Match]]:
    def find(text: str, caller: Caller | None = None, **options: Any) -> list[Match]:
        return everything(database, caller or where.caller, where.workspace, text, **options)

    return find


def steer(database: Database, where: Place, said: Said, text: str) -> None:
    """Say something while a candidate is under way."""
    database.write(
        lambda tx: store_turns.insert_step(
            tx, where.conversation.id, "steer", said.turn.id, said.variant.id, text, 1
        )
    )


def test_titles_prompts_answers_and_steers_are_searched(database, where, find):
    said = story.rounds(database, where, ["I reason about cranes."])
    steer(database, where, said, "Also look at the cranes.")
    steer(database, where, said, "And the bridges.")
    assert [m.field for m in find("crane bridge")] == ["steers"]
    assert [m.field for m in find("files")] == ["content"]
    assert [m.field for m in find("looking")] == ["prompt", "steers"]
    (title,) = find("plans week")
    assert (title.field, title.turn, title.variant, title.position) == ("title", None, None, None)
    assert title.excerpt == title.title == "Weekly planning"
    (found,) = find("two")
    assert (found.turn, found.variant) == (said.turn.public_id, said.variant.public_id)
    assert (found.position, found.inherited, found.truncated) == (0, False, False)


def test_keywords_are_wanted_in_one_field(database, where, find):
    story.message(database, where, "apples")
    story.message(database, where, "pears and apples")
    assert [m.excerpt for m in find("apple pear")] == ["pears and apples"]
    assert find("apples planning") == []


def test_reasoning_tool_output_and_other_candidates_are_not(database, where, find):
    story.branched(database, where)
    for text in ("First", "README", "helped", "superseded", "branch"):
        assert find(text) == []


def test_a_candidate_that_was_replaced_is_not(database, where, find):
    said = story.message(database, where, "an old wording")

    def reword(tx: Tx) -> None:
        opened = turn.find(tx, where.conversation, said.turn.public_id)
        variant.add(tx, opened, source="edit", status="completed", content="a new wording")

    database.write(reword)
    assert find("old") == []
    assert [m.excerpt for m in find("wording")] == ["a new wording"]


def test_a_candidate_that_comes_back_is_found_again(database, where, find):
    said = story.message(database, where, "an old wording")

    def reword(tx: Tx) -> None:
        opened = turn.find(tx, where.conversation, said.turn.public_id)
        variant.add(tx, opened, source="edit", status="completed", content="a new one")

    database.write(reword)
    assert find("wording") == []

    def back(tx: Tx) -> None:
        opened = turn.find(tx, where.conversation, said.turn.public_id)
        variant.activate(tx, opened, variant.find(tx, opened, said.variant.public_id))

    database.write(back)
    assert [m.variant for m in find("wording")] == [said.variant.public_id]


def test_summaries_are_not_searched(database, where, find):
    said = story.message(database, where, "what was said so far")
    assert find("far")
    story.run_sql(
        database, "UPDATE turns SET kind = 'compaction_summary' WHERE id = :id", id=said.turn.id
    )
    assert find("far") == []


def test_what_is_hidden_or_concealed_is_not_found_though_it_is_indexed(database, where, find):
    said = story.message(database, where, "a quiet word")
    story.message(database, where, "the newest turn")
    assert len(find("quiet")) == 1

    def view(**state: Any) -> None:
        database.write(
            lambda tx: turn.set_view_state(tx, where.conversation, said.turn.public_id, **state)
        )

    view(visibility="hidden")
    assert find("quiet") == []
    view(visibility="excluded_from_context")
    assert len(find("quiet")) == 1
    view(concealed=True)
    assert find("quiet") == []
    view(concealed=False)
    assert len(find("quiet")) == 1


def test_an_inherited_turn_is_found_in_each_fork_as_it_looks_from_there(database, where, find):
    first = story.message(database, where, "shared words")
    second = story.message(database, where, "the fork point")
    story.message(database, where, "shared no more")
    fork = story.forked(database, where, second)
    other = story.forked(database, where, second)
    ids = sorted([where.conversation.public_id, *(f.conversation.public_id for f in (fork, other))])
    found = find("shared words")
    assert [(m.conversation, m.turn) for m in found] == [(i, first.turn.public_id) for i in ids]
    assert {m.conversation: m.inherited for m in found} == {
        i: i != where.conversation.public_id for i in ids
    }
    assert [m.conversation for m in find("more")] == [where.conversation.public_id]

    def conceal(place: Place) -> None:
        database.write(
            lambda tx: turn.set_view_state(
                tx, place.conversation, first.turn.public_id, concealed=True
            )
        )

    conceal(fork)
    assert fork.conversation.public_id not in {m.conversation for m in find("words")}
    conceal(where)
    assert [m.conversation for m in find("words")] == [other.conversation.public_id]
    story.tombstone(database, where)
    assert [m.conversation for m in find("words")] == [other.conversation.public_id]
    story.tombstone(database, other)
    assert find("words") == []


def test_only_readable_conversations_of_the_workspace_are_searched(database, org, where, find):
    told = {
        level: story.another(database, where, access_default=level)
        for level in ("full", "read", "none")
    }
    for place in told.values():
        story.message(database, place, "in confidence")
    elsewhere = story.place(database, org.owner)
    story.message(database, elsewhere, "in confidence")
    assert len(find("confidence")) == 3
    seen = {m.conversation for m in find("confidence", caller=org.member)}
    assert seen == {told[level].conversation.public_id for level in ("full", "read")}


def test_the_few_that_may_be_read_among_many_are_found(database, org, where, find, monkeypatch):
    monkeypatch.setattr(search, "_FEW", 3)
    mine = [story.another(database, where, title=f"needle {n}") for n in range(3)]
    for n in range(12):
        story.another(database, where, title=f"needle of others {n}", access_default="none")
    assert {m.conversation for m in find("needle", caller=org.member)} == {
        place.conversation.public_id for place in mine
    }
    assert len(find("needle", limit=2)) == 15


def test_archived_conversations_sides_and_subagents_are_asked_for(database, where, find):
    kinds = {name: story.another(database, where) for name in ("plain", "archived", "side", "sub")}
    for place in kinds.values():
        story.message(database, place, "hello there")
    story.archive(database, kinds["archived"])
    for name, column in (("side", "side = 1"), ("sub", f"parent_id = {where.conversation.id}")):
        story.run_sql(
            database,
            f"UPDATE conversations SET {column} WHERE id = :id",
            id=kinds[name].conversation.id,
        )

    def names(**options: Any) -> set[str]:
        seen = {m.conversation for m in find("hello", **options)}
        return {name for name, place in kinds.items() if place.conversation.public_id in seen}

    assert names() == {"plain"}
    assert names(archived="include") == {"plain", "archived"}
    assert names(archived="only") == {"archived"}
    assert names(auxiliary=True) == {"plain", "side", "sub"}


def test_pages_join_without_a_gap_and_in_order(database, where, find):
    for n in range(7):
        said = story.rounds(database, where, [None])
        steer(database, where, said, f"look {n}")
    point = story.message(database, where, "look here")
    for _ in range(3):
        story.forked(database, where, point)
    whole = find("look", limit=50)
    assert len(whole) > 50
    keys = [
        (-search_documents.slot(m.turn or m.conversation), m.conversation, m.field) for m in whole
    ]
    assert keys == sorted(keys)
    for limit in (1, 2, 3, 20):
        assert places(find("look", limit=limit)) == places(whole)


def test_two_turns_of_one_moment_both_have_their_place(database, where, find):
    twins = [story.message(database, where, "twins") for _ in range(3)]
    for n, said in enumerate(twins):
        story.run_sql(
            database,
            "UPDATE turns SET public_id = :p WHERE id = :id",
            p=f"01a23012-8196-7b7b-8146-12d8f11c4f4{n}",
            id=said.turn.id,
        )
    assert len(find("twin", limit=1)) == 3


def test_an_excerpt_lies_around_the_first_hit(database, where, find):
    before, behind = "a " * 400, " b" * 400
    story.message(database, where, f"{before}needle{behind} needle")
    (found,) = find("needle b")
    assert len(found.excerpt) == search.EXCERPT
    assert found.truncated
    assert "a needle b" in found.excerpt
    story.message(database, where, "x" * 480 + " at the end: stitch")
    (found,) = find("stitch")
    assert len(found.excerpt) == 499
    assert not found.truncated


def test_what_is_masked_is_neither_shown_nor_found(database, where, find):
    other = story.another(database, where)
    for place in (where, other):
        story.message(database, place, "the pin is 4711, mind you")

    def masking(ids: Collection[int]) -> Callable[[str], str] | None:
        if where.conversation.id not in ids:
            return None
        return lambda text: text.replace("4711", "[redacted-secret]")

    assert [m.conversation for m in find("4711", masking=masking)] == [other.conversation.public_id]
    assert {m.excerpt for m in find("pin mind", masking=masking)} == {
        "the pin is [redacted-secret], mind you",
        "the pin is 4711, mind you",
    }


@pytest.mark.parametrize(
    "text",
    [
        '"', "'", "a' & 'b", '" OR "', "NOT", "NEAR(the, two)", "look*", "col:on", "a & | ! ( )",
        "\0look\0", "look\\", "- look", "look🙂",
        "\u202elook", "🙂", ":*", "content:look", "_w1", "_c1", "{look}", "^look", "x" * 1_000,
        " ".join(f"w{n}" for n in range(340)), "字" * 341,
    ],
)  # fmt: skip
def test_nothing_that_is_asked_for_is_more_than_words(database, where, find, text):
    story.message(database, where, "look")
    asked = {piece.text for piece in words.pieces(text)}
    assert [m.excerpt for m in find(text)] == (["look"] if asked == {"look"} else [])


def test_deleted_turns_and_conversations_are_in_the_index_no_more(database, where, find):
    said = story.message(database, where, "a short life")
    fork = story.another(database, where, title="A short life")
    assert len(find("short")) == 2
    story.run_sql(database, "DELETE FROM turns WHERE id = :id", id=said.turn.id)
    story.run_sql(database, "DELETE FROM conversations WHERE id = :id", id=fork.conversation.id)
    with database.read() as tx:
        assert tx.rows("SELECT turn_id FROM search_documents WHERE turn_id IS NOT NULL") == []
    assert find("short") == []


def test_pruning_keeps_the_index(database, where, find):
    story.rounds(database, where, ["thought"])
    assert prune(database, 0, rewrite=False).reports[0].runs == 1
    assert [m.field for m in find("two files")] == ["content"]


def test_a_page_costs_the_same_however_many_turns_there_are(database, where, find):
    def statements() -> int:
        search_index.catch_up(database)
        seen: list[str] = []
        database.observer = seen.append
        look(database, where.caller, where.workspace, "hello", limit=5)
        database.observer = None
        assert not [sql for sql in seen if "OFFSET" in sql or "FOR UPDATE" in sql]
        return len(seen)

    for _ in range(12):
        story.message(database, where, "hello")
    few = statements()
    for _ in range(60):
        story.message(database, where, "hello")
    assert statements() == few <= 8
