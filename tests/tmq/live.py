"""A TMQ edge in the running loop: real listeners, real sockets, a real store; and what it must never leave behind."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from protos.tmq import Dialect
from services.kit.budget import Budget
from services.kit.connection import Connection
from services.kit.dialler import Dialler, DialSettings
from services.kit.edge import EdgeContext
from services.kit.listener import Listener, ListenerSettings
from services.kit.metrics import Metrics
from services.kit.session import SessionFactory
from services.store import Queue, QueueSpec, Store
from services.store.domain import Domain
from services.store.errors import QueueUnknown
from services.tmq.edge import EDGE, RunningTmq
from services.tmq.service import TmqService
from services.tmq.settings import TmqSettings
from tests.tmq.client import PATIENCE_S, Client

LISTENERS: dict[str, dict[str, Any]] = {
    "document": {"port": 0},
    "reference": {"port": 0, "dialect": "reference"},
    # for requests cut behind a 5: no stall makes it a TS
    "patient": {"port": 0, "lone_five_grace_ms": 10_000},
}


async def until(condition: Callable[[], Any], patience_s: float = PATIENCE_S) -> Any:
    """Waits until it is true (it may be a coroutine function) and returns what was true."""
    end = time.monotonic() + patience_s
    while True:
        found = condition()
        if isinstance(found, Awaitable):
            found = await found
        if found:
            return found
        assert time.monotonic() < end, "it never came true"
        await asyncio.sleep(0.002)


class Log(logging.Handler):
    """What the process logged."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.lines: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record)

    def events(self, action: str, **fields: object) -> list[logging.LogRecord]:
        """The lines of that action with those fields."""
        return [
            line
            for line in self.lines
            if getattr(line, "action", None) == action
            and all(getattr(line, name, None) == value for name, value in fields.items())
        ]

    def tracebacks(self) -> list[str]:
        return [f"{line.getMessage()}: {line.exc_info[1]!r}" for line in self.lines if line.exc_info]


class LiveEdge:
    """`settings` are those under `edges.tmq`; `listeners` replace the usual three."""

    def __init__(
        self,
        url: str,
        listeners: dict[str, dict[str, Any]] | None = None,
        budget: int = 1 << 28,
        output: int = 1 << 28,
        **settings: Any,
    ) -> None:
        self.url = url
        self.settings = TmqSettings.model_validate({"listeners": listeners or LISTENERS, **settings})
        self.metrics = Metrics("tmq")
        self.budget, self.output = Budget(budget), Budget(output)
        self.listeners: dict[str, Listener] = {}
        self.places: dict[str, tuple[str, int]] = {}
        self.log = Log()
        self.loop_errors: list[str] = []
        self.running: RunningTmq | None = None
        # how a test looks at the store, and changes it behind the edge's back
        self.tools = Store(self.url, "test")
        self._clients: list[Client] = []

    async def start(self) -> LiveEdge:
        """Returns once the store is reached."""
        logging.getLogger().addHandler(self.log)
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: self.loop_errors.append(
                f"{context.get('message')}: {context.get('exception')!r}"
            )
        )
        context = EdgeContext("tmq", self.settings, self.url, self.metrics, self._listen, self._dial)
        self.running = await EDGE.start(context)
        for name, listener in self.listeners.items():
            self.places[name] = await listener.start()
        await until(self.is_ready)
        return self

    def is_ready(self) -> bool:
        return self.service.ready() is None

    @property
    def service(self) -> TmqService:
        assert self.running is not None
        return self.running._service

    def _listen(self, name: str, settings: ListenerSettings, factory: SessionFactory) -> Listener:
        self.listeners[name] = Listener(
            name, settings, factory, self.budget, self.metrics, output=self.output
        )
        return self.listeners[name]

    def _dial(self, name: str, settings: DialSettings) -> Dialler:
        raise AssertionError("a TMQ edge opens no connections")

    async def client(self, listener: str = "document", receive_buffer: int = 0) -> Client:
        dialect: Dialect = self.settings.listeners[listener].dialect
        client = await Client.connect(self.places[listener], dialect, receive_buffer)
        self._clients.append(client)
        return client

    # the end

    async def close(self) -> None:
        """Ends all connections and the edge, whatever state they are in."""
        try:
            for listener in self.listeners.values():
                listener.stop_accepting()
            for client in self._clients:
                client.close()
            for listener in self.listeners.values():
                listener.abort_all()
                assert await listener.closed(PATIENCE_S)
        finally:
            if self.running is not None:
                await self.running.close()
            await self.tools.close()
            logging.getLogger().removeHandler(self.log)

    async def disconnect(self) -> None:
        """All clients go, and with them all connections."""
        for client in self._clients:
            client.close()
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

    def check_no_fault_of_ours(self) -> None:
        """Whatever the peers did."""
        assert self.log.tracebacks() == []
        assert self.loop_errors == []
        assert self.value("penstock_local_errors_total") == 0

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

    def connections(self) -> list[Connection]:
        return [connection for listener in self.listeners.values() for connection in listener.connections]

    async def deliver(self, listener: str, client: Client, *pieces: bytes) -> None:
        """Sends each piece once the one before has reached a session of this listener, where nobody else sends."""
        traffic = self.listeners[listener].traffic
        for piece in pieces:
            traffic.received = 0
            await client.send(piece)
            async with asyncio.timeout(PATIENCE_S):
                while traffic.received < len(piece):  # noqa: ASYNC110  a turn of the loop brings the bytes
                    await asyncio.sleep(0)

    def value(self, name: str, **labels: str) -> float:
        return self.metrics.registry.get_sample_value(name, {"edge": "tmq", **labels}) or 0.0

    def refusals(self) -> Counter[str]:
        """By reason."""
        family = next(m for m in self.metrics.registry.collect() if m.name == "penstock_refusals")
        found = {s.labels["reason"]: int(s.value) for s in family.samples if s.name.endswith("_total")}
        return Counter(found)

    async def requests(self, operation: str, result: str) -> float:
        """As `penstock_requests_total` has it; it follows within a fraction of a second."""
        self.service.tally.publish()
        return self.value("penstock_requests_total", operation=operation, result=result)

    async def declare(self, name: str, owner: str = "test", **spec: Any) -> Queue:
        """A queue that somebody else than the edge made; spec as in its document, but with Python's names."""
        queue, new = await self.tools.declare(name, QueueSpec(**spec), owner)
        assert new
        return queue

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
