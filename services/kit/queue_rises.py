"""What rose of queues, as a counter by label, made of totals that are the queues' own and go with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from prometheus_client.core import CounterMetricFamily

from services.kit.measure import Measure
from services.kit.queue_names import OTHER


class QueueRises:
    """Since the first look.

    Never less than before, whatever is deleted: a counter that falls has begun anew, Prometheus takes it. And each
    series is told as 0 before it rises, as a first value is no increase: until somebody has read it, what happens in a
    queue is told of the others.
    """

    def __init__(self, measure: Measure) -> None:
        self._measure = measure
        self._known: Mapping[str, int] | None = None  # totals of the last look, by queue
        self._risen: dict[str, int] = {OTHER: 0}  # by label
        self._read: set[str] = set()  # labels that somebody knows as they were before

    def count(self, totals: Mapping[str, int], label: Callable[[str], str]) -> None:
        if self._known is not None and OTHER not in self._read:
            return  # nobody has read the first 0: all that rises is told behind it
        risen = {label(name): 0 for name in totals} | {OTHER: 0}
        for name, total in totals.items() if self._known is not None else ():
            own = label(name)
            risen[own if own in self._read else OTHER] += max(0, total - (self._known or {}).get(name, 0))
        self._risen = {label: self._risen.get(label, 0) + number for label, number in risen.items()}
        self._read &= self._risen.keys()
        self._known = dict(totals)

    def family(self) -> CounterMetricFamily:
        """For somebody who reads it now."""
        found = CounterMetricFamily(self._measure.name, self._measure.text, labels=self._measure.label_names)
        for label, number in self._risen.items():
            found.add_metric([label], number)
        self._read |= self._risen.keys()
        return found
