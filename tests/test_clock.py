"""Moments as RFC 3339, against `datetime`."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from stenograph.clock import iso, iso_seconds, parse_iso

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: Every moment of the years 1 to 9999, whole seconds and minutes among them.
MOMENTS = st.datetimes(timezones=st.just(UTC)).map(
    lambda moment: (moment - EPOCH) // timedelta(microseconds=1)
)
ROUND = st.sampled_from([1, 1_000, 1_000_000, 60_000_000])


@given(MOMENTS, ROUND)
def test_what_is_written_is_that_moment(at, unit):
    at -= at % unit
    assert datetime.fromisoformat(iso(at)) == EPOCH + timedelta(microseconds=at)
    assert parse_iso(iso(at)) == at


@given(MOMENTS, ROUND)
def test_it_has_as_many_fraction_digits_as_it_needs(at, unit):
    at -= at % unit
    whole, _, fraction = iso(at).removesuffix("Z").partition(".")
    assert len(whole) == len("2026-12-01T09:00:05")
    assert fraction == f"{at % 1_000_000:06}".rstrip("0")
    assert iso_seconds(at) == whole + "Z"
