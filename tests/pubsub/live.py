"""Text pub/sub edges in the running loop: real listeners, real sockets, real links, real stores."""

from __future__ import annotations

from typing import Any

from services.kit.net.connection import Connection
from services.pubsub.edge import EDGE, RunningPubsub
from services.pubsub.service import PubsubService
from services.pubsub.settings import PubsubSettings
from tests.live import Live
from tests.pubsub.client import Client

LISTENERS: dict[str, dict[str, Any]] = {
    "text": {"port": 0},
    "utf8": {"port": 0, "charset": "utf-8"},
    "strict": {"port": 0, "strict": True},
    "link": {"port": 0, "serves": "links"},
}
QUICK_LINKS = {"beat_s": 0.1, "silence_s": 30.0, "reconnect_s": 0.2, "lease_s": 0.6}
SOON_SILENT = {**QUICK_LINKS, "silence_s": 2.0}  # for tests of silence: a busy machine may pause that long


class LiveEdge(Live[PubsubSettings]):
    """`settings` are those under `edges.pubsub`; `listeners` replace the usual ones."""

    def __init__(
        self,
        url: str,
        listeners: dict[str, dict[str, Any]] | None = None,
        output: int = 1 << 28,
        **settings: Any,
    ) -> None:
        said = {"listeners": listeners or LISTENERS, "link": QUICK_LINKS, **settings}
        super().__init__(EDGE, url, said, output=output)

    async def start(self) -> LiveEdge:
        """Start it and wait until it is ready."""
        await self.open()
        return self

    @property
    def service(self) -> PubsubService:
        assert isinstance(self.running, RunningPubsub)
        return self.running.service

    @property
    def routed(self) -> int:
        """Return the number of subscriptions that the fanout serves or will serve."""
        return len(self.service.fanout)

    @property
    def link_address(self) -> str:
        host, port = self.places["link"]
        return f"{host}:{port}"

    async def client(self, listener: str = "text", receive_buffer: int = 0) -> Client:
        client = await Client.connect(self.places[listener], receive_buffer)
        self.adopt(client.close)
        return client

    def connections(self, listener: str = "text") -> list[Connection]:
        return super().connections(listener)
