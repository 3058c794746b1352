"""Whatever is done to conversations in whatever order, every reading agrees with a plain model."""

import os
from itertools import count
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from conftest import unlimited
from model.machine import Machine
from people import make_org
from serving import Api
from stenograph import clock
from stenograph.storage import location

#: Examples and steps of each: in every run, and when asked to look longer.
USUAL = {"sqlite": (25, 25), "postgres": (6, 20)}
EXHAUSTIVE = {"sqlite": (300, 50), "postgres": (60, 40)}


@pytest.fixture
def empty(request, tmp_path, sqlite_template):
    """Make an empty database of an engine, again and again."""

    def sqlite(number):
        folder = tmp_path / str(number)
        folder.mkdir(mode=0o700)
        place = location.locate(folder, None)
        place.path.write_bytes(sqlite_template.read_bytes())
        return place

    def postgres(number):
        place, cleaner, emptying = request.getfixturevalue("migrated_postgres")
        cleaner.execute(emptying)
        return place

    numbers, makers = count(), {"sqlite": sqlite, "postgres": postgres}
    return lambda engine: location.connect(makers[engine](next(numbers)))


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_every_reading_agrees_with_the_plain_model(monkeypatch, tmp_path, empty, sealer, engine):
    time = SimpleNamespace(at=clock.now())
    time.time_ns = lambda: time.at * 1_000
    monkeypatch.setattr(clock, "time", time)

    def begin():
        database = empty(engine)
        return Machine(Api(database, make_org(database), unlimited(tmp_path), sealer), time)

    thorough = bool(os.environ.get("STENO_EXHAUSTIVE"))
    examples, steps = (EXHAUSTIVE if thorough else USUAL)[engine]
    run_state_machine_as_test(
        begin,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            derandomize=not thorough,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
