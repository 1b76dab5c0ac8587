"""A store with many queues and very many dead letters of one of them, and traffic on all queues."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from benchmarks.analytics.filling import Day, Pipe
from benchmarks.analytics.letters import letters
from benchmarks.peers.redis import Store as Server
from services.store import Queue, QueueSpec, Store
from services.store.model import records
from services.store.pipeline.async_client import AsyncClient

FULL = "q0000"  # the queue with the dead letters
BUSY_S = 2.0  # each queue gets a message in this time, so every row of the live view changes in each update
SIDE_BY_SIDE = 50  # declarations at a time
# keep all dead letters
SPEC: dict[str, Any] = {"ackLevel": "memory", "deadLetter": {"maxLength": 0}}


def names(number: int) -> list[str]:
    return [f"q{each:04}" for each in range(number)]


def url(server: Server) -> str:
    return f"redis://127.0.0.1:{server.port}"


async def fill(server: Server, queues: int, dead: int) -> dict[str, Any]:
    """Fill the store, and return its contents and the time taken. Raises OSError if the store refused a letter."""
    began = time.monotonic()
    with server.connect() as connection:
        connection.config_set("appendfsync", "everysec")
    store = Store(url(server), "bench")
    try:
        await store.initialise()
        spec = QueueSpec.model_validate(SPEC)
        for first in range(0, queues, SIDE_BY_SIDE):
            some = names(queues)[first : first + SIDE_BY_SIDE]
            await asyncio.gather(*(store.catalogue.declare(name, spec, "bench") for name in some))
        full = await store.catalogue.find(FULL)
    finally:
        await store.close()
    if dead:
        day = Day(dead, 0, int(time.time() * 1000))
        await asyncio.to_thread(Pipe(server.port).send, letters([(FULL, full.keys[6])], day))
    seconds, mib = time.monotonic() - began, server.info("used_memory") / (1 << 20)
    return {"queues": queues, "dead": dead, "seconds": seconds, "store_mib": mib}


class Traffic:
    """Within `async with`, send one message to each queue every BUSY_S."""

    def __init__(self, server: Server, queues: int) -> None:
        self._store = Store(url(server), "bench")
        self._names = names(queues)
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Traffic:
        pipe = self._store.open_domain().pipe
        await pipe.ready()
        queues = [await self._store.catalogue.find(name) for name in self._names]
        self._task = asyncio.create_task(self._go(AsyncClient(pipe), queues))
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._store.close()

    @staticmethod
    async def _go(client: AsyncClient, queues: list[Queue]) -> None:
        record = records.encode(b"x" * 100)
        while True:
            began = time.monotonic()
            for queue in queues:
                await client.publish(queue, [record], "bench")
            await asyncio.sleep(max(0.0, BUSY_S - (time.monotonic() - began)))
