"""What counts as the same word."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stenograph.conversations import words


def endless() -> str:
    """A text with as many terms as there can be."""
    drawn = Random(1).choices(range(0x20000, 0x2A000), k=words.LONGEST_TEXT)
    return "".join(map(chr, drawn))


def found(asked: str, text: str) -> bool:
    return words.query(asked).first(text) is not None


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ("run", "She was RUNNING."),
        ("libraries", "one library"),
        ("café", "Cafe\u0301 au lait"),
        ("ＡＢＣ１", "abc1"),
        ("straße", "STRASSE"),
        ("foo_bar", "bar, then foo"),
        ("a" * 80, "a" * 64),
        ("数据库", "我们使用数据库。"),
        ("库", "数据库"),
        ("Python编程", "用python来编程"),
        ("ﾃﾞｰﾀ", "データベース"),
        ("हिन्दी", "यह हिन्दी है"),
        ("שלום", "‮שלום‬ עולם"),
        ("日志\0🙂", "看日志"),
    ],
)
def test_a_word_is_found_in_its_other_forms(asked: str, text: str) -> None:
    assert found(asked, text)
    assert set(words.query(asked).terms) <= set(words.terms(text))


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ("run", "runner-up"),
        ("数据库", "数据在库中"),
        ("数据库", "数据，据库"),
        ("हिन्दी", "हिन्द"),
        ("one three", "one two"),
        ("art", "party"),
    ],
)
def test_another_word_is_not(asked: str, text: str) -> None:
    assert not found(asked, text)


@pytest.mark.parametrize("text", ["", " \t", "?!", "🙂👍🏽", "\0", "_", "\u202e", "—…。"])
def test_what_holds_no_word_asks_for_nothing(text: str) -> None:
    assert words.query(text).terms == []


@given(st.text(max_size=60))
def test_a_text_holds_what_it_says(text: str) -> None:
    asked = words.query(text)
    assert set(asked.terms) <= set(words.terms(text))
    assert (asked.first(f"… {text}") is None) == (not asked.terms)


@given(st.text())
def test_a_term_is_written_as_both_databases_take_it(text: str) -> None:
    for term in words.terms(text):
        assert len(term) <= words.LONGEST_WORD * 18
        assert all(c.isalnum() or not c.isascii() for c in term)
        assert term.split() == [term]
        assert not set("'\"\\:_") & set(term)


def test_a_hit_is_told_where_it_is() -> None:
    assert words.query("found").first("lost and finds, found") == 16
    assert words.query("据库").first("用数据库") == 2
    assert words.query("two one").first("é one two") == 2


def test_a_text_is_searched_to_a_limit() -> None:
    assert not found("end", "x " * (words.LONGEST_TEXT // 2) + "end")
    assert found("end", "x " * (words.LONGEST_TEXT // 2 - 2) + "end")


def test_terms_never_outgrow_a_document() -> None:
    written = " ".join(words.terms(endless())).encode()
    assert words.MOST_TERMS - 20 < len(written) <= words.MOST_TERMS
