"""Count requests and latencies, and publish them to the metrics periodically: once per request would be too slow."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict

from services.kit.metrics.metrics import Latencies, Metrics

TALLY_S = 0.25  # how often counts are published


class Tally:
    """Requests of all connections of a process, by operation."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._good: Counter[str] = Counter()  # requests since the last publish
        self._failed: Counter[str] = Counter()
        self._latencies: defaultdict[str, Latencies] = defaultdict(Latencies)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Publish counts every TALLY_S, in the running loop."""
        self._task = asyncio.create_task(self._keep_publishing(), name=f"{self._metrics.edge} tally")

    def count(self, operation: str, good: int, total: int, seconds: float) -> None:
        """Count a run of `total` requests, `good` of them successful, that took this long each."""
        self._good[operation] += good
        if total > good:
            self._failed[operation] += total - good
        self._latencies[operation].note(seconds, total)

    def publish(self) -> None:
        """Publish the counts to the metrics, and reset them."""
        good, failed, self._good, self._failed = self._good, self._failed, Counter(), Counter()
        for result, numbers in (("ok", good), ("failed", failed)):
            for operation, number in numbers.items():
                self._metrics.requests(operation, result).inc(number)
        for operation, latencies in self._latencies.items():
            latencies.publish(self._metrics.seconds(operation))

    async def close(self) -> None:
        """Stop, and publish the last counts."""
        if self._task is not None:
            self._task.cancel()
            # not awaited itself: the loop reports an internal error of the task
            await asyncio.wait((self._task,))
        self.publish()

    async def _keep_publishing(self) -> None:
        while True:
            await asyncio.sleep(TALLY_S)
            self.publish()
