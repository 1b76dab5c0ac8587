"""A TMQ edge in the running loop: real listeners, real sockets, a real store; and what it must never leave behind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from protos.tmq import Dialect
from services.store import Queue
from services.store.domain import Domain
from services.store.errors import QueueUnknown
from services.tmq.edge import EDGE, RunningTmq
from services.tmq.service import TmqService
from services.tmq.settings import TmqSettings
from tests.live import Live, until
from tests.tmq.client import PATIENCE_S, Client

LISTENERS: dict[str, dict[str, Any]] = {
    "document": {"port": 0},
    "reference": {"port": 0, "dialect": "reference"},
    # for requests cut behind a 5: no stall makes it a TS
    "patient": {"port": 0, "lone_five_grace_ms": 10_000},
}


class LiveEdge(Live[TmqSettings]):
    """`settings` are those under `edges.tmq`; `listeners` replace the usual three."""

    def __init__(
        self,
        url: str,
        listeners: dict[str, dict[str, Any]] | None = None,
        budget: int = 1 << 28,
        output: int = 1 << 28,
        **settings: Any,
    ) -> None:
        super().__init__(EDGE, url, {"listeners": listeners or LISTENERS, **settings}, budget, output)

    async def start(self) -> LiveEdge:
        """Returns once the store is reached."""
        await self.open()
        return self

    @property
    def service(self) -> TmqService:
        assert isinstance(self.running, RunningTmq)
        return self.running._service

    async def client(self, listener: str = "document", receive_buffer: int = 0) -> Client:
        dialect: Dialect = self.settings.listeners[listener].dialect
        client = await Client.connect(self.places[listener], dialect, receive_buffer)
        self.adopt(client.close)
        return client

    # the end

    async def disconnect(self) -> None:
        """All clients go, and with them all connections."""
        self.close_clients()
        await until(lambda: not any(listener.connections for listener in self.listeners.values()))

    async def check_nothing_is_left(self) -> None:
        """Without connections nothing is leased, no input is held, and the counters agree with the stream."""
        await self.disconnect()
        assert self.budget.total == 0, "input is still counted as held"
        assert self.output.total == 0, "output is still counted as held"
        async for queue in self.tools.queues():
            await until(lambda queue=queue: self.is_free(queue))
            domain = self.tools.look_at(queue.domain)
            await until(lambda queue=queue, domain=domain: self.is_counted(queue, domain))

    async def is_counted(self, queue: Queue, domain: Domain) -> bool:
        """The count is complete, and right; a DELETE that was still under way may have removed the queue."""
        wrong = await domain.tidy(queue)
        if wrong is None:
            return not [True async for each in self.tools.queues() if each.qid == queue.qid]
        assert not any(wrong.values()), f"{queue.name!r}: counters are wrong by {wrong}"
        return True

    async def is_free(self, queue: Queue) -> bool:
        try:
            stats = await self.tools.stats(queue)
        except QueueUnknown:
            return True
        return stats["in_flight"] == 0 and stats["leases"] == 0

    # looking

    async def deliver(self, listener: str, client: Client, *pieces: bytes) -> None:
        """Sends each piece once the one before has reached a session of this listener, where nobody else sends."""
        traffic = self.listeners[listener].traffic
        for piece in pieces:
            traffic.received = 0
            await client.send(piece)
            async with asyncio.timeout(PATIENCE_S):
                while traffic.received < len(piece):  # noqa: ASYNC110  a turn of the loop brings the bytes
                    await asyncio.sleep(0)

    async def requests(self, operation: str, result: str) -> float:
        """As `penstock_requests_total` has it; it follows within a fraction of a second."""
        self.service.tally.publish()
        return self.value("penstock_requests_total", operation=operation, result=result)

    async def stats(self, name: str) -> dict[str, Any]:
        return await self.tools.stats(await self.tools.find(name))


@asynccontextmanager
async def live_edge(url: str, **settings: Any) -> AsyncIterator[LiveEdge]:
    """An edge that is checked when it is over, and closed however that goes."""
    edge = LiveEdge(url, **settings)
    try:
        yield await edge.start()
        await edge.check_nothing_is_left()
    finally:
        await edge.close()
    edge.check_no_fault_of_ours()
