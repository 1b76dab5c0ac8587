"""Produce traffic with accounting: accepted messages are delivered once, refused ones never."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field

from services.store import INTERNAL_CLIENT, Delivery, Queue, Source, StoreError
from services.store.model.errors import LeaseLost, OutcomeUnknown
from tests.store.desk import Desk, bodies


@dataclass
class Traffic:
    """Producers and a consumer of one process, with the results of all numbered messages."""

    desk: Desk
    queue: Queue
    stored: set[bytes] = field(default_factory=set)
    refused: set[bytes] = field(default_factory=set)
    unknown: set[bytes] = field(default_factory=set)
    seen: Counter[bytes] = field(default_factory=Counter)  # settled, with confirmation
    unsettled: list[Delivery] = field(default_factory=list)  # the outcome of their settlement is unknown
    serial: int = 0
    _stop: bool = False
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def start(self, producers: int = 4) -> None:
        self._tasks = [asyncio.create_task(self._produce()) for _ in range(producers)]
        self._tasks.append(asyncio.create_task(self._consume()))

    async def stop(self) -> None:
        self._stop = True
        await asyncio.gather(*self._tasks)

    def new(self, count: int) -> list[bytes]:
        self.serial += count
        return [b"%07d" % i for i in range(self.serial - count, self.serial)]

    async def _produce(self) -> None:
        source = Source(INTERNAL_CLIENT)
        while not self._stop:
            await self.put(source, self.new(1 + self.serial % 40))

    async def put(self, source: Source, run: list[bytes]) -> None:
        try:
            refusals = await self.desk.publish(self.queue, *run, source=source)
        except OutcomeUnknown:
            self.unknown.update(run)
        except StoreError:
            self.refused.update(run)
            await asyncio.sleep(0.02)
        else:
            assert refusals == []
            self.stored.update(run)

    async def _consume(self) -> None:
        while not self._stop:
            try:
                got = await self.desk.take(self.queue, 100)
            except StoreError:
                await asyncio.sleep(0.02)
                continue
            for delivery in got:
                await self._settle(delivery)

    async def _settle(self, delivery: Delivery) -> None:
        try:
            await self.desk.settle([delivery])
        except (OutcomeUnknown, LeaseLost):
            self.unsettled.append(delivery)
        else:
            self.seen.update(bodies([delivery]))

    async def check(self, desk: Desk | None = None) -> None:
        """Take the remaining messages, with `desk` or an own one, and compare the counts."""
        desk = desk or self.desk
        left = Counter(await desk.drain(self.queue))
        found = self.seen + left
        maybe = {body for d in self.unsettled for body in bodies([d])}
        assert self.stored - set(found) - maybe == set(), "lost"
        assert {body for body, times in found.items() if times > 1} - maybe == set(), "twice"
        assert set(found) & self.refused == set(), "refused, but stored"
        assert set(found) <= self.stored | self.unknown
        assert await desk.reconcile(self.queue) == {"len": 0, "bytes": 0, "leased": 0}
