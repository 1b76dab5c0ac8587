"""What waits in the queues of Queue resources, as one metric: of each namespace, and by name where somebody said so."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from penstock_operator.metrics import measures
from services.kit.metrics import OTHER

Place = tuple[str, str]  # namespace and name of the resource


class Depths(Collector):
    """`most` resources are named: the first that are heard of, for as long as they are there; of each namespace the
    others are summed up, so that the sum over a namespace is right either way: scaling goes by it."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._named: set[Place] = set()
        self._depths: dict[Place, int] = {}

    def set(self, namespace: str, name: str, depth: int) -> None:
        place = (namespace, name)
        self._depths[place] = depth
        if len(self._named) < self._most:
            self._named.add(place)

    def forget(self, namespace: str, name: str) -> None:
        """It is gone, or has no queue any more."""
        self._depths.pop((namespace, name), None)
        self._named.discard((namespace, name))

    def collect(self) -> Iterator[GaugeMetricFamily]:
        sums: dict[Place, int] = {}
        for place, depth in self._depths.copy().items():  # in a thread of its own, while others are heard of
            label = place if place in self._named else (place[0], OTHER)
            sums[label] = sums.get(label, 0) + depth
        family = GaugeMetricFamily(
            measures.DEPTH.name, measures.DEPTH.text, labels=measures.DEPTH.label_names
        )
        for label, depth in sums.items():
            family.add_metric(label, depth)
        yield family
