"""Export how many copies the text service's log has lost."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

from services.kit.metrics import state_measures


class LogLosses(Collector):
    """A counter of copies lost since the first `update`. A smaller count than before comes from another log."""

    def __init__(self) -> None:
        self._known: int | None = None
        self._lost = 0

    def update(self, copies_lost: int | None) -> None:
        """Take the log's own count; None leaves the counter as it is."""
        if copies_lost is None:
            return
        if self._known is not None:
            self._lost += max(0, copies_lost - self._known)
        self._known = copies_lost

    def collect(self) -> Iterator[CounterMetricFamily]:
        """Return the counter."""
        one = state_measures.COPIES_LOST
        yield CounterMetricFamily(one.name, one.text, self._lost)
