"""Several processes that share an edge's ports by SO_REUSEPORT.

The supervisor forks the workers and one more child that answers /metrics, /healthz and /readyz for all of them.
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
    """A worker could not use its settings at its first start; later the machine may have changed, and change back."""


class Workers(Policy, Generic[SettingsT]):
    """The workers of one edge, and the child that answers for them."""

    def __init__(
        self, edge: Edge[SettingsT], settings: GlobalSettings, edge_settings: SettingsT, workers: int
    ) -> None:
        self._edge = edge
        self._settings = settings
        self._edge_settings = edge_settings
        self._board = WorkerTable(workers)
        health = Child("health", self._forked("health", self._answer), Role.BASE, end_signal=signal.SIGKILL)
        self._workers = {
            Child(
                f"worker {number}", self._forked(f"worker {number}", functools.partial(self._serve, number))
            ): number
            for number in range(workers)
        }
        self._children = [health, *self._workers]

    def _forked(self, name: str, work: Callable[[], int]) -> Callable[[], int]:
        """Return what starts a child with logs that have its name."""

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
        """Until told to stop; returns the exit status. Raises SettingsError if an address cannot be had."""
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
            self._remains = DeadWorkerMetrics(self._folder)
            try:
                drain_s = max_drain_s(self._settings.drain)
                return Supervisor(self._children, self, drain_s, WorkerUnusable).run()
            except WorkerUnusable:
                return EXIT_UNUSABLE

    # `Policy`

    def step(self) -> None:
        self._remains.add_up([child.pid for child in self._children if child.pid])

    def stopping(self) -> None:
        self._board.drain()

    def ended(self, child: Child, pid: int, status: int, *, stopping: bool) -> None:
        self._remains.take(pid)
        if child in self._workers:
            self._board.report(self._workers[child], WorkerState.ABSENT, "ended")
        if status == EXIT_UNUSABLE and child.starts == 1 and not stopping:
            raise WorkerUnusable(child.name)

    def restarting(self, child: Child, pid: int, status: int, pause_s: float) -> None:
        if child in self._workers:
            self._board.count_death()
        fields = {"child": child.name, "pid": pid, "status": status, "restart_in_s": pause_s}
        text = "%s ended with %d: starting it again"
        log.error(text, child.name, status, extra={"action": "child_ended", **fields})

    # In the children

    def _serve(self, number: int) -> int:
        board = self._board

        def report(reason: str | None) -> None:
            board.report(number, WorkerState.READY if reason is None else WorkerState.UNREADY, reason or "")

        board.report(number, WorkerState.STARTING)
        share_of = len(self._workers)
        process = EdgeProcess(self._edge, self._settings, self._edge_settings, share_of, report)
        return run_process(process)

    def _answer(self) -> int:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it answers until the last worker has drained
        board = self._board
        together = WorkerMetrics(self._edge.name, self._folder, board, supervisor=os.getppid())
        answers = HealthSources(together.render, board.readiness, board.stuck)
        serve_forever(self._settings.health, answers, self._health_sockets)
        return EXIT_FAILED


def run_edge_processes(
    edge: Edge[SettingsT], settings: GlobalSettings, edge_settings: SettingsT, workers: int | None
) -> int:
    """Serve in so many processes, None for what the settings say; returns the exit status. Raises SettingsError."""
    number = workers or edge_settings.workers
    if number > 1:
        return Workers(edge, settings, edge_settings, number).run()
    return run_process(EdgeProcess(edge, settings, edge_settings))


@contextlib.contextmanager
def reserved_ports(edge: str, settings: SettingsT) -> Iterator[SettingsT]:
    """The same settings with every port a fixed one, which only our workers can share.

    Raises SettingsError if another program listens there, or has reserved the port for its workers.
    """
    with contextlib.ExitStack() as held:
        listeners = {}
        for name, listener in settings.listeners.items():
            place = held.enter_context(_reserved(listener.host, listener.port, port_setting(edge, name)))
            listeners[name] = listener.model_copy(update={"port": place.getsockname()[1]})
        yield settings.model_copy(update={"listeners": listeners})


def _reserved(host: str, port: int, setting: SettingPath) -> socket.socket:
    """Return a bound socket that never listens: while it is open, only SO_REUSEPORT of this user shares the port.

    The first socket listens without SO_REUSEPORT, so only one supervisor gets this far, also on an address that
    includes this one. The second binds with SO_REUSEADDR, beside connections of before, and then gives that up: now it
    refuses all that begin without SO_REUSEPORT, as other supervisors do.
    """
    with open_listening(host, port, setting) as first:
        first.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        held = open_bound(host, first.getsockname()[1], reuse_port=True)
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
    return held


def max_drain_s(settings: DrainSettings) -> float:
    """How long a worker may take from SIGTERM to its end."""
    waits_s = settings.grace_s + settings.timeout_s + settings.spread_s + settings.timeout_s
    return waits_s + RESET_TIMEOUT_S + CLOSE_TIMEOUT_S
