"""`clean` is the exporters' shortcut: what it calls clean, masking would not change."""

import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stenograph.trajectories.redaction import Redactor
from stenograph.trajectories.redaction.shapes import (
    KNOWN_CREDENTIALS,
    OWN_CREDENTIALS,
    UNBROKEN_RUN,
)
from strategies.secrets import (
    around,
    json_values,
    known_credentials,
    long_runs,
    own_credentials,
    secret_values,
    spellings,
)

#: Control characters, quotes, backslashes and letters that escapes end in, before and after.
CONTEXT = st.text('\x00\x01\x08\t\n\x0c\r\x1b\x7f "\\/nu0:=@é\u2028', max_size=3)


def words_of(*shapes):
    """Texts made to fit the shapes' own patterns, as far as these can be turned into examples."""
    return st.one_of(
        [
            st.from_regex(shape.find.replace(rb"(?i:", rb"(?:").decode(), fullmatch=True)
            for shape in shapes
        ]
    )


SHAPED = words_of(*OWN_CREDENTIALS, *KNOWN_CREDENTIALS, UNBROKEN_RUN)


@pytest.mark.parametrize(
    "shape", [shape for shape in (*OWN_CREDENTIALS, *KNOWN_CREDENTIALS) if shape.hints]
)
def test_every_find_holds_a_hint(shape):
    @given(words_of(shape))
    @settings(max_examples=15)
    def holds(text):
        assert any(hint.decode() in text.lower() for hint in shape.hints)

    holds()


def is_kept(redactor, value):
    encoded = msgspec.json.encode(value)
    return msgspec.json.encode(redactor.value(value)) == encoded


@given(CONTEXT, SHAPED, CONTEXT, st.sampled_from(["standard", "ephemeral"]))
@settings(max_examples=500)
def test_clean_bytes_hold_no_shape(before, shaped, after, tier):
    redactor = Redactor([], tier)
    value = [before + shaped + after]
    assert is_kept(redactor, value) or not redactor.clean(msgspec.json.encode(value))


@given(secret_values, CONTEXT, st.data(), CONTEXT)
@settings(max_examples=200)
def test_clean_bytes_hold_no_secret(secret, before, data, after):
    redactor = Redactor([secret], "ephemeral")
    spelled = data.draw(st.sampled_from(spellings(secret)))
    for value in (before + spelled + after, {before + spelled + after: 1}):
        assert not is_kept(redactor, value)
        assert not redactor.clean(msgspec.json.encode(value))
        assert not redactor.clean(msgspec.json.encode([json.dumps(value)]))


AWS_SECRET = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"


@pytest.mark.parametrize("before", ["", "\n", "\x01", "\x1f", '"', "=", " ", "é", "\\n", "(", ":"])
@pytest.mark.parametrize("after", ["", "\n", "\x00", '"', " ", "é", "\\n", ","])
def test_a_shape_without_a_mark_of_its_own_is_found_in_any_context(before, after):
    value = before + AWS_SECRET + after
    redactor = Redactor([], "standard")
    assert AWS_SECRET not in redactor.text(value)
    assert not redactor.clean(msgspec.json.encode(value))


PLANTED = st.one_of(
    st.tuples(known_credentials).map(lambda pair: pair[0][1]), own_credentials, long_runs
).flatmap(around)
ANY_STRING = st.one_of(
    st.text(max_size=8), PLANTED, st.sampled_from(["password", "x-api-key", "token", "Bearer x"])
)


@given(json_values(ANY_STRING), st.lists(secret_values, max_size=2))
@settings(max_examples=300)
def test_clean_documents_are_left_alone(value, secrets):
    for tier in ("standard", "ephemeral", "none"):
        redactor = Redactor(secrets, tier)
        if redactor.clean(msgspec.json.encode(value)):
            assert is_kept(redactor, value)
            assert not redactor.counts


@pytest.mark.parametrize(
    "value",
    [
        "An ordinary sentence, with a path /usr/lib/python3/dist-packages and an id.",
        {"step_id": 1, "source": "agent", "message": "done\n", "timestamp": "2026-01-02T03:04:05Z"},
        ["018f3f2e-7b7a-7cc3-98c4-dc0c0c07398f", 123456789, -0.5, None, True],
    ],
)
def test_ordinary_documents_are_clean(value):
    assert Redactor(["hunter2"], "standard").clean(msgspec.json.encode(value))


def test_names_that_look_like_aliases_are_not_clean():
    assert not Redactor([], "standard").clean(b'{"tool_call_id":"redacted-ref-1"}')
