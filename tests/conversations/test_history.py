"""Reading up on a conversation: which turns, how much of each, and what is left out."""

import pytest

import story
from conversations.searching import nothing_masked
from stenograph.conversations import history, turn
from stenograph.errors import NotFoundError
from stenograph.sessions import store_turns
from story import Place


@pytest.fixture
def where(database, org) -> Place:
    return story.place(database, org.owner)


@pytest.fixture
def read(database, where):
    def read(place=where, masking=nothing_masked, **options):
        with database.read() as tx:
            return history.read(tx, place.conversation, masking=masking, **options)

    return read


def said(page):
    return [entry.content for entry in page.entries]


def beyond(page):
    return page.has_older, page.has_newer


@pytest.fixture
def ten(database, where):
    return [story.message(database, where, f"m{n}") for n in range(10)]


def test_the_newest_come_without_a_place(read, ten):
    page = read(limit=3)
    assert said(page) == ["m7", "m8", "m9"]
    assert beyond(page) == (True, False)
    assert beyond(read(limit=10)) == (False, False)


def test_a_position_is_read_from_on_either_side(read, ten):
    assert said(read(before=5, limit=2)) == ["m3", "m4"]
    assert beyond(read(before=5, limit=2)) == (True, True)
    assert beyond(read(before=2, limit=2)) == (False, True)
    assert beyond(read(before=10, limit=2)) == (True, False)
    assert said(read(after=5, limit=2)) == ["m6", "m7"]
    assert beyond(read(after=5, limit=2)) == (True, True)
    assert beyond(read(after=7, limit=2)) == (True, False)
    assert said(read(before=0)) == []
    assert beyond(read(before=0)) == (False, True)
    assert said(read(after=9)) == []
    assert beyond(read(after=9)) == (True, False)


@pytest.mark.parametrize(
    ("middle", "limit", "first", "last"),
    [(5, 1, 5, 5), (5, 2, 5, 6), (5, 3, 4, 6), (5, 4, 4, 7),
     (0, 3, 0, 2), (9, 4, 6, 9), (8, 5, 5, 9), (5, 50, 0, 9)],
)  # fmt: skip
def test_a_turn_stands_in_the_middle_as_far_as_it_can(read, ten, middle, limit, first, last):
    page = read(around=ten[middle].turn.public_id, limit=limit)
    assert said(page) == [f"m{n}" for n in range(first, last + 1)]
    assert beyond(page) == (first > 0, last < 9)


def test_nothing_at_all_is_a_page_too(read):
    page = read()
    assert (page.entries, beyond(page), page.truncated) == ([], (False, False), False)


def test_hidden_and_concealed_turns_and_summaries_are_left_out(database, where, read, ten):
    hidden, concealed, summary = (ten[n].turn for n in (3, 5, 7))
    with database.read() as tx:
        assert turn.find(tx, where.conversation, hidden.public_id)

    def view(**state):
        database.write(lambda tx: turn.set_view_state(tx, where.conversation, **state))

    view(public_id=hidden.public_id, visibility="hidden")
    view(public_id=concealed.public_id, concealed=True)
    story.run_sql(
        database, "UPDATE turns SET kind = 'compaction_summary' WHERE id = :id", id=summary.id
    )
    assert said(read()) == [f"m{n}" for n in (0, 1, 2, 4, 6, 8, 9)]
    assert said(read(limit=3)) == ["m6", "m8", "m9"]
    assert said(read(after=2, limit=2)) == ["m4", "m6"]
    for gone in (hidden, concealed, summary):
        with pytest.raises(NotFoundError):
            read(around=gone.public_id)


def test_a_fork_reads_what_it_inherits(database, where, read, ten):
    fork = story.forked(database, where, ten[6])
    story.message(database, fork, "of its own")
    assert said(read(fork)) == [*(f"m{n}" for n in range(7)), "of its own"]
    database.write(
        lambda tx: turn.set_view_state(tx, fork.conversation, ten[2].turn.public_id, concealed=True)
    )
    assert said(read(fork, around=ten[3].turn.public_id, limit=3)) == ["m1", "m3", "m4"]
    assert "m2" in said(read())


def test_prompt_steers_and_content_are_told(database, where, read):
    made = story.rounds(database, where, ["thought"])
    for text in ("wait", "go on"):
        database.write(
            lambda tx, text=text: store_turns.insert_step(
                tx, where.conversation.id, "steer", made.turn.id, made.variant.id, text, 1
            )
        )
    (entry,) = read().entries
    assert (entry.prompt, entry.steers) == ("Look around.", "wait\n\ngo on")
    assert (entry.content, entry.truncated) == ("Two files.", False)


def test_a_long_text_is_cut(database, where, read):
    story.message(database, where, "x" * history.FIELD)
    story.message(database, where, "é\0" * history.FIELD)
    whole, cut = read().entries
    assert (len(whole.content), whole.truncated) == (history.FIELD, False)
    assert (cut.content, cut.truncated) == ("é\0" * (history.FIELD // 2), True)


def test_a_full_page_leaves_out_the_farthest_turns_and_reading_on_finds_them(database, where, read):
    made = [story.message(database, where, f"{n} " + "x" * 5_000) for n in range(20)]
    fitting = history.PAGE // history.FIELD
    page = read()
    assert [e.content[:2] for e in page.entries] == [f"{n}" for n in range(14, 20)]
    assert (len(page.entries), page.truncated, beyond(page)) == (fitting, True, (True, False))
    seen = []
    after = -1
    while True:
        page = read(after=after, limit=50)
        seen += [entry.turn.position for entry in page.entries]
        if not page.has_newer:
            break
        after = seen[-1]
    assert seen == list(range(20))
    page = read(around=made[10].turn.public_id)
    assert [entry.turn.position for entry in page.entries] == list(range(7, 13))
    assert beyond(page) == (True, True)


def test_what_is_masked_is_masked_before_it_is_cut(database, where, read):
    story.message(database, where, "x" * (history.FIELD - 3) + "hunter22 and more")

    def masking(ids):
        return lambda text: text.replace("hunter22", "[redacted-secret]")

    (entry,) = read(masking=masking).entries
    assert entry.content == "x" * (history.FIELD - 3) + "[re"
    assert entry.truncated
