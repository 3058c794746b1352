"""Where a text is cut, no secret stands across the cut."""

import json
from base64 import b64encode
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stenograph.trajectories.redaction.cutting import apart

SECRET = "p\N{LATIN SMALL LETTER A WITH DIAERESIS}ss word/42\n"
SPELLINGS = (
    SECRET.strip(),
    json.dumps(SECRET.strip())[1:-1],
    quote(SECRET.strip(), safe=""),
    b64encode(SECRET.strip().encode()).decode().rstrip("="),
)


@pytest.mark.parametrize("spelled", SPELLINGS)
def test_a_cut_within_a_secret_is_moved_out_of_it_and_no_other_is(spelled: str) -> None:
    before, after = "\N{GRINNING FACE} before ", " and after"
    text = before + spelled + after
    start, end = len(before), len(before) + len(spelled)
    for at in range(len(text) + 1):
        inside = start < at < end
        assert apart(text, at, [SECRET]) == (start if inside else at)
        assert apart(text, at, [SECRET], "after") == (end if inside else at)


def test_secrets_that_overlap_are_one() -> None:
    text = "x" * 5 + "aaaabbbbcccc" + "y" * 5
    assert apart(text, 15, ["aaaabbbb", "bbbbcccc"]) == 5
    assert apart(text, 7, ["aaaabbbb", "bbbbcccc"], "after") == 17


@given(st.text(max_size=40), st.integers(-5, 60))
def test_without_a_secret_there_a_text_is_cut_where_it_is_wanted(text: str, at: int) -> None:
    assert apart(text, at, []) == apart(text, at, ["\ue000 nobody"]) == at
