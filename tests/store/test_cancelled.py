"""Whoever is cancelled while he asks the store ends: at no moment is the cancellation lost, and he goes on."""

from __future__ import annotations

import asyncio
import random
import time

from services.store import Store
from tests.servers import Server

TIMES = 200


async def set_up(url: str) -> None:
    """What `penstock up` does first: new connections, plain questions, functions, and what the store can promise."""
    store = Store(url, "up")
    try:
        await store.initialise()
        await store.registry.epoch()
    finally:
        await store.close()


async def test_at_any_moment(server: Server, chance: random.Random) -> None:
    began = time.monotonic()
    await set_up(server.url)
    await set_up(server.url)
    takes_s = (time.monotonic() - began) / 2
    cancelled = 0
    for _ in range(TIMES):
        task = asyncio.create_task(set_up(server.url))
        await asyncio.wait((task,), timeout=chance.uniform(0, takes_s))
        if task.cancel():
            await asyncio.wait((task,))
            assert task.cancelled(), task
            cancelled += 1
    assert cancelled > TIMES // 10
