"""How a call of a model fails: a closed set, each with whether and when to try again."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from stenograph.engine.models.answer import Usage
from stenograph.errors import StenographError

FailureKind = Literal[
    "rate_limited",
    "overloaded",
    "server_error",
    "network",
    "interrupted",
    "empty_answer",
    "quota_exhausted",
    "unauthorized",
    "invalid_request",
    "context_too_long",
    "refused",
]

#: The first wait in seconds, doubled with each attempt; a kind that is absent is not tried again.
_FIRST_WAIT: dict[FailureKind, float] = {
    "rate_limited": 2.0,
    "overloaded": 2.0,
    "server_error": 1.0,
    "network": 1.0,
    "interrupted": 0.5,
    "empty_answer": 0.0,
}
LONGEST_WAIT = 60.0
#: The longest wait that a provider may ask for and get, in seconds: who waits longer is told.
MOST_PATIENT = 3_600.0


class ModelFailedError(StenographError):
    """A model gave no answer; `code` is one of the kinds.

    `retry_after` is what the provider asked for, in seconds. `usage` and `cost_usd` are what it
    charged for nothing, and `request` the JSON that was sent, where that is known.
    """

    def __init__(
        self,
        kind: FailureKind,
        message: str,
        *,
        retry_after: float | None = None,
        status: int | None = None,
        usage: Usage | None = None,
        cost_usd: float | None = None,
        request: str | None = None,
    ) -> None:
        super().__init__(message, code=kind)
        self.kind: FailureKind = kind
        self.retry_after = retry_after
        self.status = status
        self.usage = usage
        self.cost_usd = cost_usd
        self.request = request

    @property
    def retryable(self) -> bool:
        """Whether the same request may succeed later."""
        return self.kind in _FIRST_WAIT

    def without(self, secrets: Iterable[str]) -> "ModelFailedError":
        """The same failure with its message free of the secrets."""
        for secret in secrets:
            self.message = self.message.replace(secret, "[redacted-secret]")
        self.args = (self.message,)
        return self


@dataclass(frozen=True, slots=True)
class Patience:
    """How often one request is made before its failure is the answer."""

    attempts: int = 4


def wait_before_retry(
    failure: ModelFailedError, attempt: int, patience: Patience = Patience()
) -> float | None:
    """Seconds to wait after attempt number `attempt` (from 1) failed; None: do not try again.

    A provider that names its wait is believed, up to `MOST_PATIENT`: nobody should wait a day for
    a quota to come back without being told. The caller weighs it against the run's own deadline.
    """
    if attempt >= patience.attempts or not failure.retryable:
        return None
    if failure.retry_after is not None:
        return failure.retry_after if failure.retry_after <= MOST_PATIENT else None
    return min(_FIRST_WAIT[failure.kind] * 2.0 ** (attempt - 1), LONGEST_WAIT)
