"""A text masked in pieces is the masked whole, however it is cut, and nothing goes out too soon."""

import base64
import itertools
import json
from urllib.parse import quote

from hypothesis import given, settings
from hypothesis import strategies as st

from stenograph.trajectories.redaction.redactor import Redactor
from stenograph.trajectories.redaction.streaming import Pattern, StreamedText, masked_window

#: Few letters, so that texts hold parts of secrets; and what spellings are made of.
LETTERS = 'abra\\"/&%~ \n\r_-.[]*é🙂'
values = st.text(LETTERS, min_size=4, max_size=9).filter(lambda it: len(it.strip()) >= 4)


def whole(secrets: tuple[str, ...], text: str) -> str:
    return Redactor(secrets, "ephemeral").text(text)


def streamed(secrets: tuple[str, ...], pieces: list[str]) -> list[str]:
    text = StreamedText(Pattern(secrets))
    return [*(text.feed(piece) for piece in pieces), text.end()]


def spellings(value: str) -> list[str]:
    once = json.dumps(value)[1:-1]
    raw = value.encode()
    return [
        value,
        once,
        json.dumps(once)[1:-1],
        json.dumps(value, ensure_ascii=False)[1:-1],
        quote(value, safe=""),
        quote(quote(value, safe=""), safe=""),
        value.replace("&", "&amp;").replace('"', "&quot;"),
        base64.b64encode(raw).decode(),
        base64.b64encode(b"user:" + raw).decode(),
        "".join(f"\\x{byte:02x}" for byte in raw),
    ]


@st.composite
def cases(draw: st.DrawFn) -> tuple[tuple[str, ...], list[str]]:
    secrets = tuple(draw(st.lists(values, min_size=1, max_size=3)))
    own = st.sampled_from(
        ["reason_" + "a1" * 12, "ara_" + "b" * 24, "sk-steno-v1-abcdefgh", "reason_"]
    )
    parts = st.one_of(
        st.text(LETTERS, max_size=6),
        st.sampled_from([form for value in secrets for form in spellings(value)]),
        st.sampled_from([form for value in secrets for form in spellings(value)]).flatmap(
            lambda form: st.integers(0, len(form)).map(lambda at: form[:at])
        ),
        own,
    )
    text = "".join(draw(st.lists(parts, max_size=8)))
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=12)))
    edges = [0, *cuts, len(text)]
    return secrets, [text[a:b] for a, b in itertools.pairwise(edges)]


@given(cases())
@settings(max_examples=300, deadline=None, database=None, derandomize=True)
def test_pieces_joined_are_the_masked_whole(case):
    secrets, pieces = case
    assert "".join(streamed(secrets, pieces)) == whole(secrets, "".join(pieces))


@given(cases(), st.integers(0, 100))
@settings(max_examples=150, deadline=None, database=None, derandomize=True)
def test_what_goes_out_is_right_whatever_comes_next(case, share):
    """What went out before the end is the beginning of the masked whole, for another end too."""
    secrets, pieces = case
    kept = pieces[: len(pieces) * share // 100]
    out = "".join(streamed(secrets, kept)[:-1])
    for end in ("", "x", secrets[0], secrets[0][1:], "\\", "reason_" + "a" * 30):
        assert whole(secrets, "".join(kept) + end).startswith(out)


@given(cases())
@settings(max_examples=100, deadline=None, database=None, derandomize=True)
def test_letter_by_letter(case):
    secrets, pieces = case
    text = "".join(pieces)
    assert "".join(streamed(secrets, list(text))) == whole(secrets, text)


def test_what_begins_no_secret_is_not_held_back():
    out = streamed(("quokka7zebra",), ["Twenty words, ", "say; some ", "of them q", "uiet. "])
    assert out == ["Twenty words, ", "say; some ", "of them ", "quiet. ", ""]


def test_a_secret_longer_than_what_is_followed_letter_by_letter():
    secret = "".join(f"{n:04x}-" for n in range(600))
    text = f"It is {secret}; and {secret[:2500]} is not it. " + "More. " * 10_000
    pieces = [text[at : at + 7] for at in range(0, len(text), 7)]
    out = streamed((secret,), pieces)
    assert "".join(out) == whole((secret,), text)
    assert secret[:12] not in "".join(out[: (len(secret) + 6) // 7])


def test_a_secret_that_a_marker_may_be_a_part_of_waits_for_the_end():
    secrets = ("ted-secret]x", "hunter2")
    pieces = ["hunter", "2xyz", " and more"]
    out = streamed(secrets, pieces)
    assert out == ["", "", "", whole(secrets, "".join(pieces))]


@settings(max_examples=300, deadline=None)
@given(case=cases(), first=st.integers(0, 400), length=st.integers(0, 400))
def test_a_window_of_a_text_shows_nothing_that_the_masked_whole_does_not(case, first, length):
    secrets, pieces = case
    text = "word " * 20 + "".join(pieces) + " word" * 60
    window = text[first : first + length]
    assert masked_window(window, secrets, from_start=first == 0) in whole(secrets, text)


def test_a_window_shows_all_but_its_edges():
    secret = "swordfish"
    text = f"a {secret} b " * 100
    shown = masked_window(text[5:], (secret,), from_start=False)
    assert len(shown) > 1_000
    assert masked_window(text, (secret,), from_start=True) == whole((secret,), text)
    assert masked_window("sword", (secret,), from_start=True) == ""
    assert masked_window("fish and chips", (secret,), from_start=False) == ""
