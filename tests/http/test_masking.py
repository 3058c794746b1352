"""A run's secret values leave in no answer."""

import json

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from stenograph.http.masking import mask_text, masked


class Item(msgspec.Struct):
    text: str
    parts: list[str]
    extra: dict[str, str]
    count: int = 3
    left_out: str | msgspec.UnsetType = msgspec.UNSET


ITEM = Item("the key is s3cret!", ["s3cret", "x"], {"s3cret": "say s3cret twice s3cret"})


def test_without_secrets_the_value_is_untouched():
    assert masked(ITEM, ()) is ITEM


def test_every_string_is_masked_keys_too_and_the_shape_stays():
    assert json.loads(msgspec.json.encode(masked(ITEM, ("s3cret",)))) == {
        "text": "the key is [redacted-secret]!",
        "parts": ["[redacted-secret]", "x"],
        "extra": {"[redacted-secret]": "say [redacted-secret] twice [redacted-secret]"},
        "count": 3,
    }


def test_a_longer_secret_goes_before_one_that_it_holds():
    assert mask_text("abcdef abc", ("abc", "abcdef")) == "[redacted-secret] [redacted-secret]"
    assert masked(["abcdef"], ("abc", "abcdef")) == ["[redacted-secret]"]


def test_an_empty_secret_masks_nothing():
    assert masked(["abc"], ("",)) == ["abc"]


@given(
    st.recursive(
        st.text(max_size=30) | st.integers() | st.none() | st.booleans(),
        lambda inner: (
            st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4)
        ),
        max_leaves=10,
    ),
    st.lists(st.text(alphabet="abcdefgh0123", min_size=4, max_size=12), min_size=1, max_size=3),
    st.text(max_size=8),
)
@settings(max_examples=100, deadline=None)
def test_no_secret_is_left_in_the_encoded_answer(value, secrets, around):
    planted = {"value": value, "planted": [around + secret + around for secret in secrets]}
    text = json.dumps(masked(planted, tuple(secrets)), ensure_ascii=False)
    for secret in secrets:
        assert secret not in text.replace("[redacted-secret]", "|")
