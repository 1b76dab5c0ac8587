"""A task that is cancelled during a request to the store ends: no cancellation is lost."""

from __future__ import annotations

import asyncio
import random
import time

from services.store import Store
from tests.servers import Server

TIMES = 50


async def set_up(store: Store) -> None:
    """Do what `penstock up` does first: connections, questions, functions, and the probe of the store."""
    await store.initialise()
    await store.registry.epoch()


async def test_cancellation_at_any_moment(server: Server, chance: random.Random) -> None:
    first = Store(server.url, "up")
    await set_up(first)
    began = time.monotonic()
    await set_up(first)
    takes_s = time.monotonic() - began
    await first.close()
    cancelled = 0
    for _ in range(TIMES):
        store = Store(server.url, "up")
        task = asyncio.create_task(set_up(store))
        await asyncio.wait((task,), timeout=chance.uniform(0, takes_s))
        if task.cancel():
            await asyncio.wait((task,))
            assert task.cancelled(), task
            cancelled += 1
        await store.close()
    assert cancelled > TIMES // 10
