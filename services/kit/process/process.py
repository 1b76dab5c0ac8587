"""Run one edge in one process, from its start to the end of the drain."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import time
from collections.abc import Callable
from typing import Any, Generic

from services.kit.config.layers import SettingsError
from services.kit.config.settings import GlobalSettings
from services.kit.edge import Edge, EdgeContext, Page, RunningEdge, SettingsT
from services.kit.metrics.metrics import Metrics
from services.kit.net.budget import Budget
from services.kit.net.connection_inspector import ConnectionInspector
from services.kit.net.dialler import Dialler, DialSettings
from services.kit.net.listener import Listener, ListenerSettings
from services.kit.net.sockets import raise_descriptor_limit
from services.kit.process.drain import drain
from services.kit.process.health import HealthServer, HealthSources
from services.kit.readiness import Readiness
from services.kit.session.session import Peer, SessionFactory
from services.kit.stop import Stop
from services.kit.tracing import tracing
from services.kit.tracing.measures import SPANS

log = logging.getLogger(__name__)

EXIT_DRAINED = 0
EXIT_FAILED = 1  # cut short by a second signal, or an internal error
EXIT_UNUSABLE = 2  # bad settings, files or addresses: a restart does not help

TICK_S = 1.0
PUBLISH_QUEUES_S = 5.0  # how often a worker publishes queue metrics to the process that serves /metrics
STARTUP_S = 5.0  # a process that is not ready yet is expected for this long, then a warning
OTHER_DESCRIPTORS = 64  # descriptors beside connections: store, logs, health, the loop

Report = Callable[[str | None], None]  # called every second with the reason not to be ready, or None


class EdgeProcess(Generic[SettingsT]):
    """One process of an edge. `share` workers divide connection limits and memory budgets among them."""

    def __init__(
        self,
        edge: Edge[SettingsT],
        settings: GlobalSettings,
        edge_settings: SettingsT,
        share: int = 1,
        report: Report | None = None,
    ) -> None:
        """Set up metrics and tracing. Raises SettingsError if tracing is on but not installed."""
        self._edge = edge
        self._settings = settings
        self._edge_settings = edge_settings
        self._share = share
        self._report = report
        self._metrics = Metrics(edge.name)
        if settings.metrics.queues:
            self._metrics.meter_queues(
                settings.metrics.max_queues, latencies=settings.metrics.queue_latencies
            )
        count = self._count_spans() if settings.tracing.is_on else None
        self._recorder = tracing(settings.tracing, edge.name, count)
        self._metrics.store_observer.recorder = self._recorder
        self._budget = Budget(settings.limits.max_input_bytes // share)
        self._output = Budget(settings.limits.max_output_bytes // share)
        self._listeners: list[Listener] = []
        self._diallers: list[Dialler] = []
        self._pages: dict[str, Page] = {}
        self._running: RunningEdge | None = None
        self._draining = False
        self.readiness = Readiness(
            accepting=lambda: "draining" if self._draining else None,
            started=lambda: "starting" if self._running is None else None,
        )
        self._unready = self.readiness.unready()  # as last logged
        self._unready_level = logging.INFO
        self._was_ready = False
        self._ready_by = time.monotonic() + STARTUP_S
        self._inspector = ConnectionInspector(lambda: self._groups)
        health = settings.health  # with several workers, of the process that serves the pages
        self._health = str(Peer(health.host, health.port)) if health.port else None
        self._metrics.store_observer.topics |= self._inspector.topics
        self._metrics.store_observer.about = self._about

    async def run(self, stop: Stop) -> bool:
        """Serve until told to stop. Return True if it drained in order.

        Raises SettingsError, and the edge's own errors at its start.
        """
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._on_loop_error)
        async with contextlib.AsyncExitStack() as cleanup:
            if self._recorder is not None:
                self._recorder.start()
                cleanup.push_async_callback(self._recorder.close, stop.hurry.is_set)
            if self._report is None:
                sources = HealthSources(self._metrics.render, self.readiness, lambda: None, self._refresh)
                health = HealthServer(self._settings.health, sources, self._pages)
                self._health = str(Peer(*await health.start()))
                cleanup.push_async_callback(health.close)
            ticker = loop.create_task(self._keep_ticking())
            cleanup.callback(ticker.cancel)
            if not await self._start(stop):
                return not stop.hurry.is_set()
            await stop.drain.wait()
            self._draining = True
            self._tick()
            assert self._running is not None
            in_order = await drain(self._groups, self._running, self._settings.drain, stop.hurry)
            self._tick()
            self._metrics.publish_queues()
            return in_order

    def _count_spans(self) -> Callable[[str, int], None]:
        spans = self._metrics.counter(SPANS)

        def count(result: str, number: int) -> None:
            spans.labels(self._edge.name, result).inc(number)

        return count

    async def _start(self, stop: Stop) -> bool:
        """Start the edge. Return False if a stop came first."""
        starting = asyncio.ensure_future(self._start_edge())
        stopping = asyncio.ensure_future(stop.drain.wait())
        await asyncio.wait((starting, stopping), return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if not starting.done():
            starting.cancel()
            await asyncio.gather(starting, return_exceptions=True)
            return False
        self._running = await starting
        self.readiness.include(self._running.readiness)
        self._tick()
        return True

    async def _start_edge(self) -> RunningEdge:
        context = EdgeContext(
            self._edge.name,
            self._edge_settings,
            self._settings.store_url,
            self._metrics,
            self._listen,
            self._dial,
            self._pages.__setitem__,
            self._metrics.store_observer.topics.__setitem__,
            self.readiness,
        )
        running = await self._edge.start(context)
        try:
            for listener in self._listeners:
                await listener.start()
        except SettingsError:
            for listener in self._listeners:
                listener.stop_accepting()
            await running.close()
            raise
        self._check_descriptors()
        log.info("%s started", self._edge.name, extra={"action": "started", "edge": self._edge.name})
        return running

    def _listen(self, name: str, settings: ListenerSettings, factory: SessionFactory) -> Listener:
        if self._share > 1:
            own_share = math.ceil(settings.max_connections / self._share)
            settings = settings.model_copy(update={"max_connections": own_share})
        listener = Listener(
            name, settings, factory, self._budget, self._metrics, self._share > 1, self._output
        )
        self._listeners.append(listener)
        return listener

    def _dial(self, name: str, settings: DialSettings) -> Dialler:
        dialler = Dialler(name, settings, self._budget, self._metrics, self._output)
        self._diallers.append(dialler)
        return dialler

    @property
    def _groups(self) -> list[Listener | Dialler]:
        return [*self._listeners, *self._diallers]

    def _check_descriptors(self) -> None:
        allowed = raise_descriptor_limit()
        wanted = sum(listener.settings.max_connections for listener in self._listeners) + OTHER_DESCRIPTORS
        if wanted > allowed:
            fields = {"action": "descriptors_short", "wanted": wanted, "allowed": allowed}
            text = "open files are limited to %d, but the listeners may need %d: raise the limit (ulimit -n)"
            log.warning(text, allowed, wanted, extra=fields)

    async def _keep_ticking(self) -> None:
        published_at = -math.inf
        while True:
            self._tick()
            now = asyncio.get_running_loop().time()
            if self._report is not None and now - published_at >= PUBLISH_QUEUES_S:
                self._metrics.publish_queues()
                published_at = now
            await asyncio.sleep(TICK_S)

    def _tick(self) -> None:
        """Update everything that is not counted immediately."""
        now = asyncio.get_running_loop().time()
        for group in self._groups:
            group.tick(now)
        self._metrics.input_held.set(self._budget.total)
        self._metrics.output_held.set(self._output.total)
        self._metrics.publish_store_calls()
        reason = self.readiness.unready()
        self._log_change(reason)
        self._metrics.ready.set(reason is None)
        if self._report is not None:
            self._report(reason)

    def _log_change(self, reason: str | None) -> None:
        """Log when the process becomes ready or unready, or is unready for another reason.

        Being unready is a warning, except during the drain and the first seconds of a process.
        """
        self._was_ready = self._was_ready or reason is None
        is_starting = not self._was_ready and time.monotonic() < self._ready_by
        is_expected = reason is None or self._draining or is_starting
        level = logging.INFO if is_expected else logging.WARNING
        if reason == self._unready and level <= self._unready_level:
            return
        self._unready, self._unready_level = reason, level
        fields = {"action": "ready" if reason is None else "unready", "edge": self._edge.name}
        if reason is None:
            log.info("ready: serving requests", extra=fields)
        else:
            log.log(level, "not ready: %s", reason, extra=fields)

    def _about(self) -> dict[str, Any]:
        """Return this process's entry in the store's directory of processes."""
        return {**self._inspector.about(), "health": self._health, "unready": self.readiness.unready()}

    def _refresh(self) -> None:
        self._tick()
        self._metrics.publish_queues()

    def _on_loop_error(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self._metrics.local_errors.inc()
        fields = {"action": "loop_error", "edge": self._edge.name}
        log.error("%s", context.get("message"), exc_info=context.get("exception"), extra=fields)


def run_process(process: EdgeProcess[Any]) -> int:
    """Run a process in a new event loop; return its exit status. Raises what `EdgeProcess.run` raises."""

    async def serve() -> bool:
        stop = Stop()
        stop.listen()
        return await process.run(stop)

    import uvloop  # here, because the operator uses the health pages without uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return EXIT_DRAINED if runner.run(serve()) else EXIT_FAILED
