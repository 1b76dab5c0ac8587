"""Whose a container is: of a run that lives, or of one that was killed.

Each run holds a lock, which the kernel takes back however the run ends, and has a watcher that waits for just that: so
containers end with the run that made them, and those of other runs are nobody else's to remove.
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
# crun cannot do with control groups of both versions at once, and root's limits are not everybody's
PODMAN = ("podman", "--runtime", "runc", "--cgroup-manager", "cgroupfs")


@dataclass(frozen=True)
class Owner:
    lock: Path
    held: IO[bytes] | None = None  # for as long as there is this

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
        """Raises CalledProcessError."""
        for name in _podman("ps", "--all", "--quiet", "--filter", f"label={self.label}").split():
            _podman("rm", "--force", "--time=0", "--ignore", name)
        self.lock.unlink(missing_ok=True)


@cache
def owner() -> Owner:
    """This process."""
    with tempfile.NamedTemporaryFile(prefix=PREFIX, delete=False) as file:
        lock = Path(file.name)
    held = lock.open("rb")
    fcntl.flock(held, fcntl.LOCK_EX)
    _start_watcher(lock)
    return Owner(lock, held)


def _start_watcher(lock: Path) -> None:
    """A process that no signal to our group reaches, and that goes on when we have ended."""
    command = [sys.executable, "-I", __file__, str(lock)]
    silent = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)]
    os.posix_spawn(sys.executable, command, os.environ, file_actions=silent, setsid=True)


def remove_leftovers() -> None:
    """Of runs that were killed, and their watchers with them."""
    label = f'{{{{index .Labels "{LABEL}"}}}}'
    names = _podman("ps", "--all", "--filter", f"label={LABEL}", "--format", label).split()
    for name in set(names):
        if not (found := Owner(Path(tempfile.gettempdir()) / name)).lives:
            found.remove_containers()


def _podman(*words: str) -> str:
    return subprocess.run([*PODMAN, *words], check=True, stdout=subprocess.PIPE, text=True).stdout


def watch(lock: Path) -> None:
    """Returns once its owner has ended, and has no container any more."""
    with lock.open() as waiting:
        fcntl.flock(waiting, fcntl.LOCK_EX)
    Owner(lock).remove_containers()


if __name__ == "__main__":
    watch(Path(sys.argv[1]))
