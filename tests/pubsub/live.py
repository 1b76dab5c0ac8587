"""Text pub/sub edges in the running loop: real listeners, real sockets, real links, real stores."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from typing import Any

from services.kit.budget import Budget
from services.kit.connection import Connection
from services.kit.dialler import Dialler, DialSettings
from services.kit.edge import EdgeContext
from services.kit.listener import Listener, ListenerSettings
from services.kit.metrics import Metrics
from services.kit.session import SessionFactory
from services.pubsub.edge import EDGE, RunningPubsub
from services.pubsub.service import PubsubService
from services.pubsub.settings import PubsubSettings
from services.store import Queue, QueueSpec, Store
from tests.pubsub.client import PATIENCE_S, Client, Place
from tests.tmq.live import Log, until

LISTENERS: dict[str, dict[str, Any]] = {
    "text": {"port": 0},
    "utf8": {"port": 0, "charset": "utf-8"},
    "strict": {"port": 0, "strict": True},
    "link": {"port": 0, "serves": "links"},
}
QUICK_LINKS = {"beat_s": 0.1, "silence_s": 2.0, "reconnect_s": 0.2, "lease_s": 0.6}


class LiveEdge:
    """`settings` are those under `edges.pubsub`; `listeners` replace the usual ones."""

    def __init__(
        self,
        url: str,
        listeners: dict[str, dict[str, Any]] | None = None,
        output: int = 1 << 28,
        **settings: Any,
    ) -> None:
        self.url = url
        said = {"listeners": listeners or LISTENERS, "link": QUICK_LINKS, **settings}
        self.settings = PubsubSettings.model_validate(said)
        self.metrics = Metrics("pubsub")
        self.budget, self.output = Budget(1 << 28), Budget(output)
        self.listeners: dict[str, Listener] = {}
        self.diallers: list[Dialler] = []
        self.places: dict[str, Place] = {}
        self.log = Log()
        self.loop_errors: list[str] = []
        self.running: RunningPubsub | None = None
        self.tools = Store(self.url, "test")
        self._clients: list[Client] = []

    async def start(self) -> LiveEdge:
        """Returns once it is ready."""
        logging.getLogger().addHandler(self.log)
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: self.loop_errors.append(
                f"{context.get('message')}: {context.get('exception')!r}"
            )
        )
        context = EdgeContext("pubsub", self.settings, self.url, self.metrics, self._listen, self._dial)
        self.running = await EDGE.start(context)
        for name, listener in self.listeners.items():
            self.places[name] = await listener.start()
        await until(self.is_ready)
        return self

    def is_ready(self) -> bool:
        return self.service.ready() is None

    @property
    def service(self) -> PubsubService:
        assert self.running is not None
        return self.running._service

    @property
    def link_address(self) -> str:
        host, port = self.places["link"]
        return f"{host}:{port}"

    def _listen(self, name: str, settings: ListenerSettings, factory: SessionFactory) -> Listener:
        self.listeners[name] = Listener(
            name, settings, factory, self.budget, self.metrics, output=self.output
        )
        return self.listeners[name]

    def _dial(self, name: str, settings: DialSettings) -> Dialler:
        self.diallers.append(Dialler(name, settings, self.budget, self.metrics, self.output))
        return self.diallers[-1]

    async def client(self, listener: str = "text", receive_buffer: int = 0) -> Client:
        client = await Client.connect(self.places[listener], receive_buffer)
        self._clients.append(client)
        return client

    async def close(self) -> None:
        """Ends all connections and the edge, whatever state they are in."""
        ends: list[Listener | Dialler] = [*self.listeners.values(), *self.diallers]
        try:
            for listener in self.listeners.values():
                listener.stop_accepting()
            for dialler in self.diallers:
                dialler.stop_opening()
            for client in self._clients:
                client.close()
            for end in ends:
                end.abort_all()
                assert await end.closed(PATIENCE_S)
        finally:
            if self.running is not None:
                await self.running.close()
            await self.tools.close()
            logging.getLogger().removeHandler(self.log)

    def check_no_fault_of_ours(self) -> None:
        """Whatever the peers did."""
        assert self.log.tracebacks() == []
        assert self.loop_errors == []
        assert self.value("penstock_local_errors_total") == 0

    # looking

    def connections(self, listener: str = "text") -> list[Connection]:
        return list(self.listeners[listener].connections)

    def value(self, name: str, **labels: str) -> float:
        return self.metrics.registry.get_sample_value(name, {"edge": "pubsub", **labels}) or 0.0

    def refusals(self) -> Counter[str]:
        """By reason."""
        family = next(m for m in self.metrics.registry.collect() if m.name == "penstock_refusals")
        found = {s.labels["reason"]: int(s.value) for s in family.samples if s.name.endswith("_total")}
        return Counter(found)

    async def declare(self, name: str, **spec: Any) -> Queue:
        """A queue; spec as in its document."""
        queue, new = await self.tools.declare(name, QueueSpec.model_validate(spec), "test")
        assert new
        return queue
