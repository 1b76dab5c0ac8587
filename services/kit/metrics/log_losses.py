"""What the text service's log has lost, as a metric: of one process that looks at it, as it is the same for all."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

from services.kit.metrics import state_measures


class LogLosses(Collector):
    """`tell` the log's own count, from the first look on; one that falls is an older copy's, or another log's."""

    def __init__(self) -> None:
        self._known: int | None = None
        self._lost = 0

    def update(self, copies_lost: int | None) -> None:
        """None: nobody can look; what was known stays."""
        if copies_lost is None:
            return
        if self._known is not None:
            self._lost += max(0, copies_lost - self._known)
        self._known = copies_lost

    def collect(self) -> Iterator[CounterMetricFamily]:
        one = state_measures.COPIES_LOST
        yield CounterMetricFamily(one.name, one.text, self._lost)
