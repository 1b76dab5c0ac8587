"""What rose of queues, as a counter by label, made of totals that are the queues' own and go with them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from prometheus_client.core import CounterMetricFamily

from services.kit.measure import Measure
from services.kit.metrics.queue_names import OTHER


class QueueRises:
    """Since the first look.

    Never less than before, whatever is deleted: a counter that falls has begun anew, Prometheus takes it. And each
    series is told as 0 before it rises, as a first value is no increase: until somebody has read it, what happens in a
    queue is told of the others.
    """

    def __init__(self, measure: Measure) -> None:
        self._measure = measure
        self._known: Mapping[str, int | None] | None = (
            None  # totals by queue; None: there is one that nobody read yet
        )
        self._risen: dict[str, int] = {OTHER: 0}  # by label
        self._read: set[str] = set()  # labels that somebody knows as they were before

    def count(
        self, totals: Mapping[str, int], label: Callable[[str], str], unread: Collection[str] = ()
    ) -> None:
        """unread: queues that are there, and have no total now: theirs rises from the last one that was known."""
        if self._known is not None and OTHER not in self._read:
            return  # nobody has read the first 0: all that rises is told behind it
        risen = {label(name): 0 for name in (*totals, *unread)} | {OTHER: 0}
        known = self._known
        for name, total in totals.items() if known is not None else ():
            own, before = label(name), (known or {}).get(name, 0)
            risen[own if own in self._read else OTHER] += 0 if before is None else max(0, total - before)
        self._risen = {label: self._risen.get(label, 0) + number for label, number in risen.items()}
        self._read &= self._risen.keys()
        self._known = {**totals, **{name: (known or {}).get(name) for name in unread}}

    def family(self) -> CounterMetricFamily:
        """For somebody who reads it now."""
        found = CounterMetricFamily(self._measure.name, self._measure.text, labels=self._measure.label_names)
        for label, number in self._risen.items():
            found.add_metric([label], number)
        self._read |= self._risen.keys()
        return found
