"""JSON as it comes: strict, of any size, never a crash, and with a place for what is wrong."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stenograph.errors import InvalidInputError
from stenograph.trajectories.atif.reading import MAX_NESTING, read_json, read_lines
from strategies.atif import values


@settings(max_examples=100, deadline=None)
@given(values, st.booleans())
def test_whatever_json_says_is_read_as_the_standard_library_reads_it(value, ascii_only):
    data = json.dumps(value, ensure_ascii=ascii_only).encode()
    assert read_json(data).value == value
    assert read_json(b"\xef\xbb\xbf" + data).value == value


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=40) | st.text('{}[]",:\\u dD8cf0123456789.eEn\n', max_size=40))
def test_any_bytes_are_read_or_refused(data):
    data = data if isinstance(data, bytes) else data.encode()
    try:
        found = read_json(data)
    except InvalidInputError:
        return
    assert isinstance(json.loads(data), type(found.value))


@pytest.mark.parametrize(
    ("data", "value", "replaced"),
    [
        (rb'"\ud800"', "\ufffd", 1),
        (rb'["\udc00\ud800", "\ud83d\ude00"]', ["\ufffd\ufffd", "😀"], 2),
        (rb'"\ud800\ud800\udc00"', "\ufffd\U00010000", 1),
        (rb'{"\uDFFF": "\\ud800"}', {"\ufffd": "\\ud800"}, 1),
        (rb'"\\\ud800"', "\\\ufffd", 1),
        (rb'"\ufffd"', "\ufffd", 0),
        ('["\ufffd", "'.encode() + rb'\ud800"]', ["\ufffd", "\ufffd"], 1),
    ],
)
def test_lone_surrogates_become_a_replacement_character_and_are_counted(data, value, replaced):
    found = read_json(data)
    assert (found.value, found.replaced_characters) == (value, replaced)


@pytest.mark.parametrize("number", [2**63, 2**64 + 1, -(2**70), 10**300])
def test_integers_keep_every_digit(number):
    assert read_json(str(number).encode()).value == number


@pytest.mark.parametrize("text", ["NaN", "[Infinity]", '{"a": -Infinity}', "[1e400]", "9" * 5000])
def test_what_is_no_number_is_refused(text):
    with pytest.raises(InvalidInputError):
        read_json(text.encode())


@pytest.mark.parametrize(
    "opening", [b"[", b'{"a":', b'{"\\\\\\"":[', b'["x",', b'["\\ud800",', b'["]]]]\\"",']
)
@pytest.mark.parametrize("depth", [MAX_NESTING + 1, 1_100, 10_000, 200_000])
def test_deep_nesting_is_refused(opening, depth):
    closing = bytes({91: b"]", 123: b"}"}[byte][0] for byte in opening[::-1] if byte in b"[{")
    levels = depth // len(closing) + 1
    for data in (opening * levels + b"1" + closing * levels, opening * levels):
        with pytest.raises(InvalidInputError, match="levels deep"):
            read_json(data)


def test_nesting_up_to_the_limit_is_read():
    data = b"[" * MAX_NESTING + b'"[[[[{{{"' + b"]" * MAX_NESTING
    assert json.dumps(read_json(data).value).encode() == data
    assert len(read_json(b"[" + b'"[{",' * 500 + b"1]").value) == 501


@pytest.mark.parametrize(
    ("data", "place", "reason"),
    [
        (b"", (1, 1, 0), "empty"),
        (b" \n ", (1, 1, 0), "empty"),
        (b'{"a": 1', (1, 8, 7), "too early"),
        (b'{\n"a": "xy', (2, 6, 7), "too early"),
        (b'{"a":\n1,}', (2, 3, 8), "no JSON"),
        (b'["\xff"]', (1, 3, 2), "UTF-8"),
        (b'[1,\n"\xed\xa0\x80"]', (2, 2, 5), "UTF-8"),
        (b'"a\nb"', (1, 3, 2), "no JSON"),
    ],
)
def test_an_error_names_the_place(data, place, reason):
    with pytest.raises(InvalidInputError, match=reason) as caught:
        read_json(data)
    details = caught.value.details
    assert (details["line"], details["column"], details["offset"]) == place


def test_bytes_that_are_no_text_are_replaced_only_where_that_was_asked_for():
    found = read_json(b'{"a":"x\xffy","b":"\xef\xbf\xbd\\ud800"}', replace_invalid=True)
    assert found.value == {"a": "x\ufffdy", "b": "\ufffd\ufffd"}
    assert found.replaced_characters == 2


def test_the_last_of_two_keys_wins():
    assert read_json(b'{"a":1,"a":2}').value == {"a": 2}


def test_only_a_newline_ends_a_line():
    data = '{"a":"\u2028\u2029\x85\x0b\x0c"}\r\n\n  \n"b\\n"\n{"c'.encode()
    assert list(read_lines(data)) == [
        (1, '{"a":"\u2028\u2029\x85\x0b\x0c"}'.encode()),
        (4, b'"b\\n"'),
        (5, b'{"c'),
    ]


@settings(max_examples=100)
@given(st.lists(st.binary(min_size=1).filter(lambda b: b"\n" not in b and b.strip()), max_size=5))
def test_lines_come_back_whole(lines):
    lines = [line.removesuffix(b"\r") or b"x" for line in lines]
    lines = [line for line in lines if line.strip() and not line.endswith(b"\r")]
    for end in (b"", b"\n"):
        got = list(read_lines(b"\n".join(lines) + end))
        assert [line for _, line in got] == lines or lines[0].startswith(b"\xef\xbb\xbf")
        assert [number for number, _ in got] == list(range(1, len(lines) + 1))
