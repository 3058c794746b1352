"""Rate limits: fixed windows of one minute, counted in this process.

Counting by hand costs a microsecond; the in-memory store of the `limits` library starts a timer
thread every ten milliseconds while requests arrive.
"""

import time
from collections.abc import Callable, Hashable

from stenograph.errors import TooManyRequestsError

WINDOW = 60


class Windows:
    """Counts per key in the present minute. Used on the event loop only."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._window = 0
        self._counts: dict[Hashable, int] = {}

    def take(self, key: Hashable, budget: int) -> int:
        """Count one request; 0 if it is within the budget, else seconds to the next window."""
        moment = self._clock()
        window = int(moment // WINDOW)
        if window != self._window:
            self._window, self._counts = window, {}
        count = self._counts.get(key, 0) + 1
        self._counts[key] = count
        return 0 if count <= budget else max(1, WINDOW - int(moment % WINDOW))

    def charge(self, key: Hashable, budget: int, message: str, retry: int | None = None) -> None:
        """As `take`, raising `TooManyRequestsError` over the budget; `retry` fixes the wait."""
        if wait := self.take(key, budget):
            raise TooManyRequestsError(message, wait if retry is None else retry)
