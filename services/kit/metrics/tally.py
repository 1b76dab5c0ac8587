"""How many requests were answered and how fast, told to the metrics now and then: each alone would cost too much."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict

from services.kit.metrics.metrics import Latencies, Metrics

TALLY_S = 0.25  # how often counted requests reach the metrics


class Tally:
    """The requests of all connections of a process, by operation."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._good: Counter[str] = Counter()  # requests since the last look
        self._failed: Counter[str] = Counter()
        self._latencies: defaultdict[str, Latencies] = defaultdict(Latencies)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """From now on, in the running loop, the metrics follow within `TALLY_S`."""
        self._task = asyncio.create_task(self._keep_publishing(), name=f"{self._metrics.edge} tally")

    def count(self, operation: str, good: int, total: int, seconds: float) -> None:
        """A run of requests was answered, so many of them well; each took so long."""
        self._good[operation] += good
        if total > good:
            self._failed[operation] += total - good
        self._latencies[operation].note(seconds, total)

    def publish(self) -> None:
        """Tells the metrics all that has been counted since the last time."""
        good, failed, self._good, self._failed = self._good, self._failed, Counter(), Counter()
        for result, numbers in (("ok", good), ("failed", failed)):
            for operation, number in numbers.items():
                self._metrics.requests(operation, result).inc(number)
        for operation, latencies in self._latencies.items():
            latencies.publish(self._metrics.seconds(operation))

    async def close(self) -> None:
        """What was counted last is told too."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait(
                (self._task,)
            )  # were it to end of a fault of ours, the loop would still report that
        self.publish()

    async def _keep_publishing(self) -> None:
        while True:
            await asyncio.sleep(TALLY_S)
            self.publish()
