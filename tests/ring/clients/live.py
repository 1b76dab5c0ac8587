"""The client port in the running loop: a real listener, real sockets and a real store, without a node."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from services.kit.metrics.tally import Tally
from services.ring.edge import EDGE, RunningRing
from services.ring.service import RingService
from services.ring.settings import RingSettings
from tests.live_queues import LiveQueues
from tests.ring.clients.client import Client

CLIENTS = "clients"


class LiveClients(LiveQueues[RingSettings]):
    """The edge under test.

    `clients`: settings under `edges.ring.clients`; `listener`: settings of its port; others: under `edges.ring`.
    """

    def __init__(
        self,
        url: str,
        clients: dict[str, Any] | None = None,
        listener: dict[str, Any] | None = None,
        budget: int = 1 << 28,
        output: int = 1 << 28,
        **settings: Any,
    ) -> None:
        listeners = {CLIENTS: {"port": 0, **(listener or {})}, **settings.pop("listeners", {})}
        fields = {"listeners": listeners, "clients": clients or {}, **settings}
        super().__init__(EDGE, url, fields, budget, output)

    @property
    def service(self) -> RingService:
        assert isinstance(self.running, RunningRing)
        return self.running.service

    @property
    def tally(self) -> Tally:
        return self.service.tally

    @contextmanager
    def changes_not_published(self) -> Iterator[None]:
        """Hide changes by the tools from the edge meanwhile, so that it uses what it knew before."""
        registry = self.tools.registry
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(registry, "publish_change", lambda name: asyncio.sleep(0))
            yield

    async def client(self, receive_buffer: int = 0, listener: str = CLIENTS) -> Client:
        client = await Client.connect(self.places[listener], receive_buffer)
        self.adopt(client.close)
        return client
