"""When a call is made again, and after how long."""

from typing import get_args

import pytest

from stenograph.engine.models.failures import (
    LONGEST_WAIT,
    FailureKind,
    ModelFailedError,
    Patience,
    wait_before_retry,
)

FUTILE = {"quota_exhausted", "unauthorized", "invalid_request", "context_too_long", "refused"}


@pytest.mark.parametrize("kind", get_args(FailureKind))
def test_what_will_fail_again_is_not_tried_again(kind: FailureKind) -> None:
    failure = ModelFailedError(kind, "no", retry_after=3.0)
    assert failure.code == kind
    assert failure.retryable == (kind not in FUTILE)
    assert wait_before_retry(failure, 1) == (3.0 if failure.retryable else None)


def test_waits_double_up_to_a_minute_and_end_with_patience() -> None:
    failure = ModelFailedError("overloaded", "no")
    patience = Patience(attempts=9)
    waits = [wait_before_retry(failure, attempt, patience) for attempt in range(1, 10)]
    assert waits == [2.0, 4.0, 8.0, 16.0, 32.0, LONGEST_WAIT, LONGEST_WAIT, LONGEST_WAIT, None]


def test_a_provider_that_names_its_wait_is_believed() -> None:
    failure = ModelFailedError("rate_limited", "no", retry_after=300.0)
    assert wait_before_retry(failure, 2) == 300.0
    assert wait_before_retry(failure, Patience().attempts) is None


@pytest.mark.parametrize("asked", [3_601.0, 1e23, float("inf")])
def test_nobody_waits_for_hours_without_being_told(asked: float) -> None:
    failure = ModelFailedError("rate_limited", "no", retry_after=asked)
    assert wait_before_retry(failure, 1) is None
