"""What all TMQ connections of a process share: the store, the settings, the counters, and the work on whole queues."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable
from typing import TypeVar

from services.kit.metrics import Latencies, Metrics
from services.store import Delivery, Pipe, Queue, QueueSpec, Source, Store, StoreError
from services.store.errors import OutcomeUnknown
from services.tmq.settings import TmqSettings

log = logging.getLogger(__name__)

OWNER = "edge:tmq"  # of queues that CREATE made: only these may be removed by DELETE
T = TypeVar("T")


def decode_name(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")


class TmqService:
    def __init__(self, settings: TmqSettings, store: Store, metrics: Metrics) -> None:
        self.settings = settings
        self.store = store
        self.metrics = metrics
        self._good: Counter[str] = Counter()  # requests by operation, since the last look
        self._failed: Counter[str] = Counter()
        self._latencies: defaultdict[str, Latencies] = defaultdict(Latencies)
        self._store_events = metrics.counter("store_events", "Refusals and alarms of the store", ("reason",))
        self._tasks: set[asyncio.Task[None]] = set()

    def pipe(self, queue: Queue) -> Pipe:
        return self.store.domain(queue.domain).pipe

    def give_back(self, deliveries: list[Delivery], *, failed: bool, error: str = "") -> None:
        """Messages go back to their places, in nobody's sequence. failed: it counts towards max_deliveries."""
        for d in deliveries:
            self.pipe(d.queue).release(Source(), [d], failed=failed, error=error)

    def ask(self, work: Awaitable[T], done: Callable[[T | StoreError], None]) -> None:
        """Does work on whole queues beside the loop of requests; done is told its end."""
        task = asyncio.ensure_future(self._ask(work, done))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _ask(self, work: Awaitable[T], done: Callable[[T | StoreError], None]) -> None:
        done(await self._outcome(work))

    async def _outcome(self, work: Awaitable[T]) -> T | StoreError:
        try:
            async with asyncio.timeout(self.settings.request_timeout_s):
                return await work
        except StoreError as error:
            return error
        except TimeoutError:
            return OutcomeUnknown()
        except Exception as error:
            log.exception("work on a queue failed", extra={"action": "queue_work_failed"})
            self.metrics.local_errors.inc()
            return StoreError(str(error))

    async def create(self, name: str) -> bool:
        """CREATE: True if it was made now. Raises StoreError: exists, refused."""
        wanted = self.settings.create
        if not wanted.allowed:
            return False
        level = wanted.ack_level or (await self.store.promises()).strongest
        spec = QueueSpec(
            domain=wanted.domain, ack_level=level, max_length=wanted.max_length, max_bytes=wanted.max_bytes
        )
        _, new = await self.store.declare(name, spec, OWNER)
        return new

    async def delete(self, name: str) -> bool:
        """DELETE: True if it was removed now. Raises StoreError: unknown."""
        queue = await self.store.find(name)
        if queue.owner != OWNER:
            return False
        await self.store.delete(queue)
        return True

    async def open(self, name: str) -> Queue:
        """OPEN. Raises QueueUnknown, StoreUnavailable."""
        return await self.store.find(name)

    def ready(self) -> str | None:
        trouble = self.store.trouble
        return None if trouble is None else str(trouble)

    async def close(self) -> None:
        """Nobody waits for work on whole queues any more: what went on would open the store again."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.store.close()

    def count_store_event(self, reason: str, number: int) -> None:
        """Every refusal and alarm of the store has its counter."""
        self._store_events.labels(self.metrics.edge, reason).inc(number)

    def count(self, operation: str, good: int, total: int, seconds: float) -> None:
        """A run of requests was answered, so many of them well."""
        self._good[operation] += good
        if total > good:
            self._failed[operation] += total - good
        self._latencies[operation].note(seconds, total)

    def publish_tally(self) -> None:
        """Prometheus metrics are too slow to be told of every request."""
        good, failed, self._good, self._failed = self._good, self._failed, Counter(), Counter()
        for result, numbers in (("ok", good), ("failed", failed)):
            for operation, number in numbers.items():
                self.metrics.requests(operation, result).inc(number)
        for operation, latencies in self._latencies.items():
            latencies.publish(self.metrics.seconds(operation))
