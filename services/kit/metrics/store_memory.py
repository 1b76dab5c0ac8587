"""Export the memory use of the store as metrics, in one process for all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from services.kit.metrics import state_measures


class Memory(Protocol):
    """The memory of the store; None: unknown, or no limit."""

    @property
    def used(self) -> int | None:
        """Return the bytes in use."""

    @property
    def limit(self) -> int | None:
        """Return the limit in bytes."""

    @property
    def fullest(self) -> float | None:
        """Return the used share of the fullest server's limit."""


class StoreMemory(Collector):
    """Metrics of the store's memory, as of the last `update`."""

    def __init__(self) -> None:
        self._memory: Memory | None = None

    def update(self, memory: Memory | None) -> None:
        """Take the memory use; None: the store cannot be read."""
        self._memory = memory

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the metrics; without values for what is unknown."""
        found = self._memory
        if found is None:
            return
        for one, value in (
            (state_measures.STORE_USED, found.used),
            (state_measures.STORE_LIMIT, found.limit),
            (state_measures.STORE_FULLEST, found.fullest),
        ):
            family = GaugeMetricFamily(one.name, one.text)
            if value is not None:
                family.add_metric([], value)
            yield family
