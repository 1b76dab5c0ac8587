"""Supervise forked child processes: start them, restart them when they exit, and stop them in order.

The supervisor has no event loop and no threads, so it can fork at any time.
"""

from __future__ import annotations

import gc
import logging
import os
import signal
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from services.kit.process.drain import HURRIED_CLOSE_TIMEOUT_S, RESET_TIMEOUT_S
from services.kit.process.process import EXIT_DRAINED, EXIT_FAILED
from services.kit.startup_sigterm import stop_signals
from services.kit.stop import HURRY
from services.system.pdeathsig import die_with_parent

log = logging.getLogger(__name__)

FIRST_PAUSE_S = 0.1
LAST_PAUSE_S = 5.0
STABLE_S = 30.0  # after running this long, a child restarts after the first pause again
MARGIN_S = 5.0  # beyond the maximum drain time; then SIGKILL
BASE_END_S = 20.0  # from the end signal to SIGKILL of a base
POLL_S = 0.01
IN_ORDER = (0, -signal.SIGTERM)  # drained, or terminated before it handled signals


class Role(Enum):
    """How long a child runs."""

    SERVICE = auto()  # until it is stopped
    TASK = auto()  # until its work is done, with status 0
    BASE = auto()  # until all services and tasks have exited


@dataclass(slots=True, eq=False)
class Child:
    """A child that is restarted: `pid` is that of its current process."""

    name: str
    launch: Callable[[], int]  # starts a process and returns its pid; see `forked`
    role: Role = Role.SERVICE
    follows: Child | None = None  # of a task: run after each start of this child
    is_due: bool = True
    end_signal: signal.Signals = signal.SIGTERM  # of a base
    pid: int = 0  # 0: not running
    starts: int = 0
    failures: int = 0  # in a row
    started: float = 0.0  # monotonic, s
    restart_at: float = 0.0  # monotonic, s

    @property
    def is_absent(self) -> bool:
        """Return whether it should run but does not."""
        return self.is_due and not self.pid

    def back_off(self, now: float) -> float:
        """Return the seconds until the next start of a child that exited or failed to start at `now`."""
        self.failures = 0 if now - self.started > STABLE_S else self.failures
        pause_s = min(FIRST_PAUSE_S * (1 << self.failures), LAST_PAUSE_S)
        self.failures += 1
        self.restart_at = now + pause_s
        self.is_due = True
        return pause_s


def forked(work: Callable[[], int]) -> Callable[[], int]:
    """Return a `launch` that forks: the child does this work and exits with its status, or with its parent."""

    def fork() -> int:
        parent = os.getpid()
        pid = os.fork()
        if pid:
            return pid
        status = EXIT_FAILED
        try:
            die_with_parent(parent)
            status = work()
        except BaseException as error:
            log.critical(
                "internal error, the process exits: %r", error, exc_info=error, extra={"action": "failed"}
            )
        finally:
            os._exit(status)

    return fork


class Policy(ABC):
    """The decisions of the children's owner."""

    def step(self) -> None:  # noqa: B027 - optional
        """Do periodic work: called at least once a second."""

    def stopping(self) -> None:  # noqa: B027 - optional
        """Take note that the children are being stopped."""

    @abstractmethod
    def ended(self, child: Child, pid: int, status: int, *, stopping: bool) -> None:
        """Take note that a child has exited. Raise the fatal error to stop all children."""

    @abstractmethod
    def restarting(self, child: Child, pid: int, status: int, pause_s: float) -> None:
        """Log that a child is restarted."""


