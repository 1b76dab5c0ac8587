"""Workers that count operations of queues, with a clock set by tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from services.kit.metrics import measures
from services.kit.metrics.queue_meter import QueueMeter
from services.kit.metrics.queue_names import QueueNames
from services.kit.metrics.queue_totals import NAMES, Journal, SharedQueueTotals
from services.kit.metrics.shared_names import SharedNames


class Counts(NamedTuple):
    """A report of the store: so many messages were put in."""

    put_in: int = 1

    @property
    def numbers(self) -> tuple[int, ...]:
        return (self.put_in, *(0,) * 6)

    @property
    def refused(self) -> Mapping[str, int]:
        return {"queue_full": 1}

    @property
    def put(self) -> list[int]:
        return [self.put_in] + [0] * len(measures.QUEUE_PUT_SECONDS.buckets)

    @property
    def wait(self) -> list[int]:
        return self.put


@dataclass
class Clock:
    """A clock shared by all workers, as the machine's is."""

    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


class Edge:
    """Workers that share a folder, and the process that answers scrapes for them; without a folder one process."""

    def __init__(self, most: int, clock: Clock, folder: Path | None = None, workers: int = 1) -> None:
        self._most, self._clock, self._folder = most, clock, folder
        self._registry = CollectorRegistry()
        self.workers: list[QueueMeter] = []
        for _ in range(workers):
            self.start()
        self._registry.register(self.workers[0] if folder is None else SharedQueueTotals(folder, "tmq"))

    def start(self) -> QueueMeter:
        shared = None if self._folder is None else SharedNames(self._folder / NAMES)
        journal = None if self._folder is None else Journal(self._folder, len(self.workers) + 1)
        names = QueueNames(self._most, shared, self._clock)
        self.workers.append(QueueMeter("tmq", names, latencies=True, journal=journal))
        return self.workers[-1]

    def publish(self) -> None:
        """Publish all workers' values twice, so that each knows what the others released."""
        for _ in range(2):
            for worker in self.workers:
                worker.publish()

    def shown(self, name: str = measures.QUEUE_IN.name) -> dict[str, float]:
        """Return values by queue."""
        text = generate_latest(self._registry).decode()
        families = [*text_string_to_metric_families(text)]
        samples = [sample for family in families for sample in family.samples]
        return {sample.labels["queue"]: sample.value for sample in samples if sample.name == name}
