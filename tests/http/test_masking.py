"""A run's secret values leave in no answer."""

import base64
import json
from urllib.parse import quote

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stenograph.http.masking import excerpt, margin, mask_text, masked
from strategies.secrets import json_values, secret_values, without_markers

SECRET = 'pass"word/ü+1'
MARKER = "[redacted-secret]"


class Item(msgspec.Struct):
    text: str
    parts: list[str]
    extra: dict[str, str]
    count: int = 3
    left_out: str | msgspec.UnsetType = msgspec.UNSET


ITEM = Item("the key is s3cret!", ["s3cret", "x"], {"s3cret": "say s3cret twice s3cret"})


def as_json(value):
    return json.loads(msgspec.json.encode(value))


def test_without_secrets_or_any_of_them_in_it_the_value_is_untouched():
    assert masked(ITEM, ()) is ITEM
    assert masked(ITEM, ("elsewhere",)) is ITEM


def test_every_string_is_masked_keys_too_and_the_shape_stays():
    assert as_json(masked(ITEM, ("s3cret",))) == {
        "text": "the key is [redacted-secret]!",
        "parts": ["[redacted-secret]", "x"],
        "extra": {"[redacted-secret]": "say [redacted-secret] twice [redacted-secret]"},
        "count": 3,
    }
    assert ITEM.text == "the key is s3cret!"


def test_a_longer_secret_goes_before_one_that_it_holds():
    assert mask_text("abcdef abcd", ("abcd", "abcdef")) == "[redacted-secret] [redacted-secret]"
    assert masked(["abcdef"], ("abcd", "abcdef")) == ["[redacted-secret]"]


def test_a_secret_too_short_to_be_kept_masks_nothing():
    assert masked(["abc"], ("", "abc")) == ["abc"]


@pytest.mark.parametrize(
    "spelled",
    [
        SECRET,
        json.dumps(SECRET),
        json.dumps({"deep": json.dumps({"key": SECRET})}),
        json.dumps(SECRET, ensure_ascii=False),
        quote(SECRET),
        quote(quote(SECRET, safe="")),
        base64.b64encode(SECRET.encode()).decode(),
        base64.urlsafe_b64encode(b"user:" + SECRET.encode() + b"!").decode(),
        repr(SECRET),
        SECRET.replace('"', "&quot;"),
    ],
)
def test_other_spellings_are_masked_too(spelled):
    for value in (
        spelled,
        {"arguments": {"url": f"x={spelled}"}},
        [{spelled: 1}],
        Item("", [], {}),
    ):
        if isinstance(value, Item):
            value.parts = ["before", f"({spelled})"]
        text = msgspec.json.encode(masked(value, (SECRET,))).decode()
        assert MARKER in text
        assert spelled not in text
        assert json.dumps(spelled)[1:-1] not in text


def test_a_struct_keeps_its_numbers_and_free_json_does_not():
    found = as_json(masked([Item("", [], {}, count=4711), {"pin": 4711, "other": 1}], ("4711",)))
    assert found[0]["count"] == 4711
    assert found[1] == {"pin": MARKER, "other": 1}


def test_depth_is_no_obstacle():
    value = "s3cret"
    for _ in range(400):
        value = [{"a": value}]
    assert b"s3cret" not in msgspec.json.encode(masked({"arguments": value}, ("s3cret",)))


@given(
    json_values(st.text(max_size=30)), st.lists(secret_values, min_size=1, max_size=3), st.text()
)
@settings(max_examples=60, deadline=None)
def test_no_secret_is_left_in_any_string(value, secrets, around):
    planted = {"value": value, "planted": [around + secret + around for secret in secrets]}
    left = without_markers(json.dumps(masked(planted, tuple(secrets)), ensure_ascii=False))
    for secret in secrets:
        assert json.dumps(secret.strip(), ensure_ascii=False)[1:-1] not in left


@given(
    st.lists(st.sampled_from(["s3cret-value", quote("s3cret/value"), "x", "filler " * 3])),
    st.integers(0, 60),
)
@settings(max_examples=100, deadline=None)
def test_no_piece_of_a_secret_stands_at_a_cut(words, size):
    """What is shown is a beginning of what masking the whole would show."""
    whole = "".join(words)
    secrets = ("s3cret-value", "s3cret/value")
    read = whole[: size + margin(secrets)]
    shown = excerpt(mask_text(read, secrets), size, len(whole), secrets)
    assert mask_text(whole, secrets).startswith(shown)
    if len(whole) <= size:
        assert shown == mask_text(whole, secrets)[:size]


def test_without_secrets_an_excerpt_is_the_beginning():
    assert excerpt("abcdef"[: 3 + margin(())], 3, 6, ()) == "abc"
