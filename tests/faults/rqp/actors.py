"""Producers of a run, one per way."""

from __future__ import annotations

import asyncio
import random
import time

from services.store import StoreError
from tests.faults.rqp.history import Book, Put
from tests.faults.rqp.system import System

SIZES = (0,) * 90 + (600,) * 6 + (5_000,) * 3 + (60_000,)  # octets beyond the head
PACE_S = 0.05  # delay after a failed call or a full queue
RUNS = {"rqp-mca": (1, 1, 5, 20), "rqp-cast": (1, 1, 2, 5)}  # numbers of messages per call
PAUSE_S = 0.15  # longest pause between two calls
PAUSE_ONCE_S = 0.1  # the same on exactly-once ways: shorter, to keep messages in transit


class Producer:
    """A producer. It does not retry unanswered puts, whose outcome is unknown."""

    def __init__(self, seed: int, book: Book, system: System) -> None:
        self._book = book
        self._queue = system.queue(book.way)
        self._asker = system.client()
        self._rng = random.Random(f"{seed} {book.way}")

    async def play(self, stopping: asyncio.Event) -> None:
        way = self._book.way
        pause_s = PAUSE_ONCE_S if way.is_once else PAUSE_S
        while not stopping.is_set():
            if await self.put(self._rng.choice(RUNS[way.protocol])):
                await asyncio.sleep(self._rng.uniform(0, pause_s))
            else:
                await asyncio.sleep(PACE_S)

    async def put(self, count: int) -> bool:
        """Put messages with one call; return whether all were stored."""
        puts = [self._next() for _ in range(count)]
        bodies = [len(put.body).to_bytes(4, "big") + put.body for put in puts]
        try:
            refused = {index for index, _ in await self._asker.publish(self._queue, bodies, "faults")}
        except StoreError:
            return False
        for index, put in enumerate(puts):
            put.ended, put.ok = time.time(), index not in refused
        return not refused

    def _next(self) -> Put:
        put = Put(self._book.body(self._rng.choice(SIZES)), time.time())
        self._book.puts.append(put)
        return put
