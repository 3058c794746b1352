"""Events go thirty days after they were written, in batches; the count of a journal stays."""

import pytest

from feeds import new_session
from stenograph.clock import DAY, now
from stenograph.events import expiry, feed, journal, store
from stenograph.events.journal import Event
from stenograph.ids import first_id, new_id


@pytest.fixture
def session(database, org):
    return new_session(database, org.owner)


def write(database, session, count, days=0):
    """Append events and let them have been written some days ago."""

    def act(tx):
        last = journal.append(tx, session, *(Event("usage", payload={"cost_usd": 0.0}),) * count)
        if days:
            for number in range(last - count + 1, last + 1):
                stem = first_id(now() - days * DAY)[:14]
                tx.run(
                    "UPDATE events SET public_id = :new WHERE sequence = :number",
                    new=stem + new_id()[14:],
                    number=number,
                )

    database.write(act)


def left(database, session):
    with database.read() as tx:
        return [entry.sequence for entry in feed.page(tx, session, 0, 500)]


def test_what_is_over_age_goes_and_the_watermark_stays(database, session):
    write(database, session, 3, days=31)
    write(database, session, 2, days=29)
    write(database, session, 1)
    assert expiry.sweep(database) == 3
    assert left(database, session) == [4, 5, 6]
    with database.read() as tx:
        assert store.watermark(tx, session) == 6
    assert expiry.sweep(database) == 0
    write(database, session, 1)
    assert left(database, session) == [4, 5, 6, 7]


def test_a_batch_is_bounded_and_takes_the_oldest(database, session):
    write(database, session, 2, days=40)
    write(database, session, 3, days=35)
    before = now() - expiry.KEPT
    assert database.write(lambda tx: expiry.expire(tx, before, 2)) == 2
    assert left(database, session) == [3, 4, 5]
    assert database.write(lambda tx: expiry.expire(tx, before, 2)) == 2
    assert database.write(lambda tx: expiry.expire(tx, before, 2)) == 1
    assert database.write(lambda tx: expiry.expire(tx, before, 2)) == 0


def test_a_sweep_goes_on_batch_by_batch_until_it_is_told_to_stop(database, session, monkeypatch):
    monkeypatch.setattr(expiry, "BATCH", 2)
    write(database, session, 7, days=31)
    counts = []

    def stop(count):
        counts.append(count)
        if len(counts) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        expiry.sweep(database, stop)
    assert counts == [2, 4]
    assert expiry.sweep(database) == 3


def test_an_event_counts_from_when_it_was_written_not_from_what_it_tells_of(database, session):
    database.write(lambda tx: journal.append(tx, session, Event("usage", occurred_at=1)))
    assert expiry.sweep(database) == 0
    assert left(database, session) == [1]


def test_the_first_id_of_a_moment_sorts_before_all_that_follow():
    moment = now()
    assert first_id(moment - 1_000) < first_id(moment) <= new_id() < first_id(moment + DAY)
