"""How much memory the store uses, as metrics: of one process that looks at it, as it is the same for all others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from services.kit.metrics import state_measures


class Memory(Protocol):
    """As a look found it; None: nobody says, or there is no limit."""

    @property
    def used(self) -> int | None: ...
    @property
    def limit(self) -> int | None: ...
    @property
    def fullest(self) -> float | None: ...


class StoreMemory(Collector):
    """`tell` what was found."""

    def __init__(self) -> None:
        self._memory: Memory | None = None

    def update(self, memory: Memory | None) -> None:
        """None: nobody can look."""
        self._memory = memory

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """What is not known is not there: 0 would be an answer."""
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
