"""`GET /metrics` for Prometheus: requests by route and status, and how long they took.

Routes are named by their template, so no id of the record becomes a label.
"""

from prometheus_client import (
    GC_COLLECTOR,
    PLATFORM_COLLECTOR,
    PROCESS_COLLECTOR,
    CollectorRegistry,
    Counter,
    Histogram,
    generate_latest,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST

_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)

CONTENT_TYPE = CONTENT_TYPE_LATEST


class Metrics:
    """The counters of one application."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        for collector in (PROCESS_COLLECTOR, PLATFORM_COLLECTOR, GC_COLLECTOR):
            self.registry.register(collector)
        self._requests = Counter(
            "stenograph_requests",
            "Requests answered.",
            ("method", "route", "status"),
            registry=self.registry,
        )
        self._seconds = Histogram(
            "stenograph_request_seconds",
            "Time from a request's head to the end of its answer.",
            ("method", "route"),
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self._found: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}

    def observe(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one answered request."""
        key = (method, route, status)
        children = self._found.get(key)
        if children is None:
            children = (
                self._requests.labels(method, route, str(status)),
                self._seconds.labels(method, route),
            )
            self._found[key] = children
        children[0].inc()
        children[1].observe(seconds)

    def text(self) -> bytes:
        """Write everything in Prometheus's text format."""
        return generate_latest(self.registry)
