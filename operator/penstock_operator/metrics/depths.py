"""The depth of Queues as a metric: by name for a limited number, the rest summed by namespace."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from penstock_operator.metrics import measures
from services.kit.metrics import OTHER

Place = tuple[str, str]  # namespace and name of the resource


class Depths(Collector):
    """A collector for the depths of Queues; the sum over a namespace is always complete, as scaling needs it."""

    def __init__(self, most: int) -> None:
        """Start empty. most: the first so many Queues are named, the others are summed per namespace."""
        self._most = most
        self._named: set[Place] = set()
        self._depths: dict[Place, int] = {}

    def set(self, namespace: str, name: str, depth: int) -> None:
        """Set the depth of a Queue."""
        place = (namespace, name)
        self._depths[place] = depth
        if len(self._named) < self._most:
            self._named.add(place)

    def forget(self, namespace: str, name: str) -> None:
        """Remove a Queue that was deleted or has no queue any more."""
        self._depths.pop((namespace, name), None)
        self._named.discard((namespace, name))

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the metric."""
        sums: dict[Place, int] = {}
        for place, depth in self._depths.copy().items():  # runs in a thread of its own
            label = place if place in self._named else (place[0], OTHER)
            sums[label] = sums.get(label, 0) + depth
        family = GaugeMetricFamily(
            measures.DEPTH.name, measures.DEPTH.text, labels=measures.DEPTH.label_names
        )
        for label, depth in sums.items():
            family.add_metric(label, depth)
        yield family
