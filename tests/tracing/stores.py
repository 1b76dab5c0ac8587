"""A store of a traced process that exports to a real collector."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from services.kit.config.settings import TracingSettings
from services.kit.metrics.metrics import Metrics
from services.kit.tracing import Recorder, tracing
from services.kit.tracing.measures import SPANS
from services.store import Queue, QueueSpec, Store
from services.store.model import records
from services.store.pipeline.async_client import AsyncClient
from services.store.pipeline.domain import Timing

NAME = "test"
POLL_S = 0.05  # how often dead letters are read


class TracedStore(Store):
    """A store whose `recorder` can be stopped early, so that all spans are exported."""

    def __init__(self, url: str, recorder: Recorder | None, metrics: Metrics) -> None:
        metrics.store_observer.recorder = recorder
        timing = Timing(upkeep_s=POLL_S)
        super().__init__(url, NAME, timing=timing, observe=metrics.store_observer)
        self._metrics = metrics

    def counted(self, result: str) -> float:
        labels = {"edge": NAME, "result": result}
        return self._metrics.registry.get_sample_value(SPANS.name, labels) or 0.0

    async def queue(self, name: str, **spec: Any) -> Queue:
        queue, _ = await self.catalogue.declare(name, QueueSpec.model_validate(spec), NAME)
        return queue

    async def async_client(self, queue: Queue) -> AsyncClient:
        pipe = self.open_domain(queue.domain).pipe
        await pipe.ready()
        return AsyncClient(pipe)

    async def put(self, queue: Queue, *bodies: bytes, **attributes: Any) -> None:
        encoded = [records.encode(body, attributes) for body in bodies]
        assert await (await self.async_client(queue)).publish(queue, encoded, "test") == []


@asynccontextmanager
async def traced_store(url: str, endpoint: str | None, /, **settings: Any) -> AsyncIterator[TracedStore]:
    """Open a store. endpoint: None for an untraced one."""
    said = {"endpoint": endpoint, "interval_s": 0.02, "most_per_s": 100_000, **settings}
    metrics = Metrics(NAME)
    recorder = tracing(TracingSettings(**said), NAME, _counting(metrics))
    store = TracedStore(url, recorder, metrics)
    if recorder is not None:
        recorder.start()
    try:
        yield store
    finally:
        await store.close()
        if recorder is not None:
            await recorder.close()


def _counting(metrics: Metrics) -> Callable[[str, int], None]:
    spans = metrics.counter(SPANS)
    return lambda result, number: spans.labels(NAME, result).inc(number)
