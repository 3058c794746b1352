"""What a benchmark tells: a figure, its unit, and what it should be."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """One measured number; `target` is the claim it stands for, "" for none."""

    name: str
    value: float
    unit: str
    target: str = ""

    def line(self) -> str:
        digits = 2 if self.value < 100 else 0
        return f"{self.name:<62} {self.value:>10.{digits}f} {self.unit:<8} {self.target}"


def median(work: Callable[[], object], rounds: int) -> float:
    """Return the median time of `work` in milliseconds, after a tenth of the rounds unmeasured."""
    for _ in range(rounds // 10):
        work()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3
