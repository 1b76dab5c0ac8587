"""Servers of one run: free ports, a temporary folder, and a guaranteed stop for each server."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

READY_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 8.0
POLL_S = 0.05
BASE = Path("/var/tmp")  # on a disk: /tmp may be in memory, where fsync is free


class NotRun(OSError):
    """A peer or measure is unavailable here; the message is the reason in the table."""


def free_port() -> int:
    """Return a TCP port of 127.0.0.1 that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def find_program(*candidates: str) -> str | None:
    """Return the first candidate that is a program, in PATH, in the sbin folders, or by its full path."""
    path = os.environ.get("PATH", "") + ":/usr/local/sbin:/usr/sbin"
    return next((found for name in candidates if (found := shutil.which(name, path=path))), None)


@dataclass(frozen=True, slots=True)
class Daemon:
    """A server process in a process group of its own, with its output in a file."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    @property
    def pid(self) -> int:
        return self.process.pid

    def last_words(self) -> str:
        """Return the last line of its output, for an error message."""
        lines = [line.strip() for line in self.log.read_text(errors="replace").splitlines() if line.strip()]
        return lines[-1][-160:] if lines else "it said nothing"

    def stop(self) -> None:
        """Terminate the process; then kill its process group, which includes its children."""
        if self.process.poll() is None:
            self.process.terminate()
            self.process.send_signal(signal.SIGCONT)  # a stopped process handles SIGTERM only after this
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(STOP_TIMEOUT_S)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


class Workshop:
    """The temporary folder of a run and every server in it; leaving it stops them, last started first."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._daemons: list[Daemon] = []

    def subfolder(self, name: str) -> Path:
        path = self.folder / name
        path.mkdir(exist_ok=True)
        return path

    def start(
        self,
        name: str,
        command: list[str],
        ready: Callable[[], object],
        environment: Mapping[str, str] | None = None,
    ) -> Daemon:
        """Start a server and wait until `ready` raises no OSError. Raises NotRun with its last words."""
        log = self.folder / f"{name}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self.subfolder(name),
                env={**os.environ, **(environment or {})},
                start_new_session=True,
            )
        daemon = Daemon(name, process, log)
        self._daemons.append(daemon)
        _wait_until_ready(daemon, ready)
        return daemon

    def stop(self, daemon: Daemon) -> None:
        self._daemons.remove(daemon)
        daemon.stop()

    def close(self) -> None:
        while self._daemons:
            self._daemons.pop().stop()


def _wait_until_ready(daemon: Daemon, ready: Callable[[], object]) -> None:
    deadline = time.monotonic() + READY_TIMEOUT_S
    while True:
        try:
            ready()
            return
        except OSError as not_yet:
            if (code := daemon.process.poll()) is not None:
                raise NotRun(f"{daemon.name} ended with {code}: {daemon.last_words()}") from not_yet
            if time.monotonic() > deadline:
                raise NotRun(f"{daemon.name} was not ready after {READY_TIMEOUT_S:.0f} s") from not_yet
        time.sleep(POLL_S)


def _end(_signal: int, _frame: FrameType | None) -> None:
    raise SystemExit(143)


@contextlib.contextmanager
def workshop(base: Path | None = None) -> Iterator[Workshop]:
    """Yield a workshop and clean it up in all cases, including SIGTERM and SIGINT."""
    previous = signal.signal(signal.SIGTERM, _end)
    folder = base or (BASE if os.access(BASE, os.W_OK) else Path(tempfile.gettempdir()))
    try:
        with tempfile.TemporaryDirectory(prefix="penstock-bench-", dir=folder) as path:
            place = Workshop(Path(path))
            try:
                yield place
            finally:
                place.close()
    finally:
        signal.signal(signal.SIGTERM, previous)
