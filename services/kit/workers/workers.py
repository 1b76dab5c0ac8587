"""Several processes that share an edge's ports by SO_REUSEPORT, and the one that looks after them.

The supervisor forks the workers and one more child that answers /metrics, /healthz and /readyz for all of them. It
has no event loop and no threads of its own, so that forking again, for one that died, is always safe.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import logging
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic

from services.kit import logs
from services.kit.config.layers import Place, SettingsError
from services.kit.config.settings import DrainSettings, GlobalSettings
from services.kit.edge import Edge, SettingsT
from services.kit.metrics.metrics import share
from services.kit.net.acceptor import listening, open_bound
from services.kit.net.listener import port_setting
from services.kit.process.drain import CLOSE_TIMEOUT_S, HURRIED_CLOSE_TIMEOUT_S, RESET_TIMEOUT_S
from services.kit.process.health import Answers, health_sockets, serve_forever
from services.kit.process.process import EXIT_DRAINED, EXIT_FAILED, EXIT_UNUSABLE, EdgeProcess, run_process
from services.kit.startup_sigterm import ending_signals
from services.kit.stop import HURRY
from services.kit.workers.dead_worker_metrics import Remains
from services.kit.workers.multiprocess_collector import Together
from services.kit.workers.scratch import scratch_folder
from services.kit.workers.worker_status import Board, WorkerState
from services.system.pdeathsig import die_with_parent

log = logging.getLogger(__name__)

BACKOFF_FIRST_S = 0.1
BACKOFF_LAST_S = 30.0
STABLE_S = 60.0  # a child that lived so long starts again with the first back-off
MARGIN_S = 5.0  # beyond what a worker's drain may take; then it is killed


@dataclass(slots=True)
class Child:
    """One place among the children, whichever process fills it."""

    name: str
    work: Callable[[], int]  # runs in the child; returns its exit status
    worker: int | None  # its row on the board; None for the one that answers for all
    pid: int = 0  # 0: not running
    started: float = 0.0
    restart_at: float = 0.0
    failures: int = 0  # in a row
    starts: int = 0

    def back_off(self, now: float) -> float:
        """It died at `now`: seconds until it is started again."""
        self.failures = 0 if now - self.started > STABLE_S else self.failures
        pause_s = min(BACKOFF_FIRST_S * (1 << self.failures), BACKOFF_LAST_S)
        self.failures += 1
        self.restart_at = now + pause_s
        return pause_s


class Supervisor(Generic[SettingsT]):
    """Starts the children, starts them again when they die, ends them all."""

    def __init__(
        self, edge: Edge[SettingsT], settings: GlobalSettings, edge_settings: SettingsT, workers: int
    ) -> None:
        self._edge = edge
        self._settings = settings
        self._edge_settings = edge_settings
        self._board = Board(workers)
        self._workers = [
            Child(f"worker {number}", functools.partial(self._serve, number), number)
            for number in range(workers)
        ]
        self._children = [Child("health", self._answer, None), *self._workers]
        self._stopping = False
        self._kill_at = float("inf")
        self._status = EXIT_DRAINED

    def run(self) -> int:
        """Until told to stop; returns the exit status. Raises SettingsError if an address cannot be had."""
        self._watched = (*ending_signals(), signal.SIGCHLD)
        signal.pthread_sigmask(signal.SIG_BLOCK, (*self._watched, HURRY))
        with (
            reserved_ports(self._edge.name, self._edge_settings) as self._edge_settings,
            scratch_folder() as self._folder,
        ):
            self._health_sockets = health_sockets(self._settings.health)
            bound = {"port": self._health_sockets[0].getsockname()[1]}
            health = self._settings.health.model_copy(update=bound)
            self._settings = self._settings.model_copy(update={"health": health})
            share(self._folder)
            self._remains = Remains(self._folder)
            gc.freeze()  # the children's collectors leave alone, and so do not copy, what they share with us
            try:
                while not self._stopping or any(worker.pid for worker in self._workers):
                    self._step()
            finally:
                for child in self._running(self._children):
                    os.kill(child.pid, signal.SIGKILL)
                    os.waitpid(child.pid, 0)
        return self._status

    def _step(self) -> None:
        """Start what is due, wait for a signal, bury the dead."""
        now = time.monotonic()
        if now >= self._kill_at:
            self._signal_workers(signal.SIGKILL)
        self._remains.add_up([child.pid for child in self._running(self._children)])
        absent = [] if self._stopping else [child for child in self._children if not child.pid]
        for child in absent:
            if now >= child.restart_at:
                self._fork(child)
        due = min((child.restart_at for child in absent), default=now + 1.0)
        heard = signal.sigtimedwait(self._watched, max(0.0, min(due - now, 1.0)))
        number = signal.SIGCHLD if heard is None else heard.si_signo
        again = self._stopping and number == signal.SIGHUP  # a terminal that goes may send it several times
        if number != signal.SIGCHLD and not again:
            self._asked_to_stop()
        self._bury()

    def _fork(self, child: Child) -> None:
        parent = os.getpid()
        child.started = time.monotonic()
        child.starts += 1
        child.pid = os.fork()
        if child.pid:
            return
        status = EXIT_FAILED
        try:
            die_with_parent(parent)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            logs.configure(self._settings.log, edge=self._edge.name, process=child.name)
            status = child.work()
        except SettingsError as error:
            log.critical("%s", error, extra={"action": "unusable"})
            status = EXIT_UNUSABLE
        except BaseException as error:
            log.critical("failed: %r", error, exc_info=error, extra={"action": "failed"})
        finally:
            os._exit(status)

    def _bury(self) -> None:
        """Take note of every child that has ended; as process 1 of a container, of strangers too."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            for child in self._children:
                if child.pid == pid:
                    self._ended(child, os.waitstatus_to_exitcode(status))

    def _ended(self, child: Child, status: int) -> None:
        pid, child.pid = child.pid, 0
        self._remains.take(pid)
        if child.worker is not None:
            self._board.report(child.worker, WorkerState.ABSENT, "ended")
        if self._stopping:
            self._status = self._status or (EXIT_FAILED if status else EXIT_DRAINED)
            return
        if (
            status == EXIT_UNUSABLE and child.starts == 1
        ):  # later the machine has changed, and may change back
            self._status = status
            self._asked_to_stop()
            return
        if child.worker is not None:
            self._board.count_death()
        fields: dict[str, object] = {
            "action": "child_ended",
            "child": child.name,
            "pid": pid,
            "status": status,
        }
        fields["restart_in_s"] = child.back_off(time.monotonic())
        log.error("%s ended with %d: starting it again", child.name, status, extra=fields)

    def _asked_to_stop(self) -> None:
        """The first time in order, the second time at once."""
        now = time.monotonic()
        if self._stopping:
            self._status = self._status or EXIT_FAILED
            self._signal_workers(HURRY)
            self._kill_at = now + HURRIED_CLOSE_TIMEOUT_S + RESET_TIMEOUT_S + MARGIN_S
            return
        self._stopping = True
        self._board.drain()
        self._signal_workers(signal.SIGTERM)
        self._kill_at = now + longest_drain_s(self._settings.drain) + MARGIN_S

    def _signal_workers(self, signum: signal.Signals) -> None:
        for worker in self._running(self._workers):
            os.kill(worker.pid, signum)

    @staticmethod
    def _running(children: list[Child]) -> list[Child]:
        return [child for child in children if child.pid]

    # In the children

    def _serve(self, number: int) -> int:
        board = self._board

        def report(reason: str | None) -> None:
            board.report(number, WorkerState.READY if reason is None else WorkerState.UNREADY, reason or "")

        board.report(number, WorkerState.STARTING)
        share_of = len(self._workers)
        process = EdgeProcess(self._edge, self._settings, self._edge_settings, share_of, report)
        return run_process(process, is_worker=True)

    def _answer(self) -> int:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it answers until the last worker has drained
        board = self._board
        together = Together(self._edge.name, self._folder, board, supervisor=os.getppid())
        answers = Answers(together.render, board.readiness, board.stuck)
        serve_forever(self._settings.health, answers, self._health_sockets)
        return EXIT_FAILED


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


def _reserved(host: str, port: int, setting: Place) -> socket.socket:
    """Return a bound socket that never listens: while it is open, only SO_REUSEPORT of this user shares the port.

    The first socket listens without SO_REUSEPORT, so only one supervisor gets this far, also on an address that
    includes this one. The second binds with SO_REUSEADDR, beside connections of before, and then gives that up: now it
    refuses all that begin without SO_REUSEPORT, as other supervisors do.
    """
    with listening(host, port, setting) as first:
        first.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        held = open_bound(host, first.getsockname()[1], reuse_port=True)
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
    return held


def longest_drain_s(settings: DrainSettings) -> float:
    """How long a worker may take from SIGTERM to its end."""
    waits_s = settings.grace_s + settings.timeout_s + settings.spread_s + settings.timeout_s
    return waits_s + RESET_TIMEOUT_S + CLOSE_TIMEOUT_S
