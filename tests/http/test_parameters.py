"""Query parameters and cursors: what is read, what is refused, and that cursors come back."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stenograph.errors import InvalidInputError
from stenograph.http import paging
from stenograph.http.parameters import Choice, Cursor, Flag, Integer, Text

LIMIT = Integer(name="limit", default=20, low=1, high=100, lenient=True)
FIRST = Integer(name="first", default=50, low=1, high=200)


@pytest.mark.parametrize(
    ("text", "number"),
    [("1", 1), ("100", 100), ("+5", 5), (" 5 ", 5), ("1_0", 10), ("007", 7)],
)
def test_the_agent_api_reads_whole_numbers_leniently(text, number):
    assert LIMIT.read({"limit": text}) == number


@pytest.mark.parametrize(
    "text",
    ["", " ", "abc", "5.0", "1e1", "0", "101", "-1", "0x10", "1__0", "_1", "1_", "٣", "9" * 5000,
     "1\x00", "--1", "+-1", "1 0", "5,0", "NaN"],
)  # fmt: skip
def test_what_is_no_such_number_is_refused_with_its_name(text):
    for parameter in (LIMIT, FIRST):
        if text == "101" and parameter is FIRST:
            continue
        with pytest.raises(InvalidInputError) as error:
            parameter.read({parameter.name: text})
        assert error.value.code == "parameter_invalid"
        assert error.value.message == f"Invalid parameter: {parameter.name}"


@pytest.mark.parametrize("text", ["+5", " 5", "5 ", "1_0", "201"])
def test_v3_reads_whole_numbers_strictly(text):
    with pytest.raises(InvalidInputError):
        FIRST.read({"first": text})


def test_absent_is_the_default_and_a_list_limit_clamps():
    assert LIMIT.read({}) == 20
    clamping = Integer(name="limit", default=25, low=1, high=100, clamp=True, lenient=True)
    assert clamping.read({"limit": "5000"}) == 100
    with pytest.raises(InvalidInputError):
        clamping.read({"limit": "0"})
    assert Integer(name="n").find({}) is None
    with pytest.raises(InvalidInputError) as error:
        Integer(name="n").read({})
    assert error.value.code == "parameter_missing"


@given(st.integers(-(10**30), 10**30))
@settings(max_examples=200, deadline=None)
def test_every_number_in_range_is_read_and_no_other(number):
    if 1 <= number <= 100:
        assert LIMIT.read({"limit": str(number)}) == number
    else:
        with pytest.raises(InvalidInputError):
            LIMIT.read({"limit": str(number)})


def test_choices_flags_and_texts():
    order = Choice(name="order", options=("asc", "desc"), default="asc")
    assert order.read({}) == "asc"
    assert order.read({"order": "desc"}) == "desc"
    flag = Flag(name="side")
    assert [flag.read({"side": t}) for t in ("1", "true", "0", "false")] == [
        True,
        True,
        False,
        False,
    ]
    assert flag.read({}) is False
    query = Text(name="query", required=True, max_bytes=4)
    assert query.read({"query": "éé"}) == "éé"
    for parameter, text in ((order, "ASC"), (order, ""), (flag, "yes"), (flag, ""), (query, "ééé")):
        with pytest.raises(InvalidInputError):
            parameter.read({parameter.name: text})
    with pytest.raises(InvalidInputError) as error:
        query.read({})
    assert error.value.code == "parameter_missing"


# --- cursors -----------------------------------------------------------------------------------

BEFORE = Cursor(name="before", decode=paging.parse_task_cursor, blank=True)
AFTER = Cursor(name="after", decode=paging.position, code="invalid_cursor")


def test_the_documented_cursors():
    assert paging.task_cursor(412) == "YWx0cjo0MTI"
    assert paging.event_cursor(7) == "Y3ZlaTo3"
    assert paging.parse_task_cursor("YWx0cjo0MTI") == 412
    assert paging.parse_event_cursor("Y3ZlaTo3") == 7
    assert paging.parse_task_cursor(paging.encode(b"altr:0")) == 0


@given(st.integers(0, 2**63 - 1))
@settings(max_examples=100, deadline=None)
def test_a_cursor_comes_back_and_only_to_its_own_kind(number):
    task, event = paging.task_cursor(number), paging.event_cursor(number)
    assert paging.parse_task_cursor(task) == number
    assert paging.parse_event_cursor(event) == number
    assert paging.parse_task_cursor(event) is None
    assert paging.parse_event_cursor(task) is None
    assert paging.position(str(number)) == number
    assert set(task) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")


@pytest.mark.parametrize(
    "text",
    ["412", "YWx0cjo0MTI=", "YWx0cjo0MTI\n", "!!!!", "é", paging.encode(b"altr:-1"),
     paging.encode(b"altr:"), paging.encode(b"altr:x"), paging.encode(b"altr:1.5"),
     paging.encode(b"altr: 1"), paging.encode(b"altr:01"), paging.encode(b"altr:" + b"9" * 30),
     paging.encode(b"\xff\xfe"), "A" * 5000, "A", "\ud800"],
)  # fmt: skip
def test_what_was_never_issued_is_refused(text):
    with pytest.raises(InvalidInputError) as error:
        BEFORE.read({"before": text})
    assert error.value.message == "Invalid parameter: before"


@given(st.text(max_size=60))
@settings(max_examples=200, deadline=None)
def test_no_text_breaks_the_reading_of_cursors(text):
    for parse, write in (
        (paging.parse_task_cursor, paging.task_cursor),
        (paging.parse_event_cursor, paging.event_cursor),
        (paging.position, str),
    ):
        found = parse(text)
        assert found is None or write(found) == text
    assert paging.parse_keyset_cursor(text, "asc", {"id": int}) is None


def test_a_blank_cursor_is_the_newest_page_where_that_is_allowed():
    assert BEFORE.read({"before": ""}) is None
    assert BEFORE.read({"before": "  "}) is None
    assert BEFORE.read({}) is None
    for text in ("", " ", "-1", "01", "1.0", "abc", "9" * 19):
        with pytest.raises(InvalidInputError) as error:
            AFTER.read({"after": text})
        assert error.value.code == "invalid_cursor"


@given(st.integers(-(2**62), 2**62), st.text(max_size=40), st.sampled_from(["asc", "desc"]))
@settings(max_examples=100, deadline=None)
def test_a_keyset_cursor_belongs_to_its_list_and_direction(number, text, direction):
    cursor = paging.keyset_cursor(direction, at=number, name=text)
    columns = {"at": int, "name": str}
    found = paging.parse_keyset_cursor(cursor, direction, columns)
    assert found == {"at": number, "name": text}
    other = "asc" if direction == "desc" else "desc"
    assert paging.parse_keyset_cursor(cursor, other, columns) is None
    assert paging.parse_keyset_cursor(cursor, direction, {"at": int}) is None
    assert paging.parse_keyset_cursor(cursor, direction, {"at": str, "name": str}) is None


@pytest.mark.parametrize(
    "data",
    [b"{}", b"[]", b"null", b'{"id":true,"dir":"asc"}', b'{"id":1.0,"dir":"asc"}',
     b'{"id":99999999999999999999,"dir":"asc"}', b'{"id":1}', b'{"id":1,"dir":"asc","x":1}',
     b'{"id":' + b"[" * 900],
)  # fmt: skip
def test_a_keyset_cursor_of_another_shape_is_none(data):
    assert paging.parse_keyset_cursor(paging.encode(data), "asc", {"id": int}) is None