class Supervisor:
    """Starts children in order, restarts them when they exit, and stops all of them."""

    def __init__(
        self, children: Sequence[Child], policy: Policy, drain_s: float, fatal: type[Exception]
    ) -> None:
        """Allow services `drain_s` after SIGTERM. `fatal` is the error by which a policy or a launch stops all."""
        self._children = children
        self._policy = policy
        self._fatal = fatal
        self._drain_s = drain_s
        self._stopping = False
        self._kill_at = float("inf")
        self._status = EXIT_DRAINED
        self._error: Exception | None = None

    def run(self) -> int:
        """Run until a signal or the fatal error has stopped all. Return the exit status, or raise that error."""
        block_signals()
        gc.freeze()  # so that the children's collectors do not copy shared pages
        try:
            while not self._stopping or self._running(Role.SERVICE, Role.TASK):
                self._step()
            for child in self._running(Role.BASE):
                self._end(child)
        finally:
            for child in self._running(*Role):
                os.kill(child.pid, signal.SIGKILL)
                os.waitpid(child.pid, 0)
        if self._error is not None:
            raise self._error
        return self._status

    def _step(self) -> None:
        """Start what is due, wait for a signal, reap children that have exited."""
        now = time.monotonic()
        if now >= self._kill_at:
            self._signal(signal.SIGKILL)
        self._policy.step()
        for child in self._children:
            if child.is_absent and now >= child.restart_at:
                self._start(child, now)
        due = min((child.restart_at for child in self._children if child.is_absent), default=now + 1.0)
        received = signal.sigtimedwait(watched_signals(), max(0.0, min(due - now, 1.0)))
        if received is not None and received.si_signo != signal.SIGCHLD:
            self._on_stop_signal(received.si_signo)
        self._reap()

    def _start(self, child: Child, now: float) -> None:
        child.started = now
        try:
            child.pid = child.launch()
        except OSError as error:  # no memory, or too many processes
            fields = {"action": "child_not_started", "child": child.name}
            log.error("cannot start %s, retrying: %s", child.name, error, extra=fields)
            child.back_off(now)
        except self._fatal as error:
            self._fail(error)
        else:
            child.starts, child.is_due = child.starts + 1, False
            for other in self._children:
                other.is_due |= other.follows is child

    def _reap(self) -> None:
        """Reap every child that has exited; as process 1 of a container, orphans too."""
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
        try:
            self._policy.ended(child, pid, status, stopping=self._stopping)
        except self._fatal as error:
            self._fail(error)
        if self._stopping:
            self._status = self._status or (EXIT_DRAINED if status in IN_ORDER else EXIT_FAILED)
        elif status or child.role is not Role.TASK:
            self._policy.restarting(child, pid, status, child.back_off(time.monotonic()))

    def _fail(self, error: Exception) -> None:
        self._error = self._error or error
        self._stop()

    def _on_stop_signal(self, number: int) -> None:
        """Stop in order at the first signal, at once at a second one that is not SIGHUP: a terminal may send two."""
        is_again = self._stopping
        self._stop()
        if number == HURRY or (is_again and number != signal.SIGHUP):
            self._status = self._status or EXIT_FAILED
            self._signal(HURRY)
            self._kill_at = time.monotonic() + HURRIED_CLOSE_TIMEOUT_S + RESET_TIMEOUT_S + MARGIN_S

    def _stop(self) -> None:
        if not self._stopping:
            self._stopping = True
            for child in self._children:
                child.is_due = False
            self._policy.stopping()
            self._signal(signal.SIGTERM)
            self._kill_at = time.monotonic() + self._drain_s + MARGIN_S

    def _signal(self, number: signal.Signals) -> None:
        """Signal all children except the bases."""
        for child in self._running(Role.SERVICE, Role.TASK):
            os.kill(child.pid, number)

    def _end(self, base: Child) -> None:
        """Stop a base by its signal, and by SIGKILL after BASE_END_S."""
        os.kill(base.pid, base.end_signal)
        kill_at = time.monotonic() + BASE_END_S
        while not os.waitpid(base.pid, os.WNOHANG)[0]:
            if time.monotonic() > kill_at:
                os.kill(base.pid, signal.SIGKILL)
            time.sleep(POLL_S)
        base.pid = 0

    def _running(self, *roles: Role) -> list[Child]:
        return [child for child in self._children if child.pid and child.role in roles]


def watched_signals() -> tuple[signal.Signals, ...]:
    """Return the signals that a supervisor waits for."""
    return (*stop_signals(), HURRY, signal.SIGCHLD)


def block_signals() -> None:
    """Keep these signals pending until a supervisor, or a child that handles them, accepts them."""
    signal.pthread_sigmask(signal.SIG_BLOCK, watched_signals())
