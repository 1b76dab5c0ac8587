"""Run a bridge in the test's event loop, with real local queues and a real store."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

from services.kit.metrics.metrics import Metrics
from services.store import INTERNAL_CLIENT, DeadLetter, DeadLetters, Queue, QueueSpec, Source, Store
from services.store.model import records
from services.store.pipeline.async_client import AsyncClient
from services.store.pipeline.domain import Timing
from services.sysv.bridge import Bridge
from services.sysv.settings import SysvSettings
from tests.live import Log

FAST: dict[str, Any] = {"retry_s": 0.05, "idle_s": 0.01}


class LiveBridge:
    """A bridge, with `tools` for the test's own access to the store."""

    def __init__(self, url: str, journal: Path) -> None:
        self.url = url
        self.journal = journal
        self.log = Log()
        # independent of the bridges' session timeout
        self.tools = Store(url, "test", timing=Timing(beat_s=0.3))
        self.metrics = Metrics("sysv")  # of the bridge that was opened last
        self.bridge: Bridge | None = None
        logging.getLogger().addHandler(self.log)
        logging.getLogger("services.sysv").setLevel(logging.INFO)

    async def open(self, mappings: dict[str, dict[str, Any]], **settings: Any) -> Bridge:
        """Run a bridge until `stop`. Raises the errors of its startup."""
        said = {"mappings": mappings, "journal": self.journal, **FAST, **settings}
        checked = SysvSettings.model_validate(said)
        self.metrics = Metrics("sysv")
        store = checked.store.store(self.url, "sysv", checked.request_timeout_s, self.metrics.store_observer)
        store.start_serving()
        bridge = Bridge(checked, store, self.metrics)
        try:
            await bridge.open()
        except BaseException:
            await bridge.close()
            raise
        bridge.start()
        self.bridge = bridge
        return bridge

    async def stop(self) -> None:
        """Stop the bridge in order."""
        if self.bridge is not None:
            bridge, self.bridge = self.bridge, None
            await bridge.stop_taking()
            await bridge.close()

    async def close(self) -> None:
        await self.stop()
        await self.tools.close()
        logging.getLogger("services.sysv").setLevel(logging.NOTSET)
        logging.getLogger().removeHandler(self.log)

    def check_no_fault_of_ours(self) -> None:
        assert [line.getMessage() for line in self.log.lines if line.exc_info] == []

    def value(self, name: str, **labels: str) -> float:
        return self.metrics.registry.get_sample_value(name, {"edge": "sysv", **labels}) or 0.0

    # The store

    async def queue(self, name: str, **spec: Any) -> Queue:
        queue, _ = await self.tools.catalogue.declare(
            name, QueueSpec.model_validate(spec), "test", replace=True
        )
        return queue

    async def put(self, queue: Queue, *bodies: bytes, **attributes: Any) -> None:
        pipe = self.tools.open_domain(queue.domain).pipe
        await pipe.ready()
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        encoded = [records.encode(body, attributes) for body in bodies]
        pipe.messages.publish(Source(INTERNAL_CLIENT), queue, encoded, "test", future.set_result)
        assert await future == []

    async def contents(self, queue: Queue) -> list[records.Content]:
        """Return the waiting messages of a queue."""
        found = await self.tools.get_domain(queue.domain).peek(queue, 1000)
        return [records.decode(record) for delivery in found for record in delivery.records()]

    async def bodies(self, queue: Queue) -> list[bytes]:
        return [content.body for content in await self.contents(queue)]

    async def dead(self, queue: Queue) -> list[DeadLetter]:
        return [letter async for letter in DeadLetters(self.tools.get_domain(queue.domain), queue).matching()]

    async def stats(self, queue: Queue) -> dict[str, Any]:
        return await self.tools.listing.stats(queue)

    async def take_all(self, queue: Queue) -> list[bytes]:
        """Take and settle all ready messages."""
        pipe = self.tools.open_domain(queue.domain).pipe
        await pipe.ready()
        client, found = AsyncClient(pipe), []
        while got := await client.take(queue, 1000):
            found += [records.decode(record).body for delivery in got for record in delivery.records()]
            await client.settle(got)
        return found
