"""Serve an edge by several processes that share its ports by SO_REUSEPORT.

The supervisor forks the workers, and one more child that serves /metrics, /healthz and /readyz for all of them.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import signal
import socket
from collections.abc import Callable, Iterator
from typing import Generic

from services.kit import logs
from services.kit.config.layers import SettingPath, SettingsError
from services.kit.config.settings import DrainSettings, GlobalSettings
from services.kit.edge import Edge, SettingsT
from services.kit.metrics.metrics import share
from services.kit.net.acceptor import open_bound, open_listening
from services.kit.net.listener import port_setting
from services.kit.process.drain import CLOSE_TIMEOUT_S, RESET_TIMEOUT_S
from services.kit.process.health import HealthSources, health_sockets, serve_forever
from services.kit.process.process import EXIT_FAILED, EXIT_UNUSABLE, EdgeProcess, run_process
from services.kit.process.supervisor import Child, Policy, Role, Supervisor, block_signals, forked
from services.kit.workers.dead_worker_metrics import DeadWorkerMetrics
from services.kit.workers.multiprocess_collector import WorkerMetrics
from services.kit.workers.scratch import scratch_folder
from services.kit.workers.worker_status import WorkerState, WorkerTable

log = logging.getLogger(__name__)


class WorkerUnusable(Exception):
    """A worker cannot use its settings at its first start. Later failures may be temporary."""


class Workers(Policy, Generic[SettingsT]):
    """The workers of one edge, and the child that serves their health pages."""

    def __init__(
        self, edge: Edge[SettingsT], settings: GlobalSettings, edge_settings: SettingsT, workers: int
    ) -> None:
        self._edge = edge
        self._settings = settings
        self._edge_settings = edge_settings
        self._table = WorkerTable(workers)
        health = Child("health", self._forked("health", self._answer), Role.BASE, end_signal=signal.SIGKILL)
        self._workers = {
            Child(
                f"worker {number}", self._forked(f"worker {number}", functools.partial(self._serve, number))
            ): number
            for number in range(workers)
        }
        self._children = [health, *self._workers]

    def _forked(self, name: str, work: Callable[[], int]) -> Callable[[], int]:
        """Return the `launch` of a child, whose logs have its name."""

        def run() -> int:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            logs.configure(self._settings.log, edge=self._edge.name, process=name)
            try:
                return work()
            except SettingsError as error:
                log.critical("%s", error, extra={"action": "unusable"})
                return EXIT_UNUSABLE

        return forked(run)

    def run(self) -> int:
        """Run until a stop; return the exit status. Raises SettingsError if an address is not available."""
        block_signals()
        with (
            reserved_ports(self._edge.name, self._edge_settings) as self._edge_settings,
            scratch_folder() as self._folder,
        ):
            self._health_sockets = health_sockets(self._settings.health)
            bound = {"port": self._health_sockets[0].getsockname()[1]}
            health = self._settings.health.model_copy(update=bound)
            self._settings = self._settings.model_copy(update={"health": health})
            share(self._folder)
            self._dead_metrics = DeadWorkerMetrics(self._folder)
            try:
                drain_s = max_drain_s(self._settings.drain)
                return Supervisor(self._children, self, drain_s, WorkerUnusable).run()
            except WorkerUnusable:
                return EXIT_UNUSABLE

    # Methods of `Policy`

    def step(self) -> None:
        """Merge the metrics of workers that have exited."""
        self._dead_metrics.merge([child.pid for child in self._children if child.pid])

    def stopping(self) -> None:
        """Report the drain on /readyz."""
        self._table.drain()

    def ended(self, child: Child, pid: int, status: int, *, stopping: bool) -> None:
        """Keep the counters of a child that has exited. Raises WorkerUnusable if its settings are unusable."""
        self._dead_metrics.add(pid)
        if child in self._workers:
            self._table.report(self._workers[child], WorkerState.ABSENT, "ended")
        if status == EXIT_UNUSABLE and child.starts == 1 and not stopping:
            raise WorkerUnusable(child.name)

    def restarting(self, child: Child, pid: int, status: int, pause_s: float) -> None:
        """Count and log that a child is restarted."""
        if child in self._workers:
            self._table.count_death()
        fields = {"child": child.name, "pid": pid, "status": status, "restart_in_s": pause_s}
        text = "%s exited with status %d and is restarted"
        log.error(text, child.name, status, extra={"action": "child_ended", **fields})

    # In children

    def _serve(self, number: int) -> int:
        table = self._table

        def report(reason: str | None) -> None:
            table.report(number, WorkerState.READY if reason is None else WorkerState.UNREADY, reason or "")

        table.report(number, WorkerState.STARTING)
        share_of = len(self._workers)
        process = EdgeProcess(self._edge, self._settings, self._edge_settings, share_of, report)
        return run_process(process)

    def _answer(self) -> int:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it serves until the last worker has drained
        table = self._table
        metrics = WorkerMetrics(self._edge.name, self._folder, table, supervisor=os.getppid())
        sources = HealthSources(metrics.render, table.readiness, table.stuck)
        serve_forever(self._settings.health, sources, self._health_sockets)
        return EXIT_FAILED


def run_edge_processes(
    edge: Edge[SettingsT], settings: GlobalSettings, edge_settings: SettingsT, workers: int | None
) -> int:
    """Serve in `workers` processes, by default those of the settings. Return the exit status. Raises SettingsError."""
    number = workers or edge_settings.workers
    if number > 1:
        return Workers(edge, settings, edge_settings, number).run()
    return run_process(EdgeProcess(edge, settings, edge_settings))


@contextlib.contextmanager
def reserved_ports(edge: str, settings: SettingsT) -> Iterator[SettingsT]:
    """Return the settings with fixed ports, reserved for our workers.

    Raises SettingsError if another program listens on a port, or has reserved it for its workers.
    """
    with contextlib.ExitStack() as held:
        listeners = {}
        for name, listener in settings.listeners.items():
            sock = held.enter_context(_reserved(listener.host, listener.port, port_setting(edge, name)))
            listeners[name] = listener.model_copy(update={"port": sock.getsockname()[1]})
        yield settings.model_copy(update={"listeners": listeners})


def _reserved(host: str, port: int, setting: SettingPath) -> socket.socket:
    """Return a bound socket that never listens: while it is open, only SO_REUSEPORT of this user shares the port.

    The first socket listens without SO_REUSEPORT, so only one supervisor gets this far, also on an address that
    includes this one. The second binds with SO_REUSEADDR, beside old connections, and then clears that option: now it
    blocks all sockets without SO_REUSEPORT, such as those of other supervisors.
    """
    with open_listening(host, port, setting) as first:
        first.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        held = open_bound(host, first.getsockname()[1], reuse_port=True)
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
    return held


def max_drain_s(settings: DrainSettings) -> float:
    """Return the longest time in seconds from SIGTERM to a worker's exit."""
    waits_s = settings.grace_s + settings.timeout_s + settings.spread_s + settings.timeout_s
    return waits_s + RESET_TIMEOUT_S + CLOSE_TIMEOUT_S
