"""Export what this process does with each queue, if `metrics.queues` is on (docs/metrics.md).

The store counts it anyway, for its samples; the counts are fetched for a scrape, or periodically if another process
serves /metrics.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

from prometheus_client.registry import Collector

from services.kit.metrics.queue_names import QueueNames
from services.kit.metrics.queue_totals import Done, Family, Journal, QueueTotals, families

log = logging.getLogger(__name__)


class QueueMeter(Collector):
    """Metrics per queue."""

    def __init__(
        self, edge: str, names: QueueNames, *, latencies: bool, journal: Journal | None = None
    ) -> None:
        """Write to `journal` if another process serves the metrics."""
        self._edge = edge
        self._names = names
        self._latencies = latencies
        self._journal = journal
        self._totals: dict[str, QueueTotals] = {}  # by label
        self._changed: set[str] = set()
        self._asks: list[Callable[[], None]] = []

    def meter(self, ask: Callable[[], None]) -> Callable[[str, Done], None]:
        """Register the function that makes a store report its counts; return the one that takes them."""
        self._asks.append(ask)
        return self.add

    def publish(self) -> None:
        """Update the metrics, and drop released labels. A journal that cannot be written now is written next time."""
        for ask in self._asks:
            ask()
        try:
            self._write()
        except OSError as error:  # out of descriptors or disk space
            fields = {"action": "queues_untold", "queues": len(self._changed)}
            log.warning("cannot write queue metrics, /metrics shows old ones: %s", error, extra=fields)

    def _write(self) -> None:
        """Write changed totals. Raises OSError."""
        self._names.keep_up()
        released = [label for label in self._totals if not self._names.has(label)]
        for label in released:
            del self._totals[label]
            self._changed.discard(label)
        if self._journal is not None:
            self._journal.write(self._totals, self._changed, rewrite=bool(released))
        self._changed.clear()

    def add(self, name: str, done: Done) -> None:
        """Add a store's counts of a queue."""
        label = self._names.label(name)
        self._totals.setdefault(label, QueueTotals()).add(done, latencies=self._latencies)
        self._changed.add(label)

    def collect(self) -> Iterator[Family]:
        """Return the metrics of all queues."""
        return families(self._edge, self._totals.copy())
