"""An edge in the running loop, with real listeners, sockets and store, and checks for leftovers."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar

from services.kit.edge import Edge, EdgeContext, EdgeSettings, Page, RunningEdge
from services.kit.metrics.metrics import Metrics
from services.kit.net.budget import Budget
from services.kit.net.connection import Connection
from services.kit.net.connection_inspector import ConnectionInspector
from services.kit.net.dialler import Dialler, DialSettings
from services.kit.net.listener import Listener, ListenerSettings
from services.kit.session.session import SessionFactory
from services.kit.tracing import Recorder
from services.store import Queue, QueueSpec, Store
from services.store.model.internal import is_internal
from tests.servers import Server
from tests.topologies import Cluster, Replicated

PATIENCE_S = 60.0
Place = tuple[str, int]
SettingsT = TypeVar("SettingsT", bound=EdgeSettings)


async def until(condition: Callable[[], Any], patience_s: float = PATIENCE_S) -> Any:
    """Wait until the condition (which may be a coroutine function) returns a true value, and return that.

    Pauses grow with the time waited, so that a long wait leaves the processor to the process under test.
    """
    began = time.monotonic()
    while True:
        found = condition()
        if isinstance(found, Awaitable):
            found = await found
        if found:
            return found
        waited = time.monotonic() - began
        assert waited < patience_s, "it never came true"
        await asyncio.sleep(min(0.002 + waited / 20, 0.05))


class Log(logging.Handler):
    """The log records of the process."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.lines: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record)

    def events(self, action: str, **fields: object) -> list[logging.LogRecord]:
        """Return the records of an action with these fields."""
        return [
            line
            for line in self.lines
            if getattr(line, "action", None) == action
            and all(getattr(line, name, None) == value for name, value in fields.items())
        ]

    def tracebacks(self) -> list[str]:
        return [f"{line.getMessage()}: {line.exc_info[1]!r}" for line in self.lines if line.exc_info]


async def set_up(server: Server | Cluster | Replicated) -> None:
    """Set up a new store as `penstock up` does."""
    store = Store(server.url, "test")
    await store.initialise()
    await store.close()


class Live(Generic[SettingsT]):
    """An edge. `settings` are those under `edges.<name>`. It closes its clients, which `adopt` registers."""

    def __init__(
        self,
        edge: Edge[SettingsT],
        url: str,
        settings: dict[str, Any],
        budget: int = 1 << 28,
        output: int = 1 << 28,
    ) -> None:
        self.edge = edge
        self.url = url
        self.settings = edge.settings.model_validate(settings)
        self.metrics = Metrics(edge.name)
        self.budget, self.output = Budget(budget), Budget(output)
        self.listeners: dict[str, Listener] = {}
        self.diallers: list[Dialler] = []
        self.places: dict[str, Place] = {}
        self.pages: dict[str, Page] = {}
        self.log = Log()
        self.loop_errors: list[str] = []
        self.running: RunningEdge | None = None
        self.recorder: Recorder | None = None  # set before `begin` to trace the edge
        # the test's own access to the store, for inspection and changes
        self.tools = Store(self.url, "test")
        self._closers: list[Callable[[], None]] = []

    async def open(self) -> None:
        """Start the edge and wait until it is ready."""
        await self.begin()
        await until(self.is_ready)

    async def begin(self) -> None:
        """Start the edge and wait until it listens, ready or not."""
        logging.getLogger().addHandler(self.log)
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: self.loop_errors.append(
                f"{context.get('message')}: {context.get('exception')!r}"
            )
        )
        observer, inspector = self.metrics.store_observer, ConnectionInspector(lambda: self._ends)
        observer.topics |= inspector.topics
        observer.about = inspector.about
        observer.recorder = self.recorder
        context = EdgeContext(
            self.edge.name,
            self.settings,
            self.url,
            self.metrics,
            self._listen,
            self._dial,
            self.pages.__setitem__,
            observer.topics.__setitem__,
        )
        self.running = await self.edge.start(context)
        for name, listener in self.listeners.items():
            self.places[name] = await listener.start()

    @property
    def _ends(self) -> list[Listener | Dialler]:
        return [*self.listeners.values(), *self.diallers]

    def is_ready(self) -> bool:
        return self.running is not None and self.running.readiness.unready() is None

    def adopt(self, close: Callable[[], None]) -> None:
        """Register a function to call when the edge is closed."""
        self._closers.append(close)

    def close_clients(self) -> None:
        for close in self._closers:
            close()

    def _listen(self, name: str, settings: ListenerSettings, factory: SessionFactory) -> Listener:
        self.listeners[name] = Listener(
            name, settings, factory, self.budget, self.metrics, output=self.output
        )
        return self.listeners[name]

    def _dial(self, name: str, settings: DialSettings) -> Dialler:
        self.diallers.append(Dialler(name, settings, self.budget, self.metrics, self.output))
        return self.diallers[-1]

    async def close(self) -> None:
        """End all connections and the edge, in any state."""
        ends = self._ends
        try:
            for listener in self.listeners.values():
                listener.stop_accepting()
            for dialler in self.diallers:
                dialler.stop_opening()
            self.close_clients()
            for end in ends:
                end.abort_all()
                assert await end.closed(PATIENCE_S)
        finally:
            if self.running is not None:
                await self.running.close()
            await self.tools.close()
            logging.getLogger().removeHandler(self.log)

    def check_no_fault_of_ours(self) -> None:
        """Check that the edge had no internal error."""
        assert self.log.tracebacks() == []
        assert self.loop_errors == []
        assert self.value("penstock_local_errors_total") == 0

    # inspection

    def connections(self, listener: str = "") -> list[Connection]:
        """Return the connections of one listener, or of all."""
        listeners = [self.listeners[listener]] if listener else self.listeners.values()
        return [connection for each in listeners for connection in each.connections]

    def value(self, name: str, **labels: str) -> float:
        return self.metrics.registry.get_sample_value(name, {"edge": self.edge.name, **labels}) or 0.0

    def refusals(self) -> Counter[str]:
        """Return the number of refusals by reason."""
        family = next(m for m in self.metrics.registry.collect() if m.name == "penstock_refusals")
        found = {s.labels["reason"]: int(s.value) for s in family.samples if s.name.endswith("_total")}
        return Counter(found)

    async def declare(self, name: str, owner: str = "test", **spec: Any) -> Queue:
        """Declare a queue independently of the edge; spec as in its document, or with Python's names."""
        document, internal = QueueSpec.model_validate(spec), is_internal(name)
        queue, new = await self.tools.catalogue.declare(name, document, owner, internal=internal)
        assert new
        return queue
