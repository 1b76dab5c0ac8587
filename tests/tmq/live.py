"""Run a TMQ edge in the test's event loop, on real sockets and a real store, with checks for leaks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from protos.tmq import Dialect
from services.kit.metrics.tally import Tally
from services.tmq.edge import EDGE, RunningTmq
from services.tmq.service import TmqService
from services.tmq.settings import TmqSettings
from tests.live_queues import LiveQueues, checked
from tests.tmq.client import Client

LISTENERS: dict[str, dict[str, Any]] = {
    "document": {"port": 0},
    "reference": {"port": 0, "dialect": "reference"},
    # for requests cut after a 5: a stall never turns it into a TS
    "patient": {"port": 0, "lone_five_grace_ms": 10_000},
}


class LiveEdge(LiveQueues[TmqSettings]):
    """A TMQ edge with `settings` as under `edges.tmq`; `listeners` replace the usual three."""

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
        """Start the edge, and return it once it has reached the store."""
        await self.open()
        return self

    @property
    def service(self) -> TmqService:
        assert isinstance(self.running, RunningTmq)
        return self.running.service

    @property
    def tally(self) -> Tally:
        return self.service.tally

    async def client(self, listener: str = "document", receive_buffer: int = 0) -> Client:
        dialect: Dialect = self.settings.listeners[listener].dialect
        client = await Client.connect(self.places[listener], dialect, receive_buffer)
        self.adopt(client.close)
        return client


@asynccontextmanager
async def live_edge(url: str, **settings: Any) -> AsyncIterator[LiveEdge]:
    """Yield an edge that is checked at the end, and closed in any case."""
    edge = LiveEdge(url, **settings)
    async with checked(edge):
        yield edge
