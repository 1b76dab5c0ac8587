"""Test the supervisor of child processes."""

from __future__ import annotations

import errno
import os
import signal
import time
from collections.abc import Callable, Sequence

from services.kit.process.supervisor import (
    LAST_PAUSE_S,
    STABLE_S,
    Child,
    Policy,
    Role,
    Supervisor,
    forked,
)

ENDS = 3  # of children, until the policy ends all


def test_back_off_grows_and_resets() -> None:
    child = Child("service", lambda: 0)
    pauses = [child.back_off(now=1.0) for _ in range(12)]
    assert pauses[:4] == [0.1, 0.2, 0.4, 0.8]
    assert pauses[-1] == LAST_PAUSE_S
    assert child.restart_at == 1.0 + LAST_PAUSE_S
    child.started = 100.0
    assert child.back_off(now=100.0 + STABLE_S + 1) == 0.1


class Enough(Exception):
    """The exception that the policy raises."""


class Noted(Policy):
    def __init__(self, events: int) -> None:
        self._events = events
        self._ends = 0

    def note(self, event: str) -> None:
        os.write(self._events, f"{event}\n".encode())

    def stopping(self) -> None:
        self.note("stopping")

    def ended(self, child: Child, pid: int, status: int, *, stopping: bool) -> None:
        self._ends += status != 0
        if self._ends == ENDS and not stopping:
            raise Enough

    def restarting(self, child: Child, pid: int, status: int, pause_s: float) -> None:
        self.note(f"{child.name} ended with {status}")


def events(children: Sequence[Child]) -> list[str]:
    """Return the events that a policy of these children records until it ends them, in a separate process."""
    reader, writer = os.pipe()
    policy = Noted(writer)

    def work() -> int:
        try:
            return Supervisor(children, policy, drain_s=5.0, fatal=Enough).run()
        except Enough:
            running = [child.name for child in children if child.pid]
            policy.note(f"running: {running}")
            return 0

    _, status = os.waitpid(forked(work)(), 0)
    os.close(writer)
    with open(reader) as noted:
        assert status == 0
        return noted.read().splitlines()


def test_task_runs_after_each_start_of_its_child() -> None:
    service = Child("service", forked(lambda: time.sleep(60) or 0))

    def end_service() -> int:
        os.kill(service.pid, signal.SIGKILL)
        return 0

    task = Child("task", forked(end_service), Role.TASK, follows=service, is_due=False)
    assert events([service, task]) == [*["service ended with -9"] * (ENDS - 1), "stopping", "running: []"]


def test_failed_fork_is_retried() -> None:
    def without_processes(launch: Callable[[], int]) -> Callable[[], int]:
        failures = [OSError(errno.EAGAIN, "no process left"), OSError(errno.ENOMEM, "no memory left")]

        def start() -> int:
            if failures:
                raise failures.pop()
            return launch()

        return start

    service = Child("service", without_processes(forked(lambda: 7)))
    assert events([service]) == [*["service ended with 7"] * (ENDS - 1), "stopping", "running: []"]
