"""The nightly prune of a server."""

import threading
from datetime import UTC, datetime

import pytest

from people import Org
from retention import rows
from stenograph.clock import now
from stenograph.errors import InvalidInputError
from stenograph.http import idempotency
from stenograph.retention import nightly
from stenograph.storage.database import Database


@pytest.mark.parametrize(
    ("moment", "seconds"),
    [
        ("2026-12-01T02:59:59.5+00:00", 0.5),
        ("2026-12-01T03:00:00+00:00", 86_400),
        ("2026-12-01T03:00:00.25+00:00", 86_399.75),
        ("2026-12-31T23:00:00+00:00", 4 * 3_600),
        ("2026-12-01T00:00:00+00:00", 3 * 3_600),
    ],
)
def test_the_next_night_is_ahead_and_no_further_than_a_day(moment: str, seconds: float) -> None:
    at = datetime.fromisoformat(moment).astimezone(UTC)
    assert nightly.seconds_until((3, 0), at) == seconds


@pytest.mark.parametrize("text", ["3:00", "24:00", "03:60", "03:00 ", "٠٣:٠٠", "never", "0300"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        nightly.read_time(text)
    assert refused.value.code == "invalid_setting"


def test_times_of_a_day_and_never(database: Database) -> None:
    assert nightly.read_time("03:00") == (3, 0)
    assert nightly.read_time("23:59") == (23, 59)
    assert nightly.read_time("") is None
    before = threading.active_count()
    with nightly.pruning(database, ""):
        assert threading.active_count() == before


def test_each_night_prunes_by_policy_until_the_server_stops(
    database: Database, org: Org, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = iter([0.0, 0.0])
    third = threading.Event()

    def until(*_: object) -> float:
        wait = next(waits, None)
        if wait is None:
            third.set()
            return 3_600
        return wait

    monkeypatch.setattr(nightly, "seconds_until", until)
    database.write(lambda tx: rows.build(tx, org.owner))
    with nightly.pruning(database, "03:00"):
        assert third.wait(60)
    with database.read() as tx:
        assert tx.value("SELECT count(*) FROM tasks") == 0
    assert "nightly-prune" not in {thread.name for thread in threading.enumerate()}


def test_a_server_that_stops_does_not_wait_for_all_of_it(database: Database, org: Org) -> None:
    database.write(lambda tx: rows.build(tx, org.owner))
    stop = threading.Event()
    stop.set()
    nightly.once(database, stop)
    with database.read() as tx:
        assert tx.value("SELECT count(*) FROM tasks") == 0
        assert tx.value("SELECT count(*) FROM invocations") == 1


def test_a_night_that_fails_is_said_and_does_not_end_the_nights(
    database: Database, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(nightly, "prune", fail)
    nightly.once(database, threading.Event())
    assert "prune_failed" in capsys.readouterr().out


def test_what_else_is_to_be_swept_is_swept_in_the_same_night(database: Database, org: Org) -> None:
    receipt = {"principal_id": org.owner.principal_id, "scope": "s", "digest": b"d"}
    names = [*receipt, "key", "status", "resource", "created_at"]
    with_ages = [("old", now() - 2 * idempotency.KEPT), ("new", now())]
    rows = [(*receipt.values(), key, 201, "r", at) for key, at in with_ages]
    database.write(lambda tx: tx.insert_many("idempotency_receipts", names, rows))
    nightly.once(database, threading.Event(), idempotency.prune)
    with database.read() as tx:
        assert tx.rows("SELECT key FROM idempotency_receipts") == [("new",)]
