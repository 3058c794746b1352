"""Whatever is done to conversations in whatever order, every reading agrees with a plain model."""

import os
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

EXHAUSTIVE = bool(os.environ.get("STENO_EXHAUSTIVE"))


@pytest.mark.parametrize(
    ("engine", "examples", "steps"),
    [("sqlite", 200, 50), ("postgres", 40, 40)] if EXHAUSTIVE
    else [("sqlite", 25, 25), ("postgres", 6, 20)],
)  # fmt: skip
def test_every_reading_agrees_with_the_plain_model(
    request, monkeypatch, tmp_path, sealer, engine, examples, steps
):
    database = location.connect(request.getfixturevalue(f"{engine}_location"))
    api = Api(database, make_org(database), unlimited(tmp_path / "data"), sealer)
    time = SimpleNamespace(at=clock.now())
    time.time_ns = lambda: time.at * 1_000
    monkeypatch.setattr(clock, "time", time)
    try:
        run_state_machine_as_test(
            lambda: Machine(api, time),
            settings=settings(
                max_examples=examples,
                stateful_step_count=steps,
                deadline=None,
                derandomize=not EXHAUSTIVE,
                database=None,
                print_blob=True,
                suppress_health_check=list(HealthCheck),
            ),
        )
    finally:
        api.close()
        database.close()
