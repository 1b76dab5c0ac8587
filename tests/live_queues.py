"""An edge whose clients put messages into queues and take them out, with checks for leftovers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

from services.kit.metrics.tally import Tally
from services.store import Queue
from services.store.model.errors import QueueExists, QueueUnknown
from services.store.pipeline.domain import Domain
from tests.live import Live, SettingsT, until
from tests.plain_client import PATIENCE_S, PlainClient


class LiveQueues(Live[SettingsT]):
    @property
    def tally(self) -> Tally:
        raise NotImplementedError

    # the end

    async def disconnect(self) -> None:
        """Close all clients and wait until all connections are gone."""
        self.close_clients()
        await until(lambda: not any(listener.connections for listener in self.listeners.values()))

    async def check_nothing_is_left(self) -> None:
        """Check that without connections nothing is leased or held, and that the counters agree with the stream."""
        await self.disconnect()
        assert self.budget.total == 0, "input is still counted as held"
        assert self.output.total == 0, "output is still counted as held"
        async for queue in self.tools.listing.queues():
            await until(lambda queue=queue: self.is_free(queue))
            domain = self.tools.get_domain(queue.domain)
            await until(lambda queue=queue, domain=domain: self.is_counted(queue, domain))

    async def is_counted(self, queue: Queue, domain: Domain) -> bool:
        """Return whether the count is complete; check it. A DELETE in progress may have removed the queue."""
        wrong = await domain.tidy(queue)
        if wrong is None:
            await self.finish(queue)
            return not [True async for each in self.tools.listing.queues() if each.qid == queue.qid]
        assert not any(wrong.values()), f"{queue.name!r}: counters are wrong by {wrong}"
        return True

    async def finish(self, queue: Queue) -> None:
        """Complete a CREATE or DELETE that was interrupted between its two steps, by a request for the name."""
        try:
            await self.tools.listing.stats(queue)
        except QueueUnknown:
            with suppress(QueueExists):
                await self.tools.catalogue.declare(queue.name, queue.spec, queue.owner)

    async def is_free(self, queue: Queue) -> bool:
        try:
            stats = await self.tools.listing.stats(queue)
        except QueueUnknown:
            return True
        return stats["in_flight"] == 0 and stats["leases"] == 0

    # inspection

    async def deliver(self, listener: str, client: PlainClient, *pieces: bytes) -> None:
        """Send each piece once the previous one has reached a session of this listener, which has no other sender."""
        traffic = self.listeners[listener].traffic
        for piece in pieces:
            before = traffic.received
            await client.send(piece)
            async with asyncio.timeout(PATIENCE_S):
                while traffic.received - before < len(piece):  # noqa: ASYNC110  a turn of the loop reads the bytes
                    await asyncio.sleep(0)

    async def requests(self, operation: str, result: str) -> float:
        """Return the value of `penstock_requests_total`, which is updated within a fraction of a second."""
        self.tally.publish()
        return self.value("penstock_requests_total", operation=operation, result=result)

    async def stats(self, name: str) -> dict[str, Any]:
        return await self.tools.listing.stats(await self.tools.catalogue.find(name))


EdgeT = TypeVar("EdgeT", bound=LiveQueues[Any])


@asynccontextmanager
async def checked(edge: EdgeT) -> AsyncIterator[EdgeT]:
    """Open an edge and yield it; check for leftovers afterwards, and close it in all cases."""
    try:
        await edge.open()
        yield edge
        await edge.check_nothing_is_left()
    finally:
        await edge.close()
    edge.check_no_fault_of_ours()
