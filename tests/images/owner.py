"""Mark containers with the run that started them, so that containers of a killed run can be removed.

Each run holds a lock, which the kernel releases when the run ends, and has a watcher that waits for that. So containers
end with the run that made them, and each run removes only its own.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO

LABEL = "dev.penstock.test"
PREFIX = "penstock-containers-"
# crun does not support control groups of both versions at once, and root's limits are not available to all users
PODMAN = ("podman", "--runtime", "runc", "--cgroup-manager", "cgroupfs")


@dataclass(frozen=True)
class Owner:
    lock: Path
    held: IO[bytes] | None = None  # open as long as this object exists

    @property
    def label(self) -> str:
        return f"{LABEL}={self.lock.name}"

    @property
    def lives(self) -> bool:
        try:
            with self.lock.open() as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except FileNotFoundError:
            pass
        return False

    def remove_containers(self) -> None:
        """Remove the owner's containers. Raises CalledProcessError."""
        for name in _podman("ps", "--all", "--quiet", "--filter", f"label={self.label}").split():
            _podman("rm", "--force", "--time=0", "--ignore", name)
        self.lock.unlink(missing_ok=True)


@cache
def owner() -> Owner:
    """Return the owner for this process."""
    with tempfile.NamedTemporaryFile(prefix=PREFIX, delete=False) as file:
        lock = Path(file.name)
    held = lock.open("rb")
    fcntl.flock(held, fcntl.LOCK_EX)
    _start_watcher(lock)
    return Owner(lock, held)


def _start_watcher(lock: Path) -> None:
    """Start a process that signals to this group do not reach, and that outlives it."""
    command = [sys.executable, "-I", __file__, str(lock)]
    silent = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)]
    os.posix_spawn(sys.executable, command, os.environ, file_actions=silent, setsid=True)


def remove_leftovers() -> None:
    """Remove the containers of killed runs, and stop their watchers."""
    label = f'{{{{index .Labels "{LABEL}"}}}}'
    names = _podman("ps", "--all", "--filter", f"label={LABEL}", "--format", label).split()
    for name in set(names):
        if not (found := Owner(Path(tempfile.gettempdir()) / name)).lives:
            found.remove_containers()


def _podman(*words: str) -> str:
    return subprocess.run([*PODMAN, *words], check=True, stdout=subprocess.PIPE, text=True).stdout


def watch(lock: Path) -> None:
    """Wait until the owner has ended, and remove its containers."""
    with lock.open() as waiting:
        fcntl.flock(waiting, fcntl.LOCK_EX)
    Owner(lock).remove_containers()


if __name__ == "__main__":
    watch(Path(sys.argv[1]))
