"""Monotonic counters built from per-queue totals that reset when a queue is deleted."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from prometheus_client.core import CounterMetricFamily

from services.kit.measure import Measure
from services.kit.metrics.queue_names import OTHER


class QueueCounter:
    """A counter by label, of increases since the first `count`.

    It never falls when queues are deleted, because Prometheus takes that for a restart. Each series is exported as 0
    before it rises, because Prometheus does not see a first value as an increase. Until then, increases count as
    `_other`.
    """

    def __init__(self, measure: Measure) -> None:
        self._measure = measure
        self._known: Mapping[str, int | None] | None = None  # totals by queue; None: not readable yet
        self._counts: dict[str, int] = {OTHER: 0}  # by label
        self._exported: set[str] = set()  # labels that have been exported

    def count(
        self, totals: Mapping[str, int], label: Callable[[str], str], unreadable: Collection[str] = ()
    ) -> None:
        """Add increases of the totals by queue. Queues that are `unreadable` now keep their last known total."""
        if self._known is not None and OTHER not in self._exported:
            return  # the first 0 was not exported yet: count all increases after it
        increases = {label(name): 0 for name in (*totals, *unreadable)} | {OTHER: 0}
        known = self._known
        for name, total in totals.items() if known is not None else ():
            own, before = label(name), (known or {}).get(name, 0)
            increases[own if own in self._exported else OTHER] += (
                0 if before is None else max(0, total - before)
            )
        self._counts = {label: self._counts.get(label, 0) + number for label, number in increases.items()}
        self._exported &= self._counts.keys()
        self._known = {**totals, **{name: (known or {}).get(name) for name in unreadable}}

    def family(self) -> CounterMetricFamily:
        """Return the metric, to be exported now."""
        found = CounterMetricFamily(self._measure.name, self._measure.text, labels=self._measure.label_names)
        for label, number in self._counts.items():
            found.add_metric([label], number)
        self._exported |= self._counts.keys()
        return found
